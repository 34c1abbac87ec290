//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/call.h"
#include "host/kernels.h"
#include "plateau/runtime_footprint.h"
#include <cmath>

using namespace plateau::rt::host;

/// Pairs of a query row and a key row that it sees: row i sees rows starts[i] ... i.
static int64_t countVisible(int64_t rows, const int32_t *starts) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < rows; ++i)
    pairs += i - starts[i] + 1;
  return pairs;
}

static void checkShape(Call &call, plr_type type, int64_t rows, int64_t queryHeads, int64_t keyHeads, int64_t headSize,
                       float scale) {
  call.type("type", type);
  call.size("rows", rows);
  if (rows > INT32_MAX)
    call.refuse("rows is " + std::to_string(rows) + ", but document starts have 32 bits");
  call.size("query_heads", queryHeads, 1);
  call.size("key_heads", keyHeads, 1);
  call.size("head_size", headSize, 1);
  if (!call.isRefused() && queryHeads % keyHeads != 0)
    call.refuse("query_heads is " + std::to_string(queryHeads) + ", which is no multiple of key_heads, " +
                std::to_string(keyHeads));
  call.require(std::isfinite(scale), "scale must be a number");
}

extern "C" plr_status plr_attention(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows,
                                    int64_t query_heads, int64_t key_heads, int64_t head_size, float scale,
                                    const void *query, const void *key, const void *value, const int32_t *starts,
                                    void *output, float *lse, void *workspace, int64_t workspace_bytes) {
  return enter(lane, "plr_attention", tag, [&](Call &call) {
    checkShape(call, type, rows, query_heads, key_heads, head_size, scale);
    call.tensor("query", query, {rows, query_heads, head_size});
    call.tensor("key", key, {rows, key_heads, head_size});
    call.tensor("value", value, {rows, key_heads, head_size});
    call.tensor("starts", starts, {rows});
    call.tensor("output", output, {rows, query_heads, head_size});
    call.tensor("lse", lse, {rows, query_heads});
    if (!call.isRefused())
      call.workspace(workspace, workspace_bytes, plr_footprint_attention(rows, query_heads, key_heads, head_size));
    call.enqueue([=](const Running &running) {
      Outcome outcome = fromFault(attention(type, rows, query_heads, key_heads, head_size, scale, query, key, value,
                                            starts, output, lse, workspace));
      // Two products a pair: query by key, and weight by value.
      if (running.span && outcome.status == PLR_OK)
        running.span->flops = 4 * head_size * query_heads * countVisible(rows, starts);
      return outcome;
    });
  });
}

extern "C" plr_status plr_attention_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows,
                                         int64_t query_heads, int64_t key_heads, int64_t head_size, float scale,
                                         const void *cotangent, const void *query, const void *key, const void *value,
                                         const int32_t *starts, const void *output, const float *lse, void *query_grad,
                                         void *key_grad, void *value_grad, void *workspace, int64_t workspace_bytes) {
  return enter(lane, "plr_attention_grad", tag, [&](Call &call) {
    checkShape(call, type, rows, query_heads, key_heads, head_size, scale);
    call.tensor("cotangent", cotangent, {rows, query_heads, head_size});
    call.tensor("query", query, {rows, query_heads, head_size});
    call.tensor("key", key, {rows, key_heads, head_size});
    call.tensor("value", value, {rows, key_heads, head_size});
    call.tensor("starts", starts, {rows});
    call.tensor("output", output, {rows, query_heads, head_size});
    call.tensor("lse", lse, {rows, query_heads});
    call.tensor("query_grad", query_grad, {rows, query_heads, head_size});
    call.tensor("key_grad", key_grad, {rows, key_heads, head_size});
    call.tensor("value_grad", value_grad, {rows, key_heads, head_size});
    if (!call.isRefused())
      call.workspace(workspace, workspace_bytes, plr_footprint_attention_grad(rows, query_heads, key_heads, head_size));
    call.enqueue([=](const Running &running) {
      Outcome outcome =
          fromFault(attentionGrad(type, rows, query_heads, key_heads, head_size, scale, cotangent, query, key, value,
                                  starts, output, lse, query_grad, key_grad, value_grad, workspace));
      // Five products a pair: the scores again, the weights' gradient, and one for each operand's gradient.
      if (running.span && outcome.status == PLR_OK)
        running.span->flops = 10 * head_size * query_heads * countVisible(rows, starts);
      return outcome;
    });
  });
}
