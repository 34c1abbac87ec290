//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_ROTARYOPS_TD
#define PLATEAU_DIALECT_MOE_IR_ROTARYOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_RotaryTableOp : MoE_Op<"rotary_table", [Pure, MoE_Footprint]> {
  let summary = "Cosine and sine of each position's phases";
  let description = [{
    For frequency j of D/2: `inv_freq[j] = f32(theta^(−2j/D))`, `phase = f32(position) · inv_freq[j]` rounded to f32, as
    transformers computes it; `cos` and `sin` are those of THAT f32 phase, reduced in float64, right to 1e-6 at any position.

    **Constraints**
    - RT1: `cos` and `sin` are [N, D/2] for `positions` [N], D/2 at least 1.
    - RT2: `theta` is finite and positive.

    **Adjoint**: none (integers have no derivative).
    **Footprint**: no workspace.
    **Lifespan**: created by import, once a step; gone after lowering.

    Example:
    ```mlir
    %cos, %sin = moe.rotary_table %positions theta(1.0e+04) : (tensor<1024xi32>) -> (tensor<1024x32xf32>, tensor<1024x32xf32>)
    ```
  }];
  let arguments = (ins MoE_Ids:$positions, F64Attr:$theta);
  let results = (outs MoE_RowsF32:$cos, MoE_RowsF32:$sin);
  let assemblyFormat = "$positions `theta` `(` $theta `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def MoE_RotaryOp : MoE_Op<"rotary", [Pure, MoE_Differentiable, MoE_Footprint]> {
  let summary = "Turn each head by its position's phases";
  let description = [{
    With `a` the first and `b` the second half of a head: `(a·cos − b·sin, b·cos + a·sin)`, computed in f32; with `inverse` the
    sines change sign, which is the adjoint.

    **Constraints**
    - RO1: `input` is [N, heads, D] with D even; the result has its type.
    - RO2: `cos` and `sin` are [N, D/2], f32.

    **Adjoint**: `moe.rotary` with `inverse` flipped. **Residuals**: `cos`, `sin` (which have no derivative here: they come
    from positions).
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %r = moe.rotary %q, %cos, %sin : (tensor<1024x4x64xf32>, tensor<1024x32xf32>, tensor<1024x32xf32>) -> tensor<1024x4x64xf32>
    ```
  }];
  let arguments = (ins MoE_Heads:$input, MoE_RowsF32:$cos, MoE_RowsF32:$sin, UnitAttr:$inverse);
  let results = (outs MoE_Heads:$result);
  let assemblyFormat = "$input `,` $cos `,` $sin (`inverse` $inverse^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_ROTARYOPS_TD
