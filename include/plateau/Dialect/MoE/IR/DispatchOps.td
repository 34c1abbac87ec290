//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Rows on their way to the experts and back: adjoint to each other.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_DISPATCHOPS_TD
#define PLATEAU_DIALECT_MOE_IR_DISPATCHOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_DispatchOp : MoE_Op<"dispatch", [
    Pure, AttrSizedOperandSegments, AttrSizedResultSegments, MoE_Differentiable, MoE_Footprint, MoE_Collective, MoE_OnRows,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Send each token's row to its experts";
  let description = [{
    `rows` holds, for each row that this rank receives by `plan`, the row of `input` at its source; `row_values` likewise the number of its
    slot in `values` (the weight travels with its row). One pair or both are there. With an `index`, those of that iteration.

    **Constraints**
    - D1: `input` is [tokens, columns] of the plan, `rows` [any, columns] of its type, any being `?`.
    - D2: `values` is [tokens, top_k] of the plan, `row_values` [any].
    - D3: a pair has both or none, and one is there.
    - D4: the last axis of `grid` has the plan's number of ranks.
    - RO1: there is an index exactly when the plan has more than one iteration.

    **Adjoint**: `moe.combine`. **Residuals**: `plan`.
    **Footprint**: no workspace of its own; staging of all rows sent by tokens while it runs.
    **Lifespan**: created by import and `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %rows, %rp = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
    ```
  }];
  let arguments = (ins Optional<MoE_Rows>:$input, Optional<MoE_Slots>:$values, MoE_PlanType:$plan,
                       Optional<Index>:$index, FlatSymbolRefAttr:$grid);
  let results = (outs Optional<MoE_RoutedRows>:$rows, Optional<MoE_RoutedValues>:$row_values);
  let assemblyFormat = [{
    (`rows` `(` $input^ `:` type($input) `->` type($rows) `)`)?
    (`values` `(` $values^ `:` type($values) `->` type($row_values) `)`)?
    `by` $plan (`at` $index^)? `on` $grid attr-dict `:` qualified(type($plan))
  }];
  let hasVerifier = 1;
}

def MoE_CombineOp : MoE_Op<"combine", [
    Pure, AttrSizedOperandSegments, AttrSizedResultSegments, MoE_Differentiable, MoE_Footprint, MoE_Collective, MoE_OnRows,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Bring the rows of each token home and add them";
  let description = [{
    `result[t]` is the sum of the rows that token t sent by `plan`, slots ascending, in f32, rounded once: unweighted, so that it is the exact
    adjoint of `moe.dispatch`. `values[t, j]` is the number of that slot's row in `row_values`. A slot without an expert adds nothing and
    has the value 0. One pair or both are there.

    With an `index` only the tokens of that iteration are written: all others have what `init` and `values_init` have for them.

    **Constraints**
    - CB1: `rows` is [any, columns], any being `?`, `result` [tokens, columns] of its type.
    - CB2: `row_values` is [any], `values` [tokens, top_k] of the plan.
    - CB3: a pair has both or none, and one is there.
    - CB4: the last axis of `grid` has the plan's number of ranks.
    - CB5: `init` and `values_init` have the types of their results, and are there exactly when there is an index and the result.
    - RO1: there is an index exactly when the plan has more than one iteration.

    **Adjoint**: `moe.dispatch`. **Residuals**: `plan`.
    **Footprint**: no workspace of its own; staging of all rows sent by tokens while it runs.
    **Lifespan**: created by import and `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %y = moe.combine rows(%z : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
    ```
  }];
  let arguments = (ins Optional<MoE_RoutedRows>:$rows, Optional<MoE_RoutedValues>:$row_values, MoE_PlanType:$plan,
                       Optional<Index>:$index, Optional<MoE_Rows>:$init, Optional<MoE_Slots>:$values_init, FlatSymbolRefAttr:$grid);
  let results = (outs Optional<MoE_Rows>:$result, Optional<MoE_Slots>:$values);
  let assemblyFormat = [{
    (`rows` `(` $rows^ `:` type($rows) `->` type($result) `)`)?
    (`values` `(` $row_values^ `:` type($row_values) `->` type($values) `)`)?
    `by` $plan (`at` $index^)? (`into` `(` $init^ `:` type($init) `)`)? (`values_into` `(` $values_init^ `:` type($values_init) `)`)? `on` $grid attr-dict `:` qualified(type($plan))
  }];
  let hasVerifier = 1;
}

def MoE_MigrateExpertsOp : MoE_Op<"migrate_experts", [
    Pure, MoE_Footprint, MoE_Collective, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Bring weights to the ranks that help with experts";
  let description = [{
    `result[s]` is the weights of the expert that the plan puts into helper slot s of this rank, which its own rank has in `weights`. A slot
    without an expert may hold anything: no row is there for it.

    **Constraints**
    - ME1: `weights` is [experts of a rank, ...] of the plan, the result [helper slots, ...] of its type.
    - ME2: the last axis of `grid` has the plan's number of ranks, and the plan has helper slots.

    **Adjoint**: none (it comes after differentiation; `moe.return_expert_grads` brings gradients back).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-pipeline-dispatch`; gone after lowering.

    Example:
    ```mlir
    %wh = moe.migrate_experts %w by %plan on @experts : (tensor<2x6x4xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1>) -> tensor<1x6x4xf32>
    ```
  }];
  let arguments = (ins MoE_ExpertWeights:$weights, MoE_PlanType:$plan, FlatSymbolRefAttr:$grid);
  let results = (outs MoE_ExpertWeights:$result);
  let assemblyFormat = "$weights `by` $plan `on` $grid attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def MoE_ReturnExpertGradsOp : MoE_Op<"return_expert_grads", [
    Pure, AllTypesMatch<["grads", "result"]>, MoE_FootprintWorkspace, MoE_Collective,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Add the gradients of helpers to those of the experts' own ranks";
  let description = [{
    `result[e]` is `grads[e]` plus, for each rank in order and each of its helper slots in order that holds this rank's expert e, that slot's
    part of the rank's `helper_grads`, added one by one in f32.

    **Constraints**
    - RG1: `grads` is [experts of a rank, ...] of the plan in f32, `helper_grads` [helper slots, ...] likewise.
    - RG2: the last axis of `grid` has the plan's number of ranks, and the plan has helper slots.

    **Adjoint**: none (it comes after differentiation).
    **Footprint**: one expert's gradient on its way. The result takes the buffer of `grads`.
    **Lifespan**: created by `moe-pipeline-dispatch`; gone after lowering.

    Example:
    ```mlir
    %sum = moe.return_expert_grads %dw, %dwh by %plan on @experts : tensor<2x6x4xf32>, tensor<1x6x4xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1>
    ```
  }];
  let arguments = (ins MoE_ExpertWeights:$grads, MoE_ExpertWeights:$helper_grads, MoE_PlanType:$plan, FlatSymbolRefAttr:$grid);
  let results = (outs MoE_ExpertWeights:$result);
  let assemblyFormat = [{
    $grads `,` $helper_grads `by` $plan `on` $grid attr-dict `:` type($grads) `,` type($helper_grads) `,` qualified(type($plan))
  }];
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_DISPATCHOPS_TD
