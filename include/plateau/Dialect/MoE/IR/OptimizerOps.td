//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Flat groups (one buffer whose tensors are views at recorded offsets), the gradient norm, and AdamW.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_OPTIMIZEROPS_TD
#define PLATEAU_DIALECT_MOE_IR_OPTIMIZEROPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_UnpackOp : MoE_Op<"unpack", [Pure, MoE_Footprint]> {
  let summary = "The tensors of a flat group, as views";
  let description = [{
    Result i is `group[offset_i … offset_i + elements_i)` in the shape that `layout` records. Views: no bytes move.

    **Constraints**
    - U1: one result for each tensor of `layout`, of its shape and the group's element type.
    - U2: the group holds the layout's extent.

    **Adjoint**: none (created after differentiation).
    **Footprint**: none; results are views of the operand.
    **Lifespan**: created by `moe-attach-optimizer`; gone after lowering.

    Example:
    ```mlir
    %w, %b = moe.unpack %group layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>, <<"b", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>, offset = 16, shape = [4]>]> : tensor<20xf32> -> tensor<4x4xf32>, tensor<4xf32>
    ```
  }];
  let arguments = (ins MoE_Tensor<[F32, BF16], [1], "flat group">:$group, MoE_LayoutAttr:$layout);
  let results = (outs Variadic<MoE_Working>:$tensors);
  let assemblyFormat = "$group `layout` $layout attr-dict `:` type($group) `->` type($tensors)";
  let hasVerifier = 1;
}

def MoE_PackOp : MoE_Op<"pack", [Pure, AllTypesMatch<["into", "result"]>, MoE_Footprint]> {
  let summary = "Store tensors into a flat group";
  let description = [{
    The result is `into` with tensor i written at the offset that `layout` records; padding keeps the bytes of `into`. When a
    tensor has no other use its producer writes straight into the group.

    **Constraints**
    - PK1: one tensor for each member of `layout`, of its shape and the group's element type.
    - PK2: the group holds the layout's extent.
    - PK3: `into` and the result have one type.

    **Adjoint**: none (created after differentiation).
    **Footprint**: none; the result takes the buffer of `into`.
    **Lifespan**: created by `moe-attach-optimizer`; gone after lowering.

    Example:
    ```mlir
    %g = moe.pack %dw, %db into %old layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>, <<"b", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>, offset = 16, shape = [4]>]> : tensor<4x4xf32>, tensor<4xf32> into tensor<20xf32>
    ```
  }];
  let arguments = (ins MoE_Tensor<[F32, BF16], [1], "flat group">:$into, Variadic<MoE_Working>:$tensors, MoE_LayoutAttr:$layout);
  let results = (outs MoE_Tensor<[F32, BF16], [1], "flat group">:$result);
  let assemblyFormat = "$tensors `into` $into `layout` $layout attr-dict `:` type($tensors) `into` type($into)";
  let hasVerifier = 1;
}

def MoE_SumSquaresOp : MoE_Op<"sum_squares", [Pure, MoE_Footprint]> {
  let summary = "Sum of squares of tensors of a flat group";
  let description = [{
    `Σ gradients²` over the tensors of `layout` (padding and tensors of the group that `layout` leaves out do not count), in float64 in
    blocks of fixed size, in ascending order, so that no square overflows.

    **Constraints**
    - SS1: the group holds the layout's extent.

    **Adjoint**: none (created after differentiation).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-attach-optimizer`; gone after lowering.

    Example:
    ```mlir
    %s = moe.sum_squares %g layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]> : tensor<16xf32>
    ```
  }];
  let arguments = (ins MoE_Tensor<[F32, BF16], [1], "flat group">:$gradients, MoE_LayoutAttr:$layout);
  let results = (outs MoE_SumOfSquares:$result);
  let assemblyFormat = "$gradients `layout` $layout attr-dict `:` type($gradients)";
  let hasVerifier = 1;
}

def MoE_GradNormOp : MoE_Op<"grad_norm", [Pure, MoE_Footprint]> {
  let summary = "Euclidean norm from sums of squares";
  let description = [{
    `sqrt(Σ squares)` in float64, operands ascending, rounded to f32. One sum for each set of ranks that share parameters, so that each
    parameter counts once.

    **Constraints**
    - GN1: there is at least one sum.

    **Adjoint**: none (created after differentiation).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-attach-optimizer`; gone after lowering.

    Example:
    ```mlir
    %norm = moe.grad_norm %s, %t : tensor<f64>, tensor<f64>
    ```
  }];
  let arguments = (ins Variadic<MoE_SumOfSquares>:$squares);
  let results = (outs MoE_Scalar:$norm);
  let assemblyFormat = "$squares attr-dict `:` type($squares)";
  let hasVerifier = 1;
}

