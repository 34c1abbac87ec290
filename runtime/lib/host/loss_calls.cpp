//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/call.h"
#include "host/kernels.h"

using namespace plateau::rt::host;

extern "C" plr_status plr_log_softmax(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t columns,
                                      const float *input, float *result) {
  return enter(lane, "plr_log_softmax", tag, [&](Call &call) {
    call.size("rows", rows);
    call.size("columns", columns, 1);
    call.tensor("input", input, {rows, columns});
    call.tensor("result", result, {rows, columns});
    call.enqueue([=](const Running &) -> Outcome {
      logSoftmax(rows, columns, input, result);
      return {};
    });
  });
}

extern "C" plr_status plr_log_softmax_grad(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t columns,
                                           const float *cotangent, const float *output, float *result) {
  return enter(lane, "plr_log_softmax_grad", tag, [&](Call &call) {
    call.size("rows", rows);
    call.size("columns", columns, 1);
    call.tensor("cotangent", cotangent, {rows, columns});
    call.tensor("output", output, {rows, columns});
    call.tensor("result", result, {rows, columns});
    call.enqueue([=](const Running &) -> Outcome {
      logSoftmaxGrad(rows, columns, cotangent, output, result);
      return {};
    });
  });
}

extern "C" plr_status plr_count_labels(plr_lane *lane, const plr_tag *tag, int64_t rows, int32_t ignore_index,
                                       const int32_t *labels, float *result) {
  return enter(lane, "plr_count_labels", tag, [&](Call &call) {
    call.size("rows", rows);
    call.tensor("labels", labels, {rows});
    call.tensor("result", result, {1});
    call.enqueue([=](const Running &) -> Outcome {
      countLabels(rows, ignore_index, labels, result);
      return {};
    });
  });
}

extern "C" plr_status plr_nll(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t columns, int32_t ignore_index,
                              const float *log_probs, const int32_t *labels, const float *count, float *result) {
  return enter(lane, "plr_nll", tag, [&](Call &call) {
    call.size("rows", rows);
    call.size("columns", columns, 1);
    call.tensor("log_probs", log_probs, {rows, columns});
    call.tensor("labels", labels, {rows});
    call.tensor("count", count, {1});
    call.tensor("result", result, {1});
    call.enqueue(
        [=](const Running &) { return fromFault(nll(rows, columns, ignore_index, log_probs, labels, count, result)); });
  });
}

extern "C" plr_status plr_nll_grad(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t columns,
                                   int32_t ignore_index, const float *cotangent, const int32_t *labels,
                                   const float *count, float *result) {
  return enter(lane, "plr_nll_grad", tag, [&](Call &call) {
    call.size("rows", rows);
    call.size("columns", columns, 1);
    call.tensor("cotangent", cotangent, {1});
    call.tensor("labels", labels, {rows});
    call.tensor("count", count, {1});
    call.tensor("result", result, {rows, columns});
    call.enqueue([=](const Running &) {
      return fromFault(nllGrad(rows, columns, ignore_index, cotangent, labels, count, result));
    });
  });
}
