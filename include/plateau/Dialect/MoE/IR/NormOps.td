//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_NORMOPS_TD
#define PLATEAU_DIALECT_MOE_IR_NORMOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_RMSNormOp : MoE_Op<"rms_norm", [Pure, MoE_Differentiable, MoE_Footprint]> {
  let summary = "Scale each row to unit root mean square, then by a weight";
  let description = [{
    Over the last dimension: `inverse = 1 / sqrt(mean(input²) + epsilon)` in f32, `output = input · inverse · weight`, rounded
    once. On [rows, heads, head size] each head of each row is a row of its own (the q and k norms of Qwen3).

    **Constraints**
    - RN1: `weight` is as long as the last dimension of `input`.
    - RN2: `output` has the type of `input`, `weight` its element type.
    - RN3: `inverse` has the shape of `input` without the last dimension, f32.
    - RN4: `epsilon` is finite and not negative.

    **Adjoint**: `moe.rms_norm_grad`. **Residuals**: `input`, `weight`, `inverse`.
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<1024x256xf32>, tensor<256xf32>) -> (tensor<1024x256xf32>, tensor<1024xf32>)
    ```
  }];
  let arguments = (ins MoE_RowsOrHeads:$input, MoE_Vector:$weight, F32Attr:$epsilon);
  let results = (outs MoE_RowsOrHeads:$output, MoE_Stats:$inverse);
  let assemblyFormat = "$input `,` $weight `epsilon` `(` $epsilon `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def MoE_RMSNormGradOp : MoE_Op<"rms_norm_grad", [Pure, MoE_FootprintWorkspace]> {
  let summary = "The adjoint of moe.rms_norm";
  let description = [{
    With `n = input · inverse` and `g = cotangent · weight`: `input_grad = inverse · (g − n · mean(g · n))`;
    `weight_grad = Σ cotangent · n` over all rows (and heads), in ascending order, in f32.

    **Constraints**
    - RNG1: `cotangent`, `input` and `input_grad` have one type.
    - RNG2: `weight` and `weight_grad` have one type, as long as the last dimension.
    - RNG3: `inverse` has the shape of `input` without the last dimension, f32.

    **Adjoint**: none (first derivatives only).
    **Footprint**: workspace = `plr_footprint_rms_norm_grad` (runtime_footprint.h): f32 sums of `weight_grad`.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %dx, %dw = moe.rms_norm_grad %dy, %x, %w, %inverse : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
    ```
  }];
  let arguments = (ins MoE_RowsOrHeads:$cotangent, MoE_RowsOrHeads:$input, MoE_Vector:$weight, MoE_Stats:$inverse);
  let results = (outs MoE_RowsOrHeads:$input_grad, MoE_Vector:$weight_grad);
  let assemblyFormat = [{
    $cotangent `,` $input `,` $weight `,` $inverse attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_NORMOPS_TD
