//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/call.h"
#include "host/kernels.h"
#include "host/simd/variants.h"
#include <algorithm>
#include <cmath>

using namespace plateau::rt::host;

static void check(Call &call, const plr_routing *routing) {
  call.require(routing, "the routing is null");
  if (call.isRefused())
    return;
  const plr_routing &r = *routing;
  auto refuse = [&](const char *what, int64_t value, const std::string &rule) {
    if (!call.isRefused())
      call.refuse(std::string(what) + " is " + std::to_string(value) + ", but " + rule);
  };
  call.size("experts", r.experts, 1);
  if (r.experts > INT32_MAX)
    refuse("experts", r.experts, "must fit 32 bits");
  call.size("top_k", r.top_k, 1);
  call.size("expert_groups", r.expert_groups, 1);
  call.size("kept_groups", r.kept_groups, 1);
  if (call.isRefused())
    return;
  if (r.experts % r.expert_groups != 0)
    refuse("expert_groups", r.expert_groups, "must divide experts, " + std::to_string(r.experts));
  if (r.kept_groups > r.expert_groups)
    refuse("kept_groups", r.kept_groups, "there are " + std::to_string(r.expert_groups) + " groups");
  if (int64_t candidates = r.experts / r.expert_groups * r.kept_groups; r.top_k > candidates)
    refuse("top_k", r.top_k, "the groups that are kept hold " + std::to_string(candidates) + " experts");
  if (r.score != PLR_SOFTMAX && r.score != PLR_TOP_K_SOFTMAX && r.score != PLR_SIGMOID)
    refuse("score", r.score, "must be 0 (softmax), 1 (top-k softmax) or 2 (sigmoid)");
  call.flag("normalize", r.normalize);
  call.require(std::isfinite(r.scale), "scale must be a number");
}

extern "C" plr_status plr_route(plr_lane *lane, const plr_tag *tag, const plr_routing *routing, int64_t tokens,
                                const float *logits, const float *bias, const int32_t *token_count, int32_t *ids,
                                float *weights, int32_t *counts) {
  return enter(lane, "plr_route", tag, [&](Call &call) {
    check(call, routing);
    call.size("tokens", tokens);
    if (call.isRefused())
      return;
    call.tensor("logits", logits, {tokens, routing->experts});
    call.tensor("ids", ids, {tokens, routing->top_k});
    call.tensor("weights", weights, {tokens, routing->top_k});
    call.tensor("counts", counts, {routing->experts});
    bool isStrict = call.getContext().config.strict != 0;
    call.enqueue([=, routing = *routing](const Running &) -> Outcome {
      int64_t count = token_count ? *token_count : tokens;
      if (count < 0 || count > tokens)
        return {PLR_BAD_DATA,
                "token_count is " + std::to_string(count) + ", which is not in 0..." + std::to_string(tokens)};
      if (isStrict)
        for (int64_t i = 0; i < count * routing.experts; ++i)
          if (!std::isfinite(logits[i]))
            return {PLR_BAD_DATA, "token " + std::to_string(i / routing.experts) + ": the logit of expert " +
                                      std::to_string(i % routing.experts) + " is " + std::to_string(logits[i])};
      route(routing, count, logits, bias, ids, weights, counts);
      std::fill(ids + count * routing.top_k, ids + tokens * routing.top_k, -1);
      std::fill(weights + count * routing.top_k, weights + tokens * routing.top_k, 0.0f);
      return {};
    });
  });
}

extern "C" plr_status plr_route_grad(plr_lane *lane, const plr_tag *tag, const plr_routing *routing, int64_t tokens,
                                     const float *cotangent, const float *logits, const int32_t *ids,
                                     float *logits_grad) {
  return enter(lane, "plr_route_grad", tag, [&](Call &call) {
    check(call, routing);
    call.size("tokens", tokens);
    if (call.isRefused())
      return;
    call.tensor("cotangent", cotangent, {tokens, routing->top_k});
    call.tensor("logits", logits, {tokens, routing->experts});
    call.tensor("ids", ids, {tokens, routing->top_k});
    call.tensor("logits_grad", logits_grad, {tokens, routing->experts});
    call.enqueue([=, routing = *routing](const Running &) {
      return fromFault(routeGrad(routing, tokens, cotangent, logits, ids, logits_grad));
    });
  });
}

extern "C" plr_status plr_swiglu(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                                 const void *input, void *result) {
  return enter(lane, "plr_swiglu", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("columns", columns);
    call.tensor("input", input, {rows, 2, columns});
    call.tensor("result", result, {rows, columns});
    call.enqueue([=](const Running &) -> Outcome {
      bestVariant().swiglu(type, rows, columns, input, result);
      return {};
    });
  });
}

extern "C" plr_status plr_swiglu_grad(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                                      const void *cotangent, const void *input, void *result) {
  return enter(lane, "plr_swiglu_grad", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("columns", columns);
    call.tensor("cotangent", cotangent, {rows, columns});
    call.tensor("input", input, {rows, 2, columns});
    call.tensor("result", result, {rows, 2, columns});
    call.enqueue([=](const Running &) -> Outcome {
      bestVariant().swigluGrad(type, rows, columns, cotangent, input, result);
      return {};
    });
  });
}

extern "C" plr_status plr_scale_rows(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                                     const void *input, const float *factors, void *result) {
  return enter(lane, "plr_scale_rows", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("columns", columns);
    call.tensor("input", input, {rows, columns});
    call.tensor("factors", factors, {rows});
    call.tensor("result", result, {rows, columns});
    call.enqueue([=](const Running &) -> Outcome {
      bestVariant().scaleRows(type, rows, columns, input, factors, result);
      return {};
    });
  });
}

extern "C" plr_status plr_row_dot(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                                  const void *a, const void *b, float *result) {
  return enter(lane, "plr_row_dot", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("columns", columns);
    call.tensor("a", a, {rows, columns});
    call.tensor("b", b, {rows, columns});
    call.tensor("result", result, {rows});
    call.enqueue([=](const Running &) -> Outcome {
      bestVariant().rowDot(type, rows, columns, a, b, result);
      return {};
    });
  });
}
