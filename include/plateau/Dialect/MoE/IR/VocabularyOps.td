//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The standard vocabulary loss: matmul, log-softmax, pick, as separate ops on f32 logits.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_VOCABULARYOPS_TD
#define PLATEAU_DIALECT_MOE_IR_VOCABULARYOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_LogSoftmaxOp : MoE_Op<"log_softmax", [Pure, SameOperandsAndResultType, MoE_Differentiable, MoE_Footprint]> {
  let summary = "Logarithm of the softmax of each row";
  let description = [{
    `result[i, v] = input[i, v] − m − log Σ exp(input[i, u] − m)` with m the largest value of the row. A row of one value
    gives 0; −inf entries stay −inf.

    **Constraints**
    - LS1: operand and result are one f32 type [N, V], V at least 1.

    **Adjoint**: `moe.log_softmax_grad`. **Residuals**: `result`.
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %p = moe.log_softmax %logits : tensor<1024x16384xf32>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$input);
  let results = (outs MoE_RowsF32:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def MoE_LogSoftmaxGradOp : MoE_Op<"log_softmax_grad", [Pure, SameOperandsAndResultType, MoE_Footprint]> {
  let summary = "The adjoint of moe.log_softmax";
  let description = [{
    `result = cotangent − exp(output) · Σ_v cotangent`, row by row, with `output` the result of `moe.log_softmax`.

    **Constraints**
    - LSG1: operands and result are one f32 type [N, V], V at least 1.

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %d = moe.log_softmax_grad %dp, %p : tensor<1024x16384xf32>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$cotangent, MoE_RowsF32:$output);
  let results = (outs MoE_RowsF32:$result);
  let assemblyFormat = "$cotangent `,` $output attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def MoE_CountLabelsOp : MoE_Op<"count_labels", [Pure, MoE_Footprint]> {
  let summary = "Number of labels that count in the loss";
  let description = [{
    The number of labels other than `ignore_index`, as f32 (exact up to 2^24), computed once a step before any loss, so that
    the mean is over all tokens of the step, however they are split.

    **Constraints**
    - CL1: `labels` is [N], i32; the result is tensor<f32>.

    **Adjoint**: none (integers have no derivative).
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %count = moe.count_labels %labels ignore_index(-100) : tensor<1024xi32>
    ```
  }];
  let arguments = (ins MoE_Ids:$labels, I32Attr:$ignore_index);
  let results = (outs MoE_Scalar:$result);
  let assemblyFormat = "$labels `ignore_index` `(` $ignore_index `)` attr-dict `:` type($labels)";
}

def MoE_NLLOp : MoE_Op<"nll", [Pure, MoE_Differentiable, MoE_Footprint]> {
  let summary = "Negative log likelihood of the labels, over a given count";
  let description = [{
    `result = −Σ log_probs[i, labels[i]] / count` over the rows whose label is not `ignore_index`, summed in f32 in ascending
    order; 0 when `count` is 0. A label outside [0, V) other than `ignore_index` is an error at run time that names the row
    and the label.

    **Constraints**
    - NL1: `log_probs` is [N, V], f32; `labels` is [N], i32; `count` and the result are tensor<f32>.

    **Adjoint**: `moe.nll_grad`. **Residuals**: `labels`, `count`.
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %loss = moe.nll %p, %labels, %count ignore_index(-100) : tensor<1024x16384xf32>, tensor<1024xi32>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$log_probs, MoE_Ids:$labels, MoE_Scalar:$count, I32Attr:$ignore_index);
  let results = (outs MoE_Scalar:$result);
  let assemblyFormat = [{
    $log_probs `,` $labels `,` $count `ignore_index` `(` $ignore_index `)` attr-dict `:` type($log_probs) `,` type($labels)
  }];
  let hasVerifier = 1;
}

def MoE_NLLGradOp : MoE_Op<"nll_grad", [Pure, MoE_Footprint]> {
  let summary = "The adjoint of moe.nll";
  let description = [{
    `result[i, labels[i]] = −cotangent / count` for the rows whose label is not `ignore_index`; zero everywhere else, and
    everywhere when `count` is 0.

    **Constraints**
    - NLG1: `labels` is [N], i32; the result is [N, V], f32; `cotangent` and `count` are tensor<f32>.

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %dp = moe.nll_grad %one, %labels, %count ignore_index(-100) : tensor<1024xi32> -> tensor<1024x16384xf32>
    ```
  }];
  let arguments = (ins MoE_Scalar:$cotangent, MoE_Ids:$labels, MoE_Scalar:$count, I32Attr:$ignore_index);
  let results = (outs MoE_RowsF32:$result);
  let assemblyFormat = [{
    $cotangent `,` $labels `,` $count `ignore_index` `(` $ignore_index `)` attr-dict `:` type($labels) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_VOCABULARYOPS_TD
