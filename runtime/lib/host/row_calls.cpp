//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/call.h"
#include "host/kernels.h"
#include "plateau/runtime_footprint.h"
#include <cmath>

using namespace plateau::rt::host;

/// Token ids index rows with 32 bits, and so do the tables that kernels keep of them.
static void tokens(Call &call, const char *what, int64_t value) {
  call.size(what, value);
  if (value > INT32_MAX)
    call.refuse(std::string(what) + " is " + std::to_string(value) + ", but must fit 32 bits");
}

extern "C" plr_status plr_embedding(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                                    int64_t vocabulary, const void *table, const int32_t *ids, void *result) {
  return enter(lane, "plr_embedding", tag, [&](Call &call) {
    call.type("type", type);
    tokens(call, "rows", rows);
    call.size("columns", columns);
    tokens(call, "vocabulary", vocabulary);
    call.tensor("table", table, {vocabulary, columns});
    call.tensor("ids", ids, {rows});
    call.tensor("result", result, {rows, columns});
    call.enqueue(
        [=](const Running &) { return fromFault(embedding(type, rows, columns, vocabulary, table, ids, result)); });
  });
}

extern "C" plr_status plr_embedding_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows,
                                         int64_t columns, int64_t vocabulary, const void *cotangent, const int32_t *ids,
                                         void *result, void *workspace, int64_t workspace_bytes) {
  return enter(lane, "plr_embedding_grad", tag, [&](Call &call) {
    call.type("type", type);
    tokens(call, "rows", rows);
    call.size("columns", columns);
    tokens(call, "vocabulary", vocabulary);
    call.tensor("cotangent", cotangent, {rows, columns});
    call.tensor("ids", ids, {rows});
    call.tensor("result", result, {vocabulary, columns});
    if (!call.isRefused())
      call.workspace(workspace, workspace_bytes, plr_footprint_embedding_grad(rows, vocabulary, columns));
    call.enqueue([=](const Running &) {
      return fromFault(embeddingGrad(type, rows, columns, vocabulary, cotangent, ids, result, workspace));
    });
  });
}

extern "C" plr_status plr_embedding_shard(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows,
                                          int64_t columns, int64_t shard_rows, int64_t vocabulary, const int32_t *first,
                                          const void *shard, const int32_t *ids, void *result) {
  return enter(lane, "plr_embedding_shard", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("columns", columns);
    tokens(call, "shard_rows", shard_rows);
    tokens(call, "vocabulary", vocabulary);
    call.tensor("first", first, {1});
    call.tensor("shard", shard, {shard_rows, columns});
    call.tensor("ids", ids, {rows});
    call.tensor("result", result, {rows, columns});
    call.enqueue([=](const Running &) {
      return fromFault(embeddingShard(type, rows, columns, shard_rows, vocabulary, first, shard, ids, result));
    });
  });
}

extern "C" plr_status plr_embedding_shard_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows,
                                               int64_t columns, int64_t shard_rows, const int32_t *first,
                                               const void *cotangent, const int32_t *ids, float *sums) {
  return enter(lane, "plr_embedding_shard_grad", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("columns", columns);
    tokens(call, "shard_rows", shard_rows);
    call.tensor("first", first, {1});
    call.tensor("cotangent", cotangent, {rows, columns});
    call.tensor("ids", ids, {rows});
    call.tensor("sums", sums, {shard_rows, columns});
    call.enqueue([=](const Running &) -> Outcome {
      embeddingShardGrad(type, rows, columns, shard_rows, first, cotangent, ids, sums);
      return {};
    });
  });
}

extern "C" plr_status plr_rms_norm(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                                   float epsilon, const void *input, const void *weight, void *output, float *inverse) {
  return enter(lane, "plr_rms_norm", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("columns", columns, 1);
    call.require(epsilon >= 0 && std::isfinite(epsilon), "epsilon must be a number that is not negative");
    call.tensor("input", input, {rows, columns});
    call.tensor("weight", weight, {columns});
    call.tensor("output", output, {rows, columns});
    call.tensor("inverse", inverse, {rows});
    call.enqueue([=](const Running &) -> Outcome {
      rmsNorm(type, rows, columns, epsilon, input, weight, output, inverse);
      return {};
    });
  });
}

extern "C" plr_status plr_rms_norm_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows,
                                        int64_t columns, const void *cotangent, const void *input, const void *weight,
                                        const float *inverse, void *input_grad, void *weight_grad, void *workspace,
                                        int64_t workspace_bytes) {
  return enter(lane, "plr_rms_norm_grad", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("columns", columns, 1);
    call.tensor("cotangent", cotangent, {rows, columns});
    call.tensor("input", input, {rows, columns});
    call.tensor("weight", weight, {columns});
    call.tensor("inverse", inverse, {rows});
    call.tensor("input_grad", input_grad, {rows, columns});
    call.tensor("weight_grad", weight_grad, {columns});
    if (!call.isRefused())
      call.workspace(workspace, workspace_bytes, plr_footprint_rms_norm_grad(columns));
    call.enqueue([=](const Running &) -> Outcome {
      rmsNormGrad(type, rows, columns, cotangent, input, weight, inverse, input_grad, weight_grad, workspace);
      return {};
    });
  });
}

extern "C" plr_status plr_rotary_table(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t half, double theta,
                                       const int32_t *positions, float *cos, float *sin) {
  return enter(lane, "plr_rotary_table", tag, [&](Call &call) {
    call.size("rows", rows);
    call.size("half", half);
    call.require(theta > 0 && std::isfinite(theta), "theta must be a positive number");
    call.tensor("positions", positions, {rows});
    call.tensor("cos", cos, {rows, half});
    call.tensor("sin", sin, {rows, half});
    call.enqueue([=](const Running &) -> Outcome {
      rotaryTable(rows, half, theta, positions, cos, sin);
      return {};
    });
  });
}

extern "C" plr_status plr_rotary(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t heads,
                                 int64_t half, int32_t inverse, const void *input, const float *cos, const float *sin,
                                 void *result) {
  return enter(lane, "plr_rotary", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("heads", heads);
    call.size("half", half);
    call.flag("inverse", inverse);
    call.tensor("input", input, {rows, heads, 2, half});
    call.tensor("cos", cos, {rows, half});
    call.tensor("sin", sin, {rows, half});
    call.tensor("result", result, {rows, heads, 2, half});
    call.enqueue([=](const Running &) -> Outcome {
      rotary(type, rows, heads, half, inverse != 0, input, cos, sin, result);
      return {};
    });
  });
}
