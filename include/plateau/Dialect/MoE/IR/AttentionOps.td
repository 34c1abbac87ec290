//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_ATTENTIONOPS_TD
#define PLATEAU_DIALECT_MOE_IR_ATTENTIONOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_AttentionOp : MoE_Op<"attention", [Pure, MoE_Differentiable, MoE_FootprintWorkspace]> {
  let summary = "Causal grouped-query attention inside documents";
  let description = [{
    Token i sees tokens `starts[i] … i`, where `starts[i]` is the row of the first token of its document, so no token sees
    another document. Query head h reads key and value head `h / (Hq / Hk)`. Scores are `scale · q·k`, softmax over what the
    token sees; scores, maxima and sums are f32. `lse[i, h]` is the log of the sum of exponentials of the scores.

    Computed in blocks: no [N, N] value exists, forward or backward.

    **Constraints**
    - A1: `query` is [N, Hq, D]; `key` and `value` are [N, Hk, D] of one type; Hk divides Hq.
    - A2: `output` has the type of `query`; `key` has its element type.
    - A3: `starts` is [N], i32; its values lie in 0 … i (checked at run time).
    - A4: `lse` is [N, Hq], f32.
    - A5: `scale` is finite.

    **Adjoint**: `moe.attention_grad`. **Residuals**: `query`, `key`, `value`, `starts`, `output`, `lse`.
    **Footprint**: workspace = `plr_footprint_attention` (runtime_footprint.h): a fixed number of blocks, whatever N.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %o, %lse = moe.attention %q, %k, %v, %starts scale(1.25e-01) : (tensor<1024x4x64xf32>, tensor<1024x2x64xf32>, tensor<1024x2x64xf32>, tensor<1024xi32>) -> (tensor<1024x4x64xf32>, tensor<1024x4xf32>)
    ```
  }];
  let arguments = (ins MoE_Heads:$query, MoE_Heads:$key, MoE_Heads:$value, MoE_Ids:$starts, F32Attr:$scale);
  let results = (outs MoE_Heads:$output, MoE_RowsF32:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $starts `scale` `(` $scale `)` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_AttentionGradOp : MoE_Op<"attention_grad", [Pure, MoE_FootprintWorkspace]> {
  let summary = "The adjoint of moe.attention";
  let description = [{
    Forms the probabilities again from `lse`, block by block. With `delta = Σ cotangent · output` per token and head:
    `dS = P · (cotangent·valueᵀ − delta)`, `query_grad = scale · dS·key`, `key_grad = scale · dSᵀ·query`,
    `value_grad = Pᵀ·cotangent`, key and value summed over the query heads that share them.

    **Constraints**
    - AG1: `cotangent`, `query`, `output` and `query_grad` have one type [N, Hq, D].
    - AG2: `key`, `value`, `key_grad` and `value_grad` have one type [N, Hk, D]; Hk divides Hq.
    - AG3: `starts` is [N], i32; `lse` is [N, Hq], f32.
    - AG4: `scale` is finite.

    **Adjoint**: none (first derivatives only).
    **Footprint**: workspace = `plr_footprint_attention_grad` (runtime_footprint.h): blocks, `delta`, and one head's f32
    sums of key and value gradients.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %dq, %dk, %dv = moe.attention_grad %do, %q, %k, %v, %starts, %o, %lse scale(1.0) : (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>, tensor<8x2x4xf32>, tensor<8x2xf32>) -> (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>)
    ```
  }];
  let arguments = (ins MoE_Heads:$cotangent, MoE_Heads:$query, MoE_Heads:$key, MoE_Heads:$value, MoE_Ids:$starts,
                       MoE_Heads:$output, MoE_RowsF32:$lse, F32Attr:$scale);
  let results = (outs MoE_Heads:$query_grad, MoE_Heads:$key_grad, MoE_Heads:$value_grad);
  let assemblyFormat = [{
    $cotangent `,` $query `,` $key `,` $value `,` $starts `,` $output `,` $lse `scale` `(` $scale `)` attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_ATTENTIONOPS_TD
