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
    Pure, AttrSizedOperandSegments, AttrSizedResultSegments, MoE_Differentiable, MoE_Footprint, MoE_Collective,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Send each token's row to its experts";
  let description = [{
    `rows` holds, for each row that this rank receives by `plan`, the row of `input` at its source; `row_values` likewise the number of its
    slot in `values` (the weight travels with its row). One pair or both are there.

    **Constraints**
    - D1: `input` is [tokens, columns] of the plan, `rows` [any, columns] of its type, any being `?`.
    - D2: `values` is [tokens, top_k] of the plan, `row_values` [any].
    - D3: a pair has both or none, and one is there.
    - D4: the last axis of `grid` has the plan's number of ranks.

    **Adjoint**: `moe.combine`. **Residuals**: `plan`.
    **Footprint**: no workspace of its own; staging of all rows sent and received while it runs.
    **Lifespan**: created by import and `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %rows, %rp = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
    ```
  }];
  let arguments = (ins Optional<MoE_Rows>:$input, Optional<MoE_Slots>:$values, MoE_PlanType:$plan, FlatSymbolRefAttr:$grid);
  let results = (outs Optional<MoE_RoutedRows>:$rows, Optional<MoE_RoutedValues>:$row_values);
  let assemblyFormat = [{
    (`rows` `(` $input^ `:` type($input) `->` type($rows) `)`)?
    (`values` `(` $values^ `:` type($values) `->` type($row_values) `)`)?
    `by` $plan `on` $grid attr-dict `:` qualified(type($plan))
  }];
  let hasVerifier = 1;
}

def MoE_CombineOp : MoE_Op<"combine", [
    Pure, AttrSizedOperandSegments, AttrSizedResultSegments, MoE_Differentiable, MoE_Footprint, MoE_Collective,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Bring the rows of each token home and add them";
  let description = [{
    `result[t]` is the sum of the rows that token t sent by `plan`, slots ascending, in f32, rounded once: unweighted, so that it is the exact
    adjoint of `moe.dispatch`. `values[t, j]` is the number of that slot's row in `row_values`. A slot without an expert adds nothing and
    has the value 0. One pair or both are there.

    **Constraints**
    - CB1: `rows` is [any, columns], any being `?`, `result` [tokens, columns] of its type.
    - CB2: `row_values` is [any], `values` [tokens, top_k] of the plan.
    - CB3: a pair has both or none, and one is there.
    - CB4: the last axis of `grid` has the plan's number of ranks.

    **Adjoint**: `moe.dispatch`. **Residuals**: `plan`.
    **Footprint**: no workspace of its own; staging of all rows sent and received while it runs.
    **Lifespan**: created by import and `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %y = moe.combine rows(%z : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
    ```
  }];
  let arguments = (ins Optional<MoE_RoutedRows>:$rows, Optional<MoE_RoutedValues>:$row_values, MoE_PlanType:$plan,
                       FlatSymbolRefAttr:$grid);
  let results = (outs Optional<MoE_Rows>:$result, Optional<MoE_Slots>:$values);
  let assemblyFormat = [{
    (`rows` `(` $rows^ `:` type($rows) `->` type($result) `)`)?
    (`values` `(` $row_values^ `:` type($row_values) `->` type($values) `)`)?
    `by` $plan `on` $grid attr-dict `:` qualified(type($plan))
  }];
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_DISPATCHOPS_TD
