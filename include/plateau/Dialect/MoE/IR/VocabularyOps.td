//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The vocabulary loss: projection and cross entropy as one op, and the ops that the standard form of it consists of.
// VocabularyTileOps.td has those of the forms by tiles.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_VOCABULARYOPS_TD
#define PLATEAU_DIALECT_MOE_IR_VOCABULARYOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_VocabLossOp : MoE_Op<"vocab_loss", [
    Pure, MoE_Differentiable, MoE_Footprint, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Loss of each token against a vocabulary: projection and cross entropy";
  let description = [{
    `losses[i]` is the loss of row `logits[i, :] = x[i, :] · tableᵀ + bias` and its label, and `lse[i]` the logarithm of the sum of its
    exponentials, as `#moe.vocabulary` says; sums are in f32. What form the logits take, and whether they ever exist at once, is up to
    `moe-ring-vocab` or `moe-expand-vocab-loss`.

    With a grid the ranks along its last axis hold the table in shards of R rows: row c of the table is row c mod R of rank c div R. Each
    rank has tokens of its own.

    **Constraints**
    - VL1: `x` is [N, H], `table` [R, H] of its type, `labels` [N], the results [N].
    - VL2: `bias` is [R].
    - VL3: the shards of all ranks hold the vocabulary: R times the ranks is at least its size.
    - VL4: `grid` exists.

    **Adjoint**: `moe.vocab_loss_grad`; `lse` is a residual and takes no cotangent. **Residuals**: operands, `lse`.
    **Footprint**: that of what it becomes.
    **Lifespan**: created by import and `moe-raise-vocab-loss`; gone before `convert-moe-to-sched`.

    Example:
    ```mlir
    %losses, %lse = moe.vocab_loss %x, %table, %labels on @vocab vocabulary<size = 16384>
      : (tensor<1024x256xf32>, tensor<4096x256xf32>, tensor<1024xi32>) -> (tensor<1024xf32>, tensor<1024xf32>)
    ```
  }];
  let arguments = (ins MoE_Rows:$x, MoE_Rows:$table, MoE_Ids:$labels, Optional<MoE_VectorF32>:$bias,
                       OptionalAttr<FlatSymbolRefAttr>:$grid, MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_VectorF32:$losses, MoE_VectorF32:$lse);
  let assemblyFormat = [{
    $x `,` $table `,` $labels (`bias` $bias^)? (`on` $grid^)? `vocabulary` `` $vocabulary attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_VocabLossGradOp : MoE_Op<"vocab_loss_grad", [
    Pure, MoE_Footprint, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The adjoint of moe.vocab_loss";
  let description = [{
    The derivatives of `Σ cotangents[i] · losses[i]`, over the tokens of all ranks of the group, by `x`, by this rank's shard of the table
    and of the bias. `lse` is the result of `moe.vocab_loss` on the same operands.

    **Constraints**
    - VLG1: `cotangents`, `labels` and `lse` are [N], `x` and `x_grad` [N, H], `table` and `table_grad` [R, H].
    - VLG2: `bias` and `bias_grad` are [R], both or neither there.
    - VLG3, VLG4: those of `moe.vocab_loss`.
    - VLG5: gradients are f32, or of their operand's type.

    **Adjoint**: none (first derivatives only).
    **Footprint**: that of what it becomes.
    **Lifespan**: created by `moe-differentiate`; gone before `convert-moe-to-sched`.

    Example:
    ```mlir
    %dx, %dt = moe.vocab_loss_grad %g, %x, %table, %labels, %lse on @vocab vocabulary<size = 16384>
      : (tensor<1024xf32>, tensor<1024x256xf32>, tensor<4096x256xf32>, tensor<1024xi32>, tensor<1024xf32>) -> (tensor<1024x256xf32>, tensor<4096x256xf32>)
    ```
  }];
  let arguments = (ins MoE_VectorF32:$cotangents, MoE_Rows:$x, MoE_Rows:$table, MoE_Ids:$labels, MoE_VectorF32:$lse,
                       Optional<MoE_VectorF32>:$bias, OptionalAttr<FlatSymbolRefAttr>:$grid, MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_Rows:$x_grad, MoE_Rows:$table_grad, Optional<MoE_VectorF32>:$bias_grad);
  let assemblyFormat = [{
    $cotangents `,` $x `,` $table `,` $labels `,` $lse (`bias` $bias^)? (`on` $grid^)? `vocabulary` `` $vocabulary attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_LogSoftmaxOp : MoE_Op<"log_softmax", [Pure, MoE_Differentiable, MoE_Footprint]> {
  let summary = "Logarithm of the softmax of each row";
  let description = [{
    With y the logits, plus `bias`, capped and masked as `#moe.vocabulary` says: `lse[i] = log Σ exp(y[i, u])` and
    `result[i, v] = y[i, v] − lse[i]`, computed from the largest of the row. −inf entries stay −inf.

    **Constraints**
    - LS1: `input` and `result` are one f32 type [N, V], V at least the vocabulary's size; `lse` is [N].
    - LS2: `bias` is [V].

    **Adjoint**: `moe.log_softmax_grad`. **Residuals**: `result`, `lse`.
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-expand-vocab-loss`; gone after lowering.

    Example:
    ```mlir
    %p, %lse = moe.log_softmax %logits vocabulary<size = 16384> : (tensor<1024x16384xf32>) -> (tensor<1024x16384xf32>, tensor<1024xf32>)
    ```
  }];
  let arguments = (ins MoE_RowsF32:$input, Optional<MoE_VectorF32>:$bias, MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_RowsF32:$result, MoE_VectorF32:$lse);
  let assemblyFormat = [{
    $input (`bias` $bias^)? `vocabulary` `` $vocabulary attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_LogSoftmaxGradOp : MoE_Op<"log_softmax_grad", [Pure, MoE_Footprint]> {
  let summary = "The adjoint of moe.log_softmax";
  let description = [{
    `result = (cotangent − exp(output) · (Σ_v cotangent − lse_cotangent)) · (1 − ((output + lse) / softcap)²)`, row by row, with `output` and
    `lse` the results of `moe.log_softmax`, and 0 where the output is −inf. `bias_grad` is the sum of its rows.

    **Constraints**
    - LSG1: `cotangent`, `output` and `result` are one f32 type [N, V]; `lse` and `lse_cotangent` are [N].
    - LSG2: `bias_grad` is [V].

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %d = moe.log_softmax_grad %dp, %p, %lse vocabulary<size = 16384> : (tensor<8x16384xf32>, tensor<8x16384xf32>, tensor<8xf32>) -> tensor<8x16384xf32>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$cotangent, MoE_RowsF32:$output, MoE_VectorF32:$lse, Optional<MoE_VectorF32>:$lse_cotangent,
                       MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_RowsF32:$result, Optional<MoE_VectorF32>:$bias_grad);
  let assemblyFormat = [{
    $cotangent `,` $output `,` $lse (`lse_cotangent` $lse_cotangent^)? `vocabulary` `` $vocabulary attr-dict `:` functional-type(operands, results)
  }];
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
  let summary = "Loss of each row of log probabilities and its label";
  let description = [{
    `losses[i] = −(1 − ε) · log_probs[i, labels[i]] − ε / V · Σ_{v < V} log_probs[i, v] + ζ · lse[i]²` with V, ε = `label_smoothing` and
    ζ = `z_loss` of the vocabulary; 0 when the label is `ignore_index`. Any other label outside [0, V) is an error at run time that
    names the row and the label.

    **Constraints**
    - NL1: `log_probs` is [N, columns], f32, with at least V columns; `lse`, `labels` and `losses` are [N].

    **Adjoint**: `moe.nll_grad`. **Residuals**: `lse`, `labels`.
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-expand-vocab-loss`; gone after lowering.

    Example:
    ```mlir
    %losses = moe.nll %p, %lse, %labels vocabulary<size = 16384> : (tensor<1024x16384xf32>, tensor<1024xf32>, tensor<1024xi32>) -> tensor<1024xf32>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$log_probs, MoE_VectorF32:$lse, MoE_Ids:$labels, MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_VectorF32:$losses);
  let assemblyFormat = [{
    $log_probs `,` $lse `,` $labels `vocabulary` `` $vocabulary attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_NLLGradOp : MoE_Op<"nll_grad", [Pure, MoE_Footprint]> {
  let summary = "The adjoint of moe.nll";
  let description = [{
    `log_probs_grad[i, v] = −cotangents[i] · ((1 − ε) · [v = labels[i]] + ε / V · [v < V])` and `lse_grad[i] = 2 · ζ · lse[i] · cotangents[i]`; zero for
    a row whose label is `ignore_index`.

    **Constraints**
    - NLG1: `cotangents`, `lse`, `labels` and `lse_grad` are [N], `log_probs_grad` [N, columns].

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %dp, %dl = moe.nll_grad %g, %lse, %labels vocabulary<size = 9> : (tensor<8xf32>, tensor<8xf32>, tensor<8xi32>) -> (tensor<8x9xf32>, tensor<8xf32>)
    ```
  }];
  let arguments = (ins MoE_VectorF32:$cotangents, MoE_VectorF32:$lse, MoE_Ids:$labels, MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_RowsF32:$log_probs_grad, MoE_VectorF32:$lse_grad);
  let assemblyFormat = "$cotangents `,` $lse `,` $labels `vocabulary` `` $vocabulary attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def MoE_MeanLossOp : MoE_Op<"mean_loss", [Pure, MoE_Differentiable, MoE_Footprint]> {
  let summary = "Weighted sum of losses over a given count";
  let description = [{
    `result = Σ weights[i] · losses[i] / count`, summed in f32 in ascending order; 0 when `count` is 0. Without weights they are 1. The count
    is given, so that a mean is over all tokens of the step, however they are split; with a count of 1 it is a sum.

    **Constraints**
    - ML1: `losses` and `weights` are [N], f32; `count` and the result are tensor<f32>.

    **Adjoint**: `moe.mean_loss_grad`; weights take no cotangent. **Residuals**: `weights`, `count`.
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %loss = moe.mean_loss %losses over %count : tensor<1024xf32>
    ```
  }];
  let arguments = (ins MoE_VectorF32:$losses, Optional<MoE_VectorF32>:$weights, MoE_Scalar:$count);
  let results = (outs MoE_Scalar:$result);
  let assemblyFormat = [{
    $losses (`weights` `(` $weights^ `:` type($weights) `)`)? `over` $count attr-dict `:` type($losses)
  }];
  let hasVerifier = 1;
}

def MoE_MeanLossGradOp : MoE_Op<"mean_loss_grad", [Pure, MoE_Footprint]> {
  let summary = "The adjoint of moe.mean_loss";
  let description = [{
    `result[i] = cotangent · weights[i] / count`; 0 when `count` is 0.

    **Constraints**
    - MLG1: `weights` and the result are [N], f32; `cotangent` and `count` are tensor<f32>.

    **Adjoint**: none (first derivatives only).
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %g = moe.mean_loss_grad %one over %count : tensor<1024xf32>
    ```
  }];
  let arguments = (ins MoE_Scalar:$cotangent, Optional<MoE_VectorF32>:$weights, MoE_Scalar:$count);
  let results = (outs MoE_VectorF32:$result);
  let assemblyFormat = [{
    $cotangent (`weights` `(` $weights^ `:` type($weights) `)`)? `over` $count attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_VOCABULARYOPS_TD
