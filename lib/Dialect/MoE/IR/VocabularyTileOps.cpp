//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static int64_t dim(Value tensor, unsigned index) { return cast<RankedTensorType>(tensor.getType()).getDimSize(index); }

static LogicalResult verifyRows(Operation *op, StringRef code, int64_t rows,
                                ArrayRef<std::pair<StringRef, Value>> tensors) {
  for (auto [name, value] : tensors)
    if (dim(value, 0) != rows)
      return op->emitOpError() << code << ": " << name << " has " << dim(value, 0) << " rows, and the others " << rows;
  return success();
}

static LogicalResult verifyState(Operation *op, StringRef code, Value state, VocabularyAttr vocabulary) {
  if (dim(state, 1) != vocabulary.getStateSize())
    return op->emitOpError() << code << ": a state has " << dim(state, 1) << " numbers, and must have "
                             << vocabulary.getStateSize();
  return success();
}

static LogicalResult verifyBias(Operation *op, StringRef code, Value tile, Value bias) {
  if (bias && dim(bias, 0) != dim(tile, 1))
    return op->emitOpError() << code << ": the bias has " << dim(bias, 0) << " elements for " << dim(tile, 1)
                             << " columns";
  return success();
}

static LogicalResult verifyGrid(Operation *op, StringRef code, FlatSymbolRefAttr grid) {
  if (failed(Grid::lookup(op, grid)))
    return op->emitOpError() << code << ": there is no grid " << grid << " with static sizes of at most 2^31 - 1 ranks";
  return success();
}

LogicalResult ShiftOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyGrid(*this, "SH2", getGridAttr()); // SH2
}

FlatSymbolRefAttr ShiftOp::getCollectiveGrid() { return getGridAttr(); }

SmallVector<int64_t> ShiftOp::getCollectiveAxes(int64_t dimensions) { return {dimensions - 1}; }

int64_t ShiftOp::getSentBytes(int64_t ranks) {
  auto type = cast<RankedTensorType>(getResult().getType());
  return static_cast<int64_t>(getHops()) % ranks == 0 ? 0 : type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

Component ShiftOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult ShardStartOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyGrid(*this, "ST1", getGridAttr()); // ST1
}

Component ShardStartOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult FoldLogitsOp::verify() {
  if (getState().getType() != getResult().getType()) // FL1
    return emitOpError() << "FL1: folds into " << getState().getType() << " and gives " << getResult().getType();
  if (failed(verifyRows(*this, "FL1", dim(getLogits(), 0), {{"labels", getLabels()}, {"state", getState()}})) || // FL1
      failed(verifyState(*this, "FL1", getState(), getVocabulary())))
    return failure();
  return verifyBias(*this, "FL2", getLogits(), getBias()); // FL2
}

Component FoldLogitsOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult MergeStatesOp::verify() {
  if (failed(verifyState(*this, "MS1", getStates(), getVocabulary())) || // MS1
      failed(verifyState(*this, "MS1", getResult(), getVocabulary())))
    return failure();
  int64_t all = dim(getStates(), 0), rows = dim(getResult(), 0);
  if (rows == 0 ? all != 0 : all % rows != 0 || all == 0) // MS1
    return emitOpError() << "MS1: " << all << " states are no whole number of times " << rows;
  return success();
}

Component MergeStatesOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult FinishLossesOp::verify() {
  if (failed(verifyState(*this, "FI1", getState(), getVocabulary()))) // FI1
    return failure();
  return verifyRows(*this, "FI1", dim(getState(), 0),
                    {{"labels", getLabels()}, {"losses", getLosses()}, {"lse", getLse()}});
}

Component FinishLossesOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult LogitsGradOp::verify() {
  if (getLogits().getType().getShape() != getResult().getType().getShape()) // LG1
    return emitOpError() << "LG1: the gradient of " << getLogits().getType() << " is " << getResult().getType();
  if (failed(verifyRows(*this, "LG1", dim(getLogits(), 0),
                        {{"labels", getLabels()}, {"lse", getLse()}, {"cotangents", getCotangents()}})))
    return failure();
  return verifyBias(*this, "LG2", getLogits(), getBias()); // LG2
}

Component LogitsGradOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult ColumnSumsOp::verify() {
  if (dim(getSums(), 0) != dim(getInput(), 1)) // CS1
    return emitOpError() << "CS1: there are " << dim(getSums(), 0) << " sums for " << dim(getInput(), 1) << " columns";
  return success();
}

Component ColumnSumsOp::getDefaultComponent() { return Component::Vocabulary; }

/// Rows [N, H] of a shard [R, H] by ids [N]: ES1, EH1.
static LogicalResult verifyLookup(Operation *op, StringRef code, Value shard, Value ids, Value rows) {
  if (dim(rows, 0) != dim(ids, 0) || dim(rows, 1) != dim(shard, 1))
    return op->emitOpError() << code << ": rows are [" << dim(rows, 0) << ", " << dim(rows, 1) << "], but there are "
                             << dim(ids, 0) << " ids and the shard has " << dim(shard, 1) << " columns";
  return success();
}

LogicalResult EmbeddingShardOp::verify() {
  if (getShard().getType().getElementType() != getResult().getType().getElementType()) // ES1
    return emitOpError() << "ES1: rows are " << getResult().getType().getElementType() << " and the shard is "
                         << getShard().getType().getElementType();
  return verifyLookup(*this, "ES1", getShard(), getIds(), getResult()); // ES1
}

Component EmbeddingShardOp::getDefaultComponent() { return Component::Embedding; }

LogicalResult EmbeddingShardGradOp::verify() {
  return verifyLookup(*this, "EH1", getSums(), getIds(), getCotangent()); // EH1
}

Component EmbeddingShardGradOp::getDefaultComponent() { return Component::Embedding; }