def MoE_ClipFactorOp : MoE_Op<"clip_factor", [Pure, MoE_Footprint]> {
  let summary = "The factor that clips a gradient to a norm";
  let description = [{
    `min(1, max_norm / norm)`; 1 when `norm` is 0 or `max_norm` is +inf (no clipping); NaN when `norm` is not finite, which
    makes `moe.adamw` leave everything as it was.

    **Constraints**
    - CF1: `max_norm` is positive, or +inf.

    **Adjoint**: none (created after differentiation).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-attach-optimizer`; gone after lowering.

    Example:
    ```mlir
    %factor = moe.clip_factor %norm max_norm(1.0)
    ```
  }];
  let arguments = (ins MoE_Scalar:$norm, F32Attr:$max_norm);
  let results = (outs MoE_Scalar:$factor);
  let assemblyFormat = "$norm `max_norm` `(` $max_norm `)` attr-dict";
  let hasVerifier = 1;
}

def MoE_AdamWOp : MoE_Op<"adamw", [Pure, MoE_Footprint]> {
  let summary = "One AdamW update of a flat group";
  let description = [{
    For each element, in f32, with p the f32 master when there is one and the parameter itself otherwise, t = `step` (1 at
    the first update), `g = gradient · factor`:

        p ← p · (1 − learning_rate · weight_decay)        (tensors of `layout` with decay)
        m ← beta1 · m + (1 − beta1) · g
        v ← beta2 · v + (1 − beta2) · g²
        p ← p − (learning_rate / (1 − beta1^t)) · m / (sqrt(v) / sqrt(1 − beta2^t) + epsilon)

    the order and grouping of the reference AdamW of PyTorch. The bias corrections are computed in float64 and rounded. With a
    master, the parameter is its rounding. When `factor` is not finite nothing changes. Padding is left as it is.

    **Constraints**
    - AW1: `gradients` has the length of `parameters`; its element type is the parameters' or f32.
    - AW2: `first`, `second` and `master` have the length of `parameters`, f32.
    - AW3: `master` is there exactly when the parameters are bf16.
    - AW4: the group holds the layout's extent.
    - AW5: 0 ≤ beta1, beta2 < 1; epsilon > 0, in f32 too; weight_decay ≥ 0.

    **Adjoint**: none.
    **Footprint**: no workspace; each new value takes the buffer of the old one.
    **Lifespan**: created by `moe-attach-optimizer`; gone after lowering.

    Example:
    ```mlir
    %p1, %m1, %v1 = moe.adamw %p, %g, %m, %v scale %factor learning_rate %lr step %t
        beta1(9.0e-01) beta2(9.5e-01) epsilon(1.0e-08) weight_decay(1.0e-01)
        layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
        : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
    ```
  }];
  let arguments = (ins
    MoE_Tensor<[F32, BF16], [1], "flat group">:$parameters,
    MoE_Tensor<[F32, BF16], [1], "flat group">:$gradients,
    MoE_VectorF32:$first, MoE_VectorF32:$second, Optional<MoE_VectorF32>:$master,
    MoE_Scalar:$factor, MoE_Scalar:$learning_rate, MoE_Counter:$step,
    F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$weight_decay, MoE_LayoutAttr:$layout);
  let results = (outs
    MoE_Tensor<[F32, BF16], [1], "flat group">:$new_parameters,
    MoE_VectorF32:$new_first, MoE_VectorF32:$new_second, Optional<MoE_VectorF32>:$new_master);
  let assemblyFormat = [{
    $parameters `,` $gradients `,` $first `,` $second (`master` $master^)? `scale` $factor `learning_rate` $learning_rate
    `step` $step `beta1` `(` $beta1 `)` `beta2` `(` $beta2 `)` `epsilon` `(` $epsilon `)`
    `weight_decay` `(` $weight_decay `)` `layout` $layout attr-dict `:` type($parameters) `,` type($gradients) `,` type($first) `,`
    type($second) (`,` type($master)^)? `->` type($new_parameters) `,` type($new_first) `,` type($new_second)
    (`,` type($new_master)^)?
  }];
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_OPTIMIZEROPS_TD
