//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What experts compute on the rows they receive.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_EXPERTOPS_TD
#define PLATEAU_DIALECT_MOE_IR_EXPERTOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_GroupedMatmulOp : MoE_Op<"grouped_matmul", [
    Pure, AttrSizedOperandSegments, MoE_Differentiable, MoE_Footprint, MoE_OnRows]> {
  let summary = "Each row times the weights of its expert";
  let description = [{
    `result[r] = rows[r] · weights[e]` for each row r of expert e of this rank, summed in f32 and rounded once; with `transpose`
    `rows[r] · weights[e]ᵀ` (weights as [out, in], as checkpoints have them). `helpers` has the weights of the experts that the rank helps
    with, which come behind its own. With an `index` the rows are those of that iteration.

    **Constraints**
    - GM1: there is one weight matrix for each expert of a rank.
    - GM2: `rows` has as many columns as the weights have inputs, `result` as many as they have outputs.
    - GM3: `rows`, `weights` and `result` have one element type.
    - GM4: `rows` and `result` are [any, columns]: their rows are those of the plan.
    - GM5: `helpers` is like `weights`, with one matrix for each helper slot, and there exactly when the plan has such slots.
    - RO1: there is an index exactly when the plan has more than one iteration.

    **Adjoint**: `moe.grouped_matmul` and `moe.grouped_matmul_grad`. **Residuals**: `rows`, `weights`, `plan`.
    **Footprint**: no workspace of its own; scratch of the library while it runs.
    **Lifespan**: created by import and `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %h = moe.grouped_matmul %rows, %w transpose by %plan : (tensor<?x4xf32>, tensor<2x6x4xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>) -> tensor<?x6xf32>
    ```
  }];
  let arguments = (ins MoE_RoutedRows:$rows, MoE_ExpertWeights:$weights, MoE_PlanType:$plan,
                       Optional<MoE_ExpertWeights>:$helpers, Optional<Index>:$index, UnitAttr:$transpose);
  let results = (outs MoE_RoutedRows:$result);
  let assemblyFormat = [{
    $rows `,` $weights (`helpers` `(` $helpers^ `)`)? (`transpose` $transpose^)? `by` $plan (`at` $index^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_GroupedMatmulGradOp : MoE_Op<"grouped_matmul_grad", [
    Pure, AttrSizedOperandSegments, MoE_Footprint, MoE_OnRows]> {
  let summary = "The gradient of each expert's weights";
  let description = [{
    `result[e] = a_eᵀ · b_e`, plus `init[e]` when there is one, over the rows of expert e, in their order, summed in f32 and rounded once. Exactly
    zero (or `init`) for an expert without rows. `helper_result` has those of the experts that the rank helps with, onto `helper_init`. With an
    `index` the rows are those of that iteration.

    **Constraints**
    - GMG1: `result` is [experts of a rank, columns of a, columns of b].
    - GMG2: `a` and `b` have one element type; `result` has it or f32.
    - GMG3: `init` has the type of the result.
    - GMG4: `a` and `b` are [any, columns]: their rows are those of the plan.
    - GMG5: `helper_result` is like `result`, for each helper slot, and there exactly when the plan has such slots; `helper_init` has its type,
      and is there exactly when `init` is and `helper_result`.
    - GMG6: with an index there is an `init`: an iteration without rows leaves it as it was.
    - RO1: there is an index exactly when the plan has more than one iteration.

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace of its own; scratch of the library while it runs. The results take the buffers of `init` and `helper_init`.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %dw = moe.grouped_matmul_grad %dh, %rows by %plan : (tensor<?x6xf32>, tensor<?x4xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>) -> tensor<2x6x4xf32>
    ```
  }];
  let arguments = (ins MoE_RoutedRows:$a, MoE_RoutedRows:$b, MoE_PlanType:$plan, Optional<MoE_ExpertWeights>:$init,
                       Optional<MoE_ExpertWeights>:$helper_init, Optional<Index>:$index);
  let results = (outs MoE_ExpertWeights:$result, Optional<MoE_ExpertWeights>:$helper_result);
  let assemblyFormat = [{
    $a `,` $b `by` $plan (`at` $index^)? (`onto` $init^ (`,` $helper_init^)?)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_SwiGLUOp : MoE_Op<"swiglu", [Pure, MoE_Differentiable, MoE_Footprint, MoE_OnRows]> {
  let summary = "silu(gate) · up, gate and up side by side";
  let description = [{
    `result = silu(gate) · up`, with `gate` the first and `up` the second half of the columns of `input`, `silu(g) = g / (1 + exp(−g))`, in f32,
    rounded once.

    **Constraints**
    - SG1: `input` has twice as many columns as `result`, and the same rows and element type.

    **Adjoint**: `moe.swiglu_grad`. **Residuals**: `input`.
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %a = moe.swiglu %h : tensor<?x12xf32> -> tensor<?x6xf32>
    ```
  }];
  let arguments = (ins MoE_RoutedRows:$input);
  let results = (outs MoE_RoutedRows:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def MoE_SwiGLUGradOp : MoE_Op<"swiglu_grad", [Pure, AllTypesMatch<["input", "result"]>, MoE_OnRows, MoE_Footprint]> {
  let summary = "The adjoint of moe.swiglu";
  let description = [{
    With s = 1 / (1 + exp(−gate)): the half of `gate` is `cotangent · up · s · (1 + gate · (1 − s))`, that of `up` is `cotangent · gate · s`.

    **Constraints**
    - SGG1: `input` has twice as many columns as `cotangent`, and the same rows and element type.
    - SGG2: the result has the type of `input`.

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %dh = moe.swiglu_grad %da, %h : tensor<?x6xf32>, tensor<?x12xf32>
    ```
  }];
  let arguments = (ins MoE_RoutedRows:$cotangent, MoE_RoutedRows:$input);
  let results = (outs MoE_RoutedRows:$result);
  let assemblyFormat = "$cotangent `,` $input attr-dict `:` type($cotangent) `,` type($input)";
  let hasVerifier = 1;
}

def MoE_ScaleRowsOp : MoE_Op<"scale_rows", [
    Pure, AllTypesMatch<["input", "result"]>, MoE_OnRows, MoE_Differentiable, MoE_Footprint]> {
  let summary = "Each row times a number of its own";
  let description = [{
    `result[r] = factors[r] · input[r]`, in f32, rounded once. On the expert's side it applies the weight that travelled with the row.

    **Constraints**
    - SR1: `factors` is as long as `input` has rows.
    - SR2: the result has the type of `input`.

    **Adjoint**: `moe.scale_rows` and `moe.row_dot`. **Residuals**: `input`, `factors`.
    **Footprint**: no workspace.
    **Lifespan**: created by import and `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %z = moe.scale_rows %u, %rp : tensor<?x4xf32>, tensor<?xf32>
    ```
  }];
  let arguments = (ins MoE_RoutedRows:$input, MoE_RoutedValues:$factors);
  let results = (outs MoE_RoutedRows:$result);
  let assemblyFormat = "$input `,` $factors attr-dict `:` type($input) `,` type($factors)";
  let hasVerifier = 1;
}

def MoE_RowDotOp : MoE_Op<"row_dot", [Pure, AllTypesMatch<["a", "b"]>, MoE_OnRows, MoE_Differentiable, MoE_Footprint]> {
  let summary = "The inner product of two rows";
  let description = [{
    `result[r] = Σ a[r, c] · b[r, c]`, in f32.

    **Constraints**
    - RD1: the result is as long as there are rows.
    - RD2: `a` and `b` have one type.

    **Adjoint**: `moe.scale_rows`. **Residuals**: `a`, `b`.
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %dp = moe.row_dot %g, %a : tensor<?x4xf32> -> tensor<?xf32>
    ```
  }];
  let arguments = (ins MoE_RoutedRows:$a, MoE_RoutedRows:$b);
  let results = (outs MoE_RoutedValues:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `->` type($result)";
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_EXPERTOPS_TD
