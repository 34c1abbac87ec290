//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/call.h"
#include "host/kernels.h"
#include <cmath>

using namespace plateau::rt::host;

/// A factor of a loss, or of an update.
static void checkFactor(Call &call, const char *what, float factor) {
  if (!std::isfinite(factor) || factor < 0)
    call.refuse(std::string(what) + " is " + std::to_string(factor) + ", but must be finite and not negative");
}

/// The arguments that the loss and its adjoint have in common.
static void check(Call &call, const plr_balance *balance, int64_t tokens, const float *logits, const int32_t *counts,
                  const int32_t *ids) {
  call.require(balance, "the balance is null");
  call.size("tokens", tokens);
  if (call.isRefused())
    return;
  const plr_balance &b = *balance;
  call.size("experts", b.experts, 1);
  call.size("top_k", b.top_k, 1);
  if (b.score != PLR_SOFTMAX && b.score != PLR_TOP_K_SOFTMAX && b.score != PLR_SIGMOID)
    call.refuse("score is " + std::to_string(b.score) + ", but must be 0 (softmax), 1 (top-k softmax) or 2 (sigmoid)");
  checkFactor(call, "coefficient", b.coefficient);
  call.require(!counts != !ids, "there must be counts or ids, and not both");
  if (call.isRefused())
    return;
  call.tensor("logits", logits, {tokens, b.experts});
  if (counts)
    return;
  call.size("sequence", b.sequence, 1);
  call.size("sequences", b.sequences, 1);
  if (!call.isRefused() && tokens % b.sequence)
    call.refuse("sequence is " + std::to_string(b.sequence) + ", but must divide tokens, " + std::to_string(tokens));
  call.tensor("ids", ids, {tokens, b.top_k});
}

extern "C" plr_status plr_balance_loss(plr_lane *lane, const plr_tag *tag, const plr_balance *balance, int64_t tokens,
                                       const float *logits, const int32_t *counts, const int32_t *ids, float *result) {
  return enter(lane, "plr_balance_loss", tag, [&](Call &call) {
    check(call, balance, tokens, logits, counts, ids);
    if (call.isRefused())
      return;
    call.tensor("result", result, {1});
    call.enqueue([=, balance = *balance](const Running &) {
      return fromFault(balanceLoss(balance, tokens, logits, counts, ids, result));
    });
  });
}

extern "C" plr_status plr_balance_loss_grad(plr_lane *lane, const plr_tag *tag, const plr_balance *balance,
                                            int64_t tokens, const float *cotangent, const float *logits,
                                            const int32_t *counts, const int32_t *ids, float *logits_grad) {
  return enter(lane, "plr_balance_loss_grad", tag, [&](Call &call) {
    check(call, balance, tokens, logits, counts, ids);
    if (call.isRefused())
      return;
    call.tensor("cotangent", cotangent, {1});
    call.tensor("logits_grad", logits_grad, {tokens, balance->experts});
    call.enqueue([=, balance = *balance](const Running &) {
      return fromFault(balanceLossGrad(balance, tokens, cotangent, logits, counts, ids, logits_grad));
    });
  });
}

/// The arguments that the loss on the size of logits and its adjoint have in common.
static void checkZLoss(Call &call, int64_t rows, int64_t experts, int64_t tokens, float coefficient,
                       const float *logits) {
  call.size("rows", rows);
  call.size("experts", experts, 1);
  call.size("tokens", tokens, 1);
  checkFactor(call, "coefficient", coefficient);
  call.tensor("logits", logits, {rows, experts});
}

extern "C" plr_status plr_z_loss(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t experts, int64_t tokens,
                                 float coefficient, const float *logits, float *result) {
  return enter(lane, "plr_z_loss", tag, [&](Call &call) {
    checkZLoss(call, rows, experts, tokens, coefficient, logits);
    call.tensor("result", result, {1});
    call.enqueue([=](const Running &) -> Outcome {
      zLoss(rows, experts, tokens, coefficient, logits, result);
      return {};
    });
  });
}

extern "C" plr_status plr_z_loss_grad(plr_lane *lane, const plr_tag *tag, int64_t rows, int64_t experts, int64_t tokens,
                                      float coefficient, const float *cotangent, const float *logits,
                                      float *logits_grad) {
  return enter(lane, "plr_z_loss_grad", tag, [&](Call &call) {
    checkZLoss(call, rows, experts, tokens, coefficient, logits);
    call.tensor("cotangent", cotangent, {1});
    call.tensor("logits_grad", logits_grad, {rows, experts});
    call.enqueue([=](const Running &) -> Outcome {
      zLossGrad(rows, experts, tokens, coefficient, cotangent, logits, logits_grad);
      return {};
    });
  });
}

extern "C" plr_status plr_update_bias(plr_lane *lane, const plr_tag *tag, int64_t experts, float rate,
                                      const int32_t *counts, const float *factor, float *bias) {
  return enter(lane, "plr_update_bias", tag, [&](Call &call) {
    call.size("experts", experts);
    checkFactor(call, "rate", rate);
    call.tensor("counts", counts, {experts});
    call.tensor("factor", factor, {1});
    call.tensor("bias", bias, {experts});
    call.enqueue([=](const Running &) -> Outcome {
      updateBias(experts, rate, counts, factor, bias);
      return {};
    });
  });
}
