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

LogicalResult EmbeddingOp::verify() {
  return verifyLookup(*this, "E", getTable().getType(), getIds().getType(), getResult().getType()); // E1, E2
}

SmallVector<Value> EmbeddingOp::getResiduals() { return {getIds()}; }

LogicalResult EmbeddingOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                        ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = EmbeddingGradOp::create(builder, loc, getTable().getType(), resultCotangents[0], residuals[0]);
  return success();
}

Component EmbeddingOp::getDefaultComponent() { return Component::Embedding; }

LogicalResult EmbeddingGradOp::verify() {
  return verifyLookup(*this, "EG", getResult().getType(), getIds().getType(), getCotangent().getType()); // EG1, EG2
}

Component EmbeddingGradOp::getDefaultComponent() { return Component::Embedding; }

int64_t EmbeddingGradOp::getWorkspaceBytes() {
  RankedTensorType table = getResult().getType();
  return plr_footprint_embedding_grad(getIds().getType().getDimSize(0), table.getDimSize(0), table.getDimSize(1));
}
