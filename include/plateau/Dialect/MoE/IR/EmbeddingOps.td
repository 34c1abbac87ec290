//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_EMBEDDINGOPS_TD
#define PLATEAU_DIALECT_MOE_IR_EMBEDDINGOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"

def MoE_EmbeddingOp : MoE_Op<"embedding", [
    Pure, MoE_Differentiable, MoE_Footprint, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Look up one row of a table for each token";
  let description = [{
    `result[i, :] = table[ids[i], :]`. An id outside the table is an error at run time that names the row and the id.

    With a grid, `on @vocab size(V)`, the ranks along its last axis hold the table of V rows in shards of R rows: row v of the table is row
    v mod R of rank v div R. Each rank has ids of its own.

    **Constraints**
    - E1: `table` is [R, H], `ids` [N], the result [N, H].
    - E2: table and result have one element type.
    - E3: `grid` exists, and the shards of its ranks hold V rows; grid and size come together.

    **Adjoint**: `moe.embedding_grad`. **Residuals**: `ids`.
    **Footprint**: no workspace.
    **Lifespan**: created by import; gone after lowering.

    Example:
    ```mlir
    %x = moe.embedding %table, %ids : (tensor<16384x256xf32>, tensor<1024xi32>) -> tensor<1024x256xf32>
    ```
  }];
  let arguments = (ins MoE_Rows:$table, MoE_Ids:$ids, OptionalAttr<FlatSymbolRefAttr>:$grid,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$size);
  let results = (outs MoE_Rows:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$table, "::mlir::Value":$ids), [{
    build($_builder, $_state, result, table, ids, ::mlir::FlatSymbolRefAttr(), ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "$table `,` $ids (`on` $grid^)? (`size` `(` $size^ `)`)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def MoE_EmbeddingGradOp : MoE_Op<"embedding_grad", [
    Pure, MoE_FootprintWorkspace, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Sum the cotangents of looked-up rows into a table";
  let description = [{
    `result[v, :] = Σ cotangent[i, :] over i with ids[i] = v`, rows in ascending order i, summed in f32; rows that no token
    names are exactly zero. With a grid it is this rank's shard of the sum over the tokens of all ranks of the group.

    **Constraints**
    - EG1: `cotangent` is [N, H], `ids` [N], the result [R, H].
    - EG2: cotangent and result have one element type.
    - EG3: E3 of `moe.embedding`.

    **Adjoint**: none (first derivatives only).
    **Footprint**: workspace = `plr_footprint_embedding_grad` (runtime_footprint.h): the tokens ordered by id, and one f32
    row, since each row is summed before it is rounded.
    **Lifespan**: created by `moe-differentiate`; gone after lowering.

    Example:
    ```mlir
    %d = moe.embedding_grad %dx, %ids : (tensor<1024x256xf32>, tensor<1024xi32>) -> tensor<16384x256xf32>
    ```
  }];
  let arguments = (ins MoE_Rows:$cotangent, MoE_Ids:$ids, OptionalAttr<FlatSymbolRefAttr>:$grid,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$size);
  let results = (outs MoE_Rows:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$cotangent, "::mlir::Value":$ids), [{
    build($_builder, $_state, result, cotangent, ids, ::mlir::FlatSymbolRefAttr(), ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "$cotangent `,` $ids (`on` $grid^)? (`size` `(` $size^ `)`)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_MOE_IR_EMBEDDINGOPS_TD
