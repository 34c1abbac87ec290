//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/runtime_footprint.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

/// Table [V, H], ids [N], rows [N, H], one element type: E1, E2 and EG1, EG2.
static LogicalResult verifyLookup(Operation *op, StringRef code, RankedTensorType table, RankedTensorType ids,
                                  RankedTensorType rows) {
  if (rows.getDimSize(0) != ids.getDimSize(0) || rows.getDimSize(1) != table.getDimSize(1))
    return op->emitOpError() << code << "1: rows are [" << rows.getDimSize(0) << ", " << rows.getDimSize(1)
                             << "], but there are " << ids.getDimSize(0) << " ids and the table has "
                             << table.getDimSize(1) << " columns";
  if (rows.getElementType() != table.getElementType())
    return op->emitOpError() << code << "2: rows are " << rows.getElementType() << " and the table is "
                             << table.getElementType();
  return success();
}

/// E3 and EG3: grid and size come together, and the shards of the grid's ranks hold the table.
static LogicalResult verifyParts(Operation *op, StringRef code, FlatSymbolRefAttr grid, std::optional<uint64_t> size,
                                 int64_t rows) {
  if (static_cast<bool>(grid) != size.has_value())
    return op->emitOpError() << code << "3: has a " << (grid ? "grid and no size" : "size and no grid");
  if (!grid)
    return success();
  FailureOr<Grid> found = Grid::lookup(op, grid);
  if (failed(found))
    return op->emitOpError() << code << "3: there is no grid " << grid
                             << " with static sizes of at most 2^31 - 1 ranks";
  if (rows < static_cast<int64_t>(llvm::divideCeil(*size, found->getShards())))
    return op->emitOpError() << code << "3: " << found->getShards() << " shards of " << rows
                             << " rows do not hold a table of " << *size;
  return success();
}

LogicalResult EmbeddingOp::verify() {
  return verifyLookup(*this, "E", getTable().getType(), getIds().getType(), getResult().getType()); // E1, E2
}

LogicalResult EmbeddingOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyParts(*this, "E", getGridAttr(), getSize(), getTable().getType().getDimSize(0)); // E3
}

SmallVector<Value> EmbeddingOp::getResiduals() { return {getIds()}; }

LogicalResult EmbeddingOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                        ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = EmbeddingGradOp::create(builder, loc, getTable().getType(), resultCotangents[0], residuals[0],
                                                 getGridAttr(), getSizeAttr());
  return success();
}

Component EmbeddingOp::getDefaultComponent() { return Component::Embedding; }

LogicalResult EmbeddingGradOp::verify() {
  return verifyLookup(*this, "EG", getResult().getType(), getIds().getType(), getCotangent().getType()); // EG1, EG2
}

LogicalResult EmbeddingGradOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyParts(*this, "EG", getGridAttr(), getSize(), getResult().getType().getDimSize(0)); // EG3
}

Component EmbeddingGradOp::getDefaultComponent() { return Component::Embedding; }

int64_t EmbeddingGradOp::getWorkspaceBytes() {
  RankedTensorType table = getResult().getType();
  return plr_footprint_embedding_grad(getIds().getType().getDimSize(0), table.getDimSize(0), table.getDimSize(1));
}
