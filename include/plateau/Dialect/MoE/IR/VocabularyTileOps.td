//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the vocabulary loss by tiles consists of, beside matrix products and slices. A row's state is (m, z, y): the
// largest logit seen, Σ exp(logit − m), and the label's logit; with label smoothing also the sum of the logits. A state of
// zeros has seen nothing. Operands `into` are overwritten: their memory becomes that of the result.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_VOCABULARYTILEOPS_TD
#define PLATEAU_DIALECT_MOE_IR_VOCABULARYTILEOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_ShiftOp : MoE_Op<"shift", [
    Pure, AllTypesMatch<["input", "into", "result"]>, MoE_Footprint, MoE_Collective, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Hand a tensor on to the rank some places further round";
  let description = [{
    `result` is the `input` of the rank `hops` places before this one along the grid's last axis, round and round: what a rank has
    moves `hops` places on. The result lies where `into` did, whose contents do not matter: so two places are enough for what rotates
    for ever, and it can come home to a place of the caller's choice. (Upstream's `shard.shift` says where data come from, and not
    where they go.)

    **Constraints**
    - SH1: input, into and result have one static type.
    - SH2: `grid` exists.

    **Adjoint**: none: made after differentiation.
    **Footprint**: no workspace.
    **Lifespan**: created by `moe-ring-vocab`; gone after lowering.

    Example:
    ```mlir
    %next = moe.shift %w into %free on @vocab hops(1) : tensor<4096x256xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, AnyStaticShapeTensor:$into, FlatSymbolRefAttr:$grid, I64Attr:$hops);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `into` $into `on` $grid `hops` `(` $hops `)` attr-dict `:` type($result)";
}

def MoE_ShardStartOp : MoE_Op<"shard_start", [Pure, MoE_Footprint, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The first row of a shard that came from some places before";
  let description = [{
    `((place − hops) mod ranks) · rows`, with this rank's place along the grid's last axis: the number, in the whole table, of the first row
    of the shard of `rows` rows that the rank `hops` places before holds.

    **Constraints**
    - ST1: `grid` exists.

    **Adjoint**: none (an integer). **Footprint**: no workspace.
    **Lifespan**: created by `moe-ring-vocab` and `moe-expand-embedding`; gone after lowering.

    Example: `%first = moe.shard_start on @vocab hops(1) rows(4096)`
  }];
  let arguments = (ins FlatSymbolRefAttr:$grid, I64Attr:$hops, ConfinedAttr<I64Attr, [IntNonNegative]>:$rows);
  let results = (outs MoE_Counter:$result);
  let assemblyFormat = "`on` $grid `hops` `(` $hops `)` `rows` `(` $rows `)` attr-dict";
}

def MoE_FoldLogitsOp : MoE_Op<"fold_logits", [Pure, MoE_Footprint]> {
  let summary = "Fold a tile of logits into the state of its rows";
  let description = [{
    With y = logits + bias, capped and masked: `m' = max(m, max_v y)`, `z' = e^{m − m'} · z + Σ_v e^{y − m'}`, and y of the label when its
    column is in the tile. A tile of −inf leaves the state as it was. Column j of the tile is column `first` + `column` + j of the
    vocabulary (`first` of the shard, `column` in it).

    **Constraints**
    - FL1: `logits` is [N, columns], f32, `labels` [N], `state` and the result of one type [N, 3], [N, 4] with label smoothing.
    - FL2: `bias` is [columns].

    **Adjoint**: none: made after differentiation. **Footprint**: no workspace.
    **Lifespan**: created by `moe-ring-vocab`; gone after lowering.

    Example:
    ```mlir
    %s1 = moe.fold_logits %y, %labels first(%first) column(%j) into %s0 vocabulary<size = 16384>
      : (tensor<64x128xf32>, tensor<64xi32>, tensor<i32>, index, tensor<64x3xf32>) -> tensor<64x3xf32>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$logits, MoE_Ids:$labels, MoE_Counter:$first, Index:$column, Optional<MoE_VectorF32>:$bias,
                       MoE_RowsF32:$state, MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_RowsF32:$result);
  let assemblyFormat = [{
    $logits `,` $labels `first` `(` $first `)` `column` `(` $column `)` (`bias` $bias^)? `into` $state `vocabulary` `` $vocabulary attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_MergeStatesOp : MoE_Op<"merge_states", [Pure, MoE_Footprint]> {
  let summary = "The state of rows from states of parts of their columns";
  let description = [{
    `states` is [parts · N, 3 or 4], part after part; the result [N, ...] is what folding the columns of all parts would give, merged in
    the order of parts.

    **Constraints**
    - MS1: the rows of `states` are a multiple of those of the result, both with the columns of a state.

    **Adjoint**: none: made after differentiation. **Footprint**: no workspace.
    **Lifespan**: created by `moe-ring-vocab`; gone after lowering.

    Example:
    ```mlir
    %s = moe.merge_states %parts vocabulary<size = 16384> : tensor<256x3xf32> -> tensor<64x3xf32>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$states, MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_RowsF32:$result);
  let assemblyFormat = "$states `vocabulary` `` $vocabulary attr-dict `:` type($states) `->` type($result)";
  let hasVerifier = 1;
}

def MoE_FinishLossesOp : MoE_Op<"finish_losses", [Pure, MoE_Footprint]> {
  let summary = "Losses of rows whose columns have all been folded in";
  let description = [{
    `lse = m + log z` and `losses`, as `#moe.vocabulary` says. A label outside [0, V) other than `ignore_index` is an error at run time that
    names the row and the label.

    **Constraints**
    - FI1: `state` is [N, 3], [N, 4] with label smoothing; `labels`, `losses` and `lse` are [N].

    **Adjoint**: none: made after differentiation. **Footprint**: no workspace.
    **Lifespan**: created by `moe-ring-vocab`; gone after lowering.

    Example:
    ```mlir
    %losses, %lse = moe.finish_losses %state, %labels vocabulary<size = 16384> : (tensor<1024x3xf32>, tensor<1024xi32>) -> (tensor<1024xf32>, tensor<1024xf32>)
    ```
  }];
  let arguments = (ins MoE_RowsF32:$state, MoE_Ids:$labels, MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_VectorF32:$losses, MoE_VectorF32:$lse);
  let assemblyFormat = [{
    $state `,` $labels `vocabulary` `` $vocabulary attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_LogitsGradOp : MoE_Op<"logits_grad", [Pure, MoE_Footprint]> {
  let summary = "The derivative of the losses by a tile of raw logits";
  let description = [{
    `result[i, v] = cotangents[i] · (exp(y − lse[i]) · (1 + 2 · ζ · lse[i]) − (1 − ε) · [v = label] − ε / V) · (1 − (y / softcap)²)` with y as in
    `moe.fold_logits`; 0 for columns that do not exist, where y is −inf, and for rows whose label is `ignore_index`. An f32 result lies
    where the logits did when nobody reads them any more.

    **Constraints**
    - LG1: `logits` and the result are [N, columns], the first f32; `labels`, `lse` and `cotangents` are [N].
    - LG2: `bias` is [columns].

    **Adjoint**: none: made after differentiation. **Footprint**: no workspace.
    **Lifespan**: created by `moe-ring-vocab`; gone after lowering.

    Example:
    ```mlir
    %d = moe.logits_grad %y, %labels, %lse, %g first(%first) column(%j) vocabulary<size = 16384>
      : (tensor<64x128xf32>, tensor<64xi32>, tensor<64xf32>, tensor<64xf32>, tensor<i32>, index) -> tensor<64x128xbf16>
    ```
  }];
  let arguments = (ins MoE_RowsF32:$logits, MoE_Ids:$labels, MoE_VectorF32:$lse, MoE_VectorF32:$cotangents, MoE_Counter:$first,
                       Index:$column, Optional<MoE_VectorF32>:$bias, MoE_VocabularyAttr:$vocabulary);
  let results = (outs MoE_Rows:$result);
  let assemblyFormat = [{
    $logits `,` $labels `,` $lse `,` $cotangents `first` `(` $first `)` `column` `(` $column `)` (`bias` $bias^)? `vocabulary` `` $vocabulary attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_ColumnSumsOp : MoE_Op<"column_sums", [Pure, AllTypesMatch<["sums", "result"]>, MoE_Footprint]> {
  let summary = "Add the rows of a tile to a vector";
  let description = [{
    `result[v] = sums[v] + Σ_i input[i, v]`, rows ascending, in f32.

    **Constraints**
    - CS1: `input` is [N, columns], `sums` and the result [columns].

    **Adjoint**: none: made after differentiation. **Footprint**: no workspace.
    **Lifespan**: created by `moe-ring-vocab`; gone after lowering.

    Example:
    ```mlir
    %db1 = moe.column_sums %d into %db0 : tensor<64x128xf32>, tensor<128xf32>
    ```
  }];
  let arguments = (ins MoE_Rows:$input, MoE_VectorF32:$sums);
  let results = (outs MoE_VectorF32:$result);
  let assemblyFormat = "$input `into` $sums attr-dict `:` type($input) `,` type($sums)";
  let hasVerifier = 1;
}

def MoE_EmbeddingShardOp : MoE_Op<"embedding_shard", [Pure, MoE_Footprint]> {
  let summary = "Look up rows in a shard of a table";
  let description = [{
    `result[i, :] = shard[ids[i] − first, :]` for ids of the shard, zeros for others. An id outside [0, `size`) is an error at run time that
    names the row and the id.

    **Constraints**
    - ES1: `shard` is [R, H], `ids` [N], the result [N, H] of the shard's type.

    **Adjoint**: none: made after differentiation. **Footprint**: no workspace.
    **Lifespan**: created by `moe-expand-embedding`; gone after lowering.

    Example:
    ```mlir
    %x = moe.embedding_shard %shard, %ids first(%first) size(16384) : (tensor<4096x256xf32>, tensor<64xi32>, tensor<i32>) -> tensor<64x256xf32>
    ```
  }];
  let arguments = (ins MoE_Rows:$shard, MoE_Ids:$ids, MoE_Counter:$first, ConfinedAttr<I64Attr, [IntPositive]>:$size);
  let results = (outs MoE_Rows:$result);
  let assemblyFormat = [{
    $shard `,` $ids `first` `(` $first `)` `size` `(` $size `)` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MoE_EmbeddingShardGradOp : MoE_Op<"embedding_shard_grad", [Pure, AllTypesMatch<["sums", "result"]>, MoE_Footprint]> {
  let summary = "Add the cotangents of looked-up rows to a shard of a table";
  let description = [{
    `result[v, :] = sums[v, :] + Σ cotangent[i, :] over i with ids[i] = first + v`, rows ascending, in f32.

    **Constraints**
    - EH1: `cotangent` is [N, H], `ids` [N], `sums` and the result [R, H], f32.

    **Adjoint**: none (first derivatives only). **Footprint**: no workspace.
    **Lifespan**: created by `moe-expand-embedding`; gone after lowering.

    Example:
    ```mlir
    %d1 = moe.embedding_shard_grad %dx, %ids first(%first) into %d0
      : (tensor<64x256xf32>, tensor<64xi32>, tensor<i32>, tensor<4096x256xf32>) -> tensor<4096x256xf32>
    ```
  }];
  let arguments = (ins MoE_Rows:$cotangent, MoE_Ids:$ids, MoE_Counter:$first, MoE_RowsF32:$sums);
  let results = (outs MoE_RowsF32:$result);
  let assemblyFormat = [{
    $cotangent `,` $ids `first` `(` $first `)` `into` $sums attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_VOCABULARYTILEOPS_TD
