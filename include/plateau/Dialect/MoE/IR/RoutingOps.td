//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which experts a token goes to, with which weights.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_ROUTINGOPS_TD
#define PLATEAU_DIALECT_MOE_IR_ROUTINGOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_RouteOp : MoE_Op<"route", [
    Pure, AttrSizedOperandSegments, MoE_Differentiable, MoE_Footprint, MoE_SavedByCheckpoint]> {
  let summary = "Choose top_k experts for each token, with weights and counts";
  let description = [{
    For each token, from its logits, with the fields of `routing`:

    1. score: `softmax` over all experts; `sigmoid` of each logit; with `top_k_softmax` the logit itself chooses.
    2. selection value = score + `bias` (when there is one). With `groups` > 1 the experts lie in equal groups, in order; a group is worth
       the sum of its two best selection values (its only one, when it has one); all but the `kept_groups` best groups are
       masked with −inf.
    3. `ids` = the `top_k` experts of greatest selection value, in descending order; among equals the lower index. NaN is less than
       every number; ids are distinct and legal whatever the logits.
    4. `weights` = the scores of those experts, without the bias (`top_k_softmax`: softmax over the chosen logits); with `normalize`
       divided by their sum (`sigmoid`: plus 1e-20); times `scale`.

    With `token_count` only that many rows are tokens and the others are padding: their ids are −1 and their weights 0. A number that
    is negative or above the rows is an error when the step runs.

    `counts[e]` is the number of slots that chose e. In a checkpoint region the results are kept, so routing is never decided twice.

    **Constraints**
    - RE1: `ids` and `weights` are [tokens, top_k], `counts` and `bias` as long as a row of logits.
    - RE2: the experts divide into `groups`, and those kept hold at least `top_k` experts.

    **Adjoint**: `moe.route_grad`, of `weights` by `logits`. **Residuals**: `logits`, `ids`.
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %ids, %weights, %counts = moe.route %logits routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<1024x8xf32>) -> (tensor<1024x2xi32>, tensor<1024x2xf32>, tensor<8xi32>)
    ```
  }];
  let arguments = (ins MoE_RowsF32:$logits, Optional<MoE_VectorF32>:$bias, Optional<MoE_Counter>:$token_count,
    MoE_RoutingAttr:$routing);
  let results = (outs MoE_SlotIds:$ids, MoE_Slots:$weights, MoE_Counts:$counts);
  let assemblyFormat = [{
    $logits (`bias` `(` $bias^ `)`)? (`token_count` `(` $token_count^ `)`)? `routing` $routing attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_RouteGradOp : MoE_Op<"route_grad", [Pure, MoE_Footprint]> {
  let summary = "The adjoint of moe.route";
  let description = [{
    The derivative of the weights of the chosen `ids` by all logits, times `cotangent`; the choice itself has none. A slot with id −1
    counts as no choice.

    **Constraints**
    - REG1: `cotangent` and `ids` are [tokens, top_k]; the result has the type of `logits`.

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %dlogits = moe.route_grad %dweights, %logits, %ids routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x2xf32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins MoE_Slots:$cotangent, MoE_RowsF32:$logits, MoE_SlotIds:$ids, MoE_RoutingAttr:$routing);
  let results = (outs MoE_RowsF32:$result);
  let assemblyFormat = [{
    $cotangent `,` $logits `,` $ids `routing` $routing attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_PlanOp : MoE_Op<"plan", [
    Pure, MoE_Footprint, MoE_Collective, MoE_SavedByCheckpoint, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Agree with the other ranks where rows go";
  let description = [{
    The ranks along the last axis of `grid` hold the experts in equal parts, in order. Slot j of token t sends row t to the rank of
    expert `ids[t, j]`; −1 sends nothing, any other id that is no expert is an error when the step runs. A token may name one expert
    twice. The rows that a rank receives lie by expert, then by source rank, token and slot. Ranks exchange their counts; the
    host waits for them.

    With `balance` the least-loaded plan gives rows of experts whose rank is too full to ranks with a free helper slot; which rows, follows
    from the exchanged counts alone. A helper's experts lie behind its own, in the order of its slots. With several iterations the rows of
    each lie as if the others did not exist.

    **Constraints**
    - P1: `ids` is [tokens, top_k] of the plan.
    - P2: the last axis of `grid` has the plan's number of ranks.
    - P3: there are helper slots exactly when there is a `balance`.

    **Adjoint**: none (integers).
    **Footprint**: no workspace; a table of 4 bytes for each slot, and counts of each iteration, rank and expert.
    **Lifespan**: created by import; `moe-pipeline-dispatch` gives it iterations and balance; gone after lowering.

    Example:
    ```mlir
    %plan = moe.plan %ids on @experts : tensor<1024x2xi32> -> !moe.plan<experts = 8, ranks = 4, tokens = 1024, top_k = 2>
    ```
  }];
  let arguments = (ins MoE_SlotIds:$ids, FlatSymbolRefAttr:$grid, OptionalAttr<MoE_LeastLoadedAttr>:$balance);
  let results = (outs MoE_PlanType:$plan);
  let assemblyFormat = "$ids (`balance` $balance^)? `on` $grid attr-dict `:` type($ids) `->` qualified(type($plan))";
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_ROUTINGOPS_TD
