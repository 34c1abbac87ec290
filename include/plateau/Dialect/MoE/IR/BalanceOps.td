//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What keeps the loads of experts even: losses on the router's logits, and the bias of its selection.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_BALANCEOPS_TD
#define PLATEAU_DIALECT_MOE_IR_BALANCEOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_BalanceLossOp : MoE_Op<"balance_loss", [Pure, AttrSizedOperandSegments, MoE_Differentiable, MoE_Footprint]> {
  let summary = "A rank's share of the loss that evens out experts";
  let description = [{
    With c_e the routes to expert e, s the scores of the rank's own tokens, E experts and k = `top_k` of `routing`:

        result = coefficient · E · k / (Σ_e c_e)² · Σ_e c_e · Σ_t s_te

    summed in float64 and rounded once; 0 when no route was chosen. That is `coefficient · E · Σ_e f_e · P_e` with f_e = c_e / Σ c the
    part of the routes that goes to e, P_e the mean score of e, over Σ c / k tokens. It is `coefficient` when the counts are
    even. The score is the softmax of a token's logits (`softmax`, `top_k_softmax`), or its sigmoids over their sum plus 1e-20
    (`sigmoid`).

    - With `counts`, of all ranks: the sum of the shares of all ranks is the loss of all their tokens.
    - With `ids`: the tokens are sequences of `sequence` each. The c_e are counted in each sequence from its ids, of which −1 is
      no route; any other id that is no expert is an error when the step runs. The result is the sum over the rank's sequences
      divided by `sequences`, their number on all ranks.

    Counts and ids have no derivative.

    **Constraints**
    - BL1: there is one of `counts` and `ids`; `counts` is as long as a row of logits, `ids` is [tokens, top_k]. A row has at least
      one logit.
    - BL2: `sequence` and `sequences` are there exactly when `ids` are; `sequence` divides the tokens, and there are at least as many
      `sequences` as those of the rank.
    - BL3: `coefficient` is finite and not negative.

    **Adjoint**: `moe.balance_loss_grad`. **Residuals**: `logits`, and `counts` or `ids`.
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %share = moe.balance_loss %logits counts(%counts) coefficient(1.0e-02) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<1024x8xf32>, tensor<8xi32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$logits, Optional<MoE_Counts>:$counts, Optional<MoE_SlotIds>:$ids,
    OptionalAttr<I64Attr>:$sequence, OptionalAttr<I64Attr>:$sequences, F32Attr:$coefficient, MoE_RoutingAttr:$routing);
  let results = (outs MoE_Scalar:$result);
  let assemblyFormat = [{
    $logits (`counts` `(` $counts^ `)`)? (`ids` `(` $ids^ `)`)? (`sequence` `(` $sequence^ `)`)? (`sequences` `(` $sequences^ `)`)?
    `coefficient` `(` $coefficient `)` `routing` $routing attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_BalanceLossGradOp : MoE_Op<"balance_loss_grad", [Pure, AttrSizedOperandSegments, MoE_Footprint]> {
  let summary = "The adjoint of moe.balance_loss";
  let description = [{
    The derivative of the share by the logits, times `cotangent`. With w = coefficient · E · k / (Σ c)² (divided by `sequences`, and of
    the token's sequence, where there are sequences) and m = Σ_e c_e · s_te:

        softmax: result_te = cotangent · w · s_te · (c_e − m)
        sigmoid: result_te = cotangent · w · s_te · (c_e − m) · (1 − σ(logit_te))

    Zero when no route was chosen.

    **Constraints**
    - BLG1: as BL1; the result has the type of `logits`.
    - BLG2: as BL2.
    - BLG3: as BL3.

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %d = moe.balance_loss_grad %one, %logits ids(%ids) sequence(4) sequences(8) coefficient(1.0e-02) routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins MoE_Scalar:$cotangent, MoE_RowsF32:$logits, Optional<MoE_Counts>:$counts, Optional<MoE_SlotIds>:$ids,
    OptionalAttr<I64Attr>:$sequence, OptionalAttr<I64Attr>:$sequences, F32Attr:$coefficient, MoE_RoutingAttr:$routing);
  let results = (outs MoE_RowsF32:$result);
  let assemblyFormat = [{
    $cotangent `,` $logits (`counts` `(` $counts^ `)`)? (`ids` `(` $ids^ `)`)? (`sequence` `(` $sequence^ `)`)?
    (`sequences` `(` $sequences^ `)`)? `coefficient` `(` $coefficient `)` `routing` $routing attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_ZLossOp : MoE_Op<"z_loss", [Pure, MoE_Differentiable, MoE_Footprint]> {
  let summary = "A rank's share of the loss that keeps a router's logits small";
  let description = [{
    `result = coefficient / tokens · Σ_t (log Σ_e exp(logits_te))²` over the rank's own tokens, summed in float64 and rounded once.
    `tokens` is the number on all ranks, so that the sum of the shares is the mean over them times `coefficient`.

    **Constraints**
    - ZL1: a row of logits has at least one.
    - ZL2: `tokens` is at least 1, and at least the number of rows.
    - ZL3: `coefficient` is finite and not negative.

    **Adjoint**: `moe.z_loss_grad`. **Residuals**: `logits`.
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %share = moe.z_loss %logits tokens(4096) coefficient(1.0e-03) : tensor<1024x8xf32>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$logits, I64Attr:$tokens, F32Attr:$coefficient);
  let results = (outs MoE_Scalar:$result);
  let assemblyFormat = "$logits `tokens` `(` $tokens `)` `coefficient` `(` $coefficient `)` attr-dict `:` type($logits)";
  let hasVerifier = 1;
}

def MoE_ZLossGradOp : MoE_Op<"z_loss_grad", [Pure, AllTypesMatch<["logits", "result"]>, MoE_Footprint]> {
  let summary = "The adjoint of moe.z_loss";
  let description = [{
    `result_te = cotangent · 2 · coefficient / tokens · z_t · exp(logits_te − z_t)` with `z_t = log Σ_e exp(logits_te)`.

    **Constraints**
    - ZLG1: as ZL1; the result has the type of `logits`.
    - ZLG2: as ZL2.
    - ZLG3: as ZL3.

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %d = moe.z_loss_grad %one, %logits tokens(4096) coefficient(1.0e-03) : tensor<1024x8xf32>
    ```
  }];
  let arguments = (ins MoE_Scalar:$cotangent, MoE_RowsF32:$logits, I64Attr:$tokens, F32Attr:$coefficient);
  let results = (outs MoE_RowsF32:$result);
  let assemblyFormat = [{
    $cotangent `,` $logits `tokens` `(` $tokens `)` `coefficient` `(` $coefficient `)` attr-dict `:` type($logits)
  }];
  let hasVerifier = 1;
}

def MoE_UpdateBiasOp : MoE_Op<"update_bias", [Pure, AllTypesMatch<["bias", "result"]>, MoE_Footprint]> {
  let summary = "Move the bias of a router's selection against the loads";
  let description = [{
    `result_e = bias_e + rate · sign(Σ counts − E · counts_e)` for E experts, the sign in whole numbers and the sum in f32: an
    expert with less than the mean load becomes easier to choose, one with more harder. `counts` are those of a step, summed
    over all ranks. When `factor` is not finite nothing changes, as in `moe.adamw`.

    **Constraints**
    - UB1: `counts` is as long as `bias`; the result has its type.
    - UB2: `rate` is finite and not negative.

    **Adjoint**: none (created after differentiation).
    **Footprint**: no workspace; the result takes the buffer of `bias`.
    **Lifespan**: created by `moe-attach-optimizer`; gone after lowering.

    Example:
    ```mlir
    %new = moe.update_bias %bias, %counts scale %factor rate(1.0e-03) : tensor<8xf32>, tensor<8xi32>
    ```
  }];
  let arguments = (ins MoE_VectorF32:$bias, MoE_Counts:$counts, MoE_Scalar:$factor, F32Attr:$rate);
  let results = (outs MoE_VectorF32:$result);
  let assemblyFormat = [{
    $bias `,` $counts `scale` $factor `rate` `(` $rate `)` attr-dict `:` type($bias) `,` type($counts)
  }];
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_BALANCEOPS_TD
