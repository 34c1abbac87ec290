//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/runtime_footprint.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

/// Query [N, Hq, D], key [N, Hk, D], Hk divides Hq, one element type: A1, A2 and AG1, AG2.
static LogicalResult verifyHeads(Operation *op, StringRef code, RankedTensorType query, RankedTensorType key) {
  if (query.getDimSize(0) != key.getDimSize(0) || query.getDimSize(2) != key.getDimSize(2) || key.getDimSize(1) < 1 ||
      query.getDimSize(1) % key.getDimSize(1))
    return op->emitOpError() << code << ": query " << query << " and key " << key
                             << " must agree in rows and head size, and the key heads divide the query heads";
  if (query.getElementType() != key.getElementType())
    return op->emitOpError() << code << ": query is " << query.getElementType() << " and key is "
                             << key.getElementType();
  return success();
}

static bool isForQuery(RankedTensorType starts, RankedTensorType lse, RankedTensorType query) {
  return starts.getDimSize(0) == query.getDimSize(0) && lse.getShape() == query.getShape().drop_back();
}

LogicalResult AttentionOp::verify() {
  RankedTensorType query = getQuery().getType(), key = getKey().getType();
  if (failed(verifyHeads(*this, "A1", query, key)))
    return failure();
  if (getValue().getType() != key) // A1
    return emitOpError() << "A1: value must be " << key << " like key";
  if (getOutput().getType() != query) // A2
    return emitOpError() << "A2: output must be " << query << " like query";
  if (getStarts().getType().getDimSize(0) != query.getDimSize(0)) // A3
    return emitOpError() << "A3: starts must have " << query.getDimSize(0) << " rows";
  if (!isForQuery(getStarts().getType(), getLse().getType(), query)) // A4
    return emitOpError() << "A4: lse must be [" << query.getDimSize(0) << ", " << query.getDimSize(1) << "]";
  if (!getScale().isFinite()) // A5
    return emitOpError() << "A5: scale must be finite";
  return success();
}

SmallVector<Value> AttentionOp::getResiduals() {
  return {getQuery(), getKey(), getValue(), getStarts(), getOutput(), getLse()};
}

LogicalResult AttentionOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                        ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  if (resultCotangents[1])
    return emitOpError("has no adjoint for its result 'lse'");
  auto grad = AttentionGradOp::create(
      builder, loc, TypeRange{getQuery().getType(), getKey().getType(), getValue().getType()}, resultCotangents[0],
      residuals[0], residuals[1], residuals[2], residuals[3], residuals[4], residuals[5], getScaleAttr());
  operandCotangents[0] = grad.getQueryGrad();
  operandCotangents[1] = grad.getKeyGrad();
  operandCotangents[2] = grad.getValueGrad();
  return success();
}

Component AttentionOp::getDefaultComponent() { return Component::Attention; }

int64_t AttentionOp::getWorkspaceBytes() {
  RankedTensorType query = getQuery().getType();
  return plr_footprint_attention(query.getDimSize(0), query.getDimSize(1), getKey().getType().getDimSize(1),
                                 query.getDimSize(2));
}

LogicalResult AttentionGradOp::verify() {
  RankedTensorType query = getQuery().getType(), key = getKey().getType();
  if (failed(verifyHeads(*this, "AG2", query, key)))
    return failure();
  if (getCotangent().getType() != query || getOutput().getType() != query || getQueryGrad().getType() != query) // AG1
    return emitOpError() << "AG1: cotangent, output and query_grad must be " << query << " like query";
  if (getValue().getType() != key || getKeyGrad().getType() != key || getValueGrad().getType() != key) // AG2
    return emitOpError() << "AG2: value, key_grad and value_grad must be " << key << " like key";
  if (!isForQuery(getStarts().getType(), getLse().getType(), query)) // AG3
    return emitOpError() << "AG3: starts must have " << query.getDimSize(0) << " rows and lse be ["
                         << query.getDimSize(0) << ", " << query.getDimSize(1) << "]";
  if (!getScale().isFinite()) // AG4
    return emitOpError() << "AG4: scale must be finite";
  return success();
}

Component AttentionGradOp::getDefaultComponent() { return Component::Attention; }

int64_t AttentionGradOp::getWorkspaceBytes() {
  RankedTensorType query = getQuery().getType();
  return plr_footprint_attention_grad(query.getDimSize(0), query.getDimSize(1), getKey().getType().getDimSize(1),
                                      query.getDimSize(2));
}
