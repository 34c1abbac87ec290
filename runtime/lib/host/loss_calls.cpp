//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "host/vocabulary_argument.h"
#include <cmath>

using namespace plateau::rt::host;

static void refuseNumber(Call &call, const char *what, float value, const char *rule) {
  call.refuse(std::string(what) + " is " + std::to_string(value) + ", but must be " + rule);
}

plr_vocabulary plateau::rt::host::takeVocabulary(Call &call, const plr_vocabulary *vocabulary) {
  if (!vocabulary) {
    call.refuse("the vocabulary is null");
    return {};
  }
  call.size("size", vocabulary->size, 1);
  if (vocabulary->size > INT32_MAX)
    call.refuse("size is " + std::to_string(vocabulary->size) + ", but labels have 32 bits");
  if (float value = vocabulary->label_smoothing; !(value >= 0 && value < 1))
    refuseNumber(call, "label_smoothing", value, "at least 0 and less than 1");
  if (float value = vocabulary->z_loss; !(value >= 0 && std::isfinite(value)))
    refuseNumber(call, "z_loss", value, "at least 0 and finite");
  if (float value = vocabulary->softcap; !(value >= 0 && std::isfinite(value)))
    refuseNumber(call, "softcap", value, "at least 0 and finite; 0 caps nothing");
  return *vocabulary;
}

/// Of a loss over whole rows: all columns that exist are there.
static plr_vocabulary takeWhole(Call &call, const plr_vocabulary *vocabulary, int64_t rows, int64_t columns) {
  plr_vocabulary taken = takeVocabulary(call, vocabulary);
  call.size("rows", rows);
  call.size("columns", columns, 1);
  if (!call.isRefused() && taken.size > columns)
    call.refuse("size is " + std::to_string(taken.size) + ", but a row has " + std::to_string(columns) + " columns");
  return taken;
}

extern "C" plr_status plr_log_softmax(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary,
                                      int64_t rows, int64_t columns, const float *input, const float *bias,
                                      float *result, float *lse) {
  return enter(lane, "plr_log_softmax", tag, [&](Call &call) {
    const plr_vocabulary taken = takeWhole(call, vocabulary, rows, columns);
    call.tensor("input", input, {rows, columns});
    call.tensor("result", result, {rows, columns});
    call.tensor("lse", lse, {rows});
    call.enqueue([=](const Running &) -> Outcome {
      logSoftmax(taken, rows, columns, input, bias, result, lse);
      return {};
    });
  });
}

extern "C" plr_status plr_log_softmax_grad(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary,
                                           int64_t rows, int64_t columns, const float *cotangent,
                                           const float *lse_cotangent, const float *output, const float *lse,
                                           float *result, float *bias_grad) {
  return enter(lane, "plr_log_softmax_grad", tag, [&](Call &call) {
    const plr_vocabulary taken = takeWhole(call, vocabulary, rows, columns);
    call.tensor("cotangent", cotangent, {rows, columns});
    call.tensor("output", output, {rows, columns});
    if (taken.softcap != 0)
      call.tensor("lse", lse, {rows});
    call.tensor("result", result, {rows, columns});
    call.enqueue([=](const Running &) -> Outcome {
      logSoftmaxGrad(taken, rows, columns, cotangent, lse_cotangent, output, lse, result, bias_grad);
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

extern "C" plr_status plr_nll(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, int64_t rows,
                              int64_t columns, const float *log_probs, const float *lse, const int32_t *labels,
                              float *losses) {
  return enter(lane, "plr_nll", tag, [&](Call &call) {
    const plr_vocabulary taken = takeWhole(call, vocabulary, rows, columns);
    call.tensor("log_probs", log_probs, {rows, columns});
    if (taken.z_loss != 0)
      call.tensor("lse", lse, {rows});
    call.tensor("labels", labels, {rows});
    call.tensor("losses", losses, {rows});
    call.enqueue([=](const Running &) { return fromFault(nll(taken, rows, columns, log_probs, lse, labels, losses)); });
  });
}

extern "C" plr_status plr_nll_grad(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary, int64_t rows,
                                   int64_t columns, const float *cotangents, const float *lse, const int32_t *labels,
                                   float *log_probs_grad, float *lse_grad) {
  return enter(lane, "plr_nll_grad", tag, [&](Call &call) {
    const plr_vocabulary taken = takeWhole(call, vocabulary, rows, columns);
    call.tensor("cotangents", cotangents, {rows});
    if (taken.z_loss != 0) {
      call.tensor("lse", lse, {rows});
      call.tensor("lse_grad", lse_grad, {rows});
    }
    call.tensor("labels", labels, {rows});
    call.tensor("log_probs_grad", log_probs_grad, {rows, columns});
    call.enqueue([=](const Running &) -> Outcome {
      nllGrad(taken, rows, columns, cotangents, lse, labels, log_probs_grad, lse_grad);
      return {};
    });
  });
}

extern "C" plr_status plr_mean_loss(plr_lane *lane, const plr_tag *tag, int64_t rows, const float *losses,
                                    const float *weights, const float *count, float *result) {
  return enter(lane, "plr_mean_loss", tag, [&](Call &call) {
    call.size("rows", rows);
    call.tensor("losses", losses, {rows});
    call.tensor("count", count, {1});
    call.tensor("result", result, {1});
    call.enqueue([=](const Running &) -> Outcome {
      meanLoss(rows, losses, weights, count, result);
      return {};
    });
  });
}

extern "C" plr_status plr_mean_loss_grad(plr_lane *lane, const plr_tag *tag, int64_t rows, const float *cotangent,
                                         const float *weights, const float *count, float *result) {
  return enter(lane, "plr_mean_loss_grad", tag, [&](Call &call) {
    call.size("rows", rows);
    call.tensor("cotangent", cotangent, {1});
    call.tensor("count", count, {1});
    call.tensor("result", result, {rows});
    call.enqueue([=](const Running &) -> Outcome {
      meanLossGrad(rows, cotangent, weights, count, result);
      return {};
    });
  });
}
