//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static int64_t dim(Value tensor, unsigned index) { return cast<RankedTensorType>(tensor.getType()).getDimSize(index); }

/// Emits an error at `op` when one of the vectors, which may be null, does not have `rows` elements.
static LogicalResult verifyVectors(Operation *op, StringRef code, int64_t rows,
                                   ArrayRef<std::pair<StringRef, Value>> vectors) {
  for (auto [name, value] : vectors)
    if (value && dim(value, 0) != rows)
      return op->emitOpError() << code << ": " << name << " has " << dim(value, 0) << " elements, where there are "
                               << rows << " rows";
  return success();
}

static LogicalResult verifyBias(Operation *op, StringRef code, int64_t columns, Value bias) {
  if (bias && dim(bias, 0) != columns)
    return op->emitOpError() << code << ": the bias has " << dim(bias, 0) << " elements for " << columns << " columns";
  return success();
}

//===----------------------------------------------------------------------===//
// moe.vocab_loss
//===----------------------------------------------------------------------===//

/// x [N, H] and table [R, H] of one type: VL1, VLG1.
static LogicalResult verifyProjection(Operation *op, StringRef code, Value x, Value table) {
  auto type = cast<RankedTensorType>(x.getType()), shard = cast<RankedTensorType>(table.getType());
  if (type.getElementType() != shard.getElementType() || type.getDimSize(1) != shard.getDimSize(1))
    return op->emitOpError() << code << ": x is " << type << " and the table " << shard
                             << ": they must have the same columns and element type";
  return success();
}

/// VL3, VL4: the grid's ranks hold the vocabulary.
static LogicalResult verifyShardRows(Operation *op, StringRef code, FlatSymbolRefAttr grid, int64_t rows,
                                     int64_t size) {
  int64_t ranks = 1;
  if (grid) {
    FailureOr<Grid> found = Grid::lookup(op, grid);
    if (failed(found))
      return op->emitOpError() << code << "4: there is no grid " << grid
                               << " with static sizes of at most 2^31 - 1 ranks";
    ranks = found->getShards();
  }
  if (rows < static_cast<int64_t>(llvm::divideCeil(size, ranks)))
    return op->emitOpError() << code << "3: " << ranks << " shards of " << rows << " rows do not hold a vocabulary of "
                             << size;
  return success();
}

LogicalResult VocabLossOp::verify() {
  int64_t rows = dim(getX(), 0);
  if (failed(verifyProjection(*this, "VL1", getX(), getTable())) || // VL1
      failed(
          verifyVectors(*this, "VL1", rows, {{"labels", getLabels()}, {"losses", getLosses()}, {"lse", getLse()}})) ||
      failed(verifyBias(*this, "VL2", dim(getTable(), 0), getBias()))) // VL2
    return failure();
  if (!getGrid()) // VL3
    return verifyShardRows(*this, "VL", {}, dim(getTable(), 0), getVocabulary().getSize());
  return success();
}

LogicalResult VocabLossOp::verifySymbolUses(SymbolTableCollection &) {
  if (!getGrid())
    return success();
  return verifyShardRows(*this, "VL", getGridAttr(), dim(getTable(), 0), getVocabulary().getSize()); // VL3, VL4
}

SmallVector<Value> VocabLossOp::getResiduals() {
  SmallVector<Value> residuals = {getX(), getTable(), getLabels(), getLse()};
  if (getBias())
    residuals.push_back(getBias());
  return residuals;
}

LogicalResult VocabLossOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                        ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  if (resultCotangents[1])
    return emitOpError("takes no cotangent of lse: the loss may depend on it through z_loss alone");
  Value bias = getBias() ? residuals[4] : Value();
  auto grad = VocabLossGradOp::create(builder, loc, getX().getType(), getTable().getType(),
                                      bias ? bias.getType() : Type(), resultCotangents[0], residuals[0], residuals[1],
                                      residuals[2], residuals[3], bias, getGridAttr(), getVocabularyAttr());
  operandCotangents[0] = grad.getXGrad();
  operandCotangents[1] = grad.getTableGrad();
  if (bias)
    operandCotangents[3] = grad.getBiasGrad();
  return success();
}

Component VocabLossOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult VocabLossGradOp::verify() {
  int64_t rows = dim(getX(), 0), columns = dim(getTable(), 0);
  if (failed(verifyProjection(*this, "VLG1", getX(), getTable())) || // VLG1
      failed(verifyVectors(*this, "VLG1", rows,
                           {{"cotangents", getCotangents()}, {"labels", getLabels()}, {"lse", getLse()}})) ||
      failed(verifyBias(*this, "VLG2", columns, getBias())) || // VLG2
      failed(verifyBias(*this, "VLG2", columns, getBiasGrad())))
    return failure();
  for (auto [operand, gradient] : {std::pair<Value, Value>{getX(), getXGrad()}, {getTable(), getTableGrad()}}) {
    auto type = cast<RankedTensorType>(gradient.getType()), wanted = cast<RankedTensorType>(operand.getType());
    if (type.getShape() != wanted.getShape()) // VLG1
      return emitOpError() << "VLG1: the gradient of " << wanted << " is " << type;
    if (!type.getElementType().isF32() && type != wanted) // VLG5
      return emitOpError() << "VLG5: the gradient of " << wanted << " is " << type << ": it must be f32, or the same";
  }
  if (static_cast<bool>(getBias()) != static_cast<bool>(getBiasGrad())) // VLG2
    return emitOpError() << "VLG2: bias and its gradient must both be there, or neither";
  if (!getGrid()) // VLG3
    return verifyShardRows(*this, "VLG", {}, columns, getVocabulary().getSize());
  return success();
}

LogicalResult VocabLossGradOp::verifySymbolUses(SymbolTableCollection &) {
  if (!getGrid())
    return success();
  return verifyShardRows(*this, "VLG", getGridAttr(), dim(getTable(), 0), getVocabulary().getSize()); // VLG3, VLG4
}

Component VocabLossGradOp::getDefaultComponent() { return Component::Vocabulary; }

//===----------------------------------------------------------------------===//
// moe.log_softmax
//===----------------------------------------------------------------------===//

LogicalResult LogSoftmaxOp::verify() {
  RankedTensorType type = getInput().getType();
  if (getResult().getType() != type || type.getDimSize(1) < getVocabulary().getSize()) // LS1
    return emitOpError() << "LS1: takes " << type << " to " << getResult().getType()
                         << ": both must be one type with at least the " << getVocabulary().getSize()
                         << " columns of the vocabulary";
  if (failed(verifyVectors(*this, "LS1", type.getDimSize(0), {{"lse", getLse()}}))) // LS1
    return failure();
  return verifyBias(*this, "LS2", type.getDimSize(1), getBias()); // LS2
}

SmallVector<Value> LogSoftmaxOp::getResiduals() { return {getResult(), getLse()}; }

LogicalResult LogSoftmaxOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                         ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  if (!resultCotangents[0])
    return emitOpError("has an adjoint only where its result is used, beside lse");
  auto grad = LogSoftmaxGradOp::create(builder, loc, getInput().getType(), getBias() ? getBias().getType() : Type(),
                                       resultCotangents[0], residuals[0], residuals[1], resultCotangents[1],
                                       getVocabularyAttr());
  operandCotangents[0] = grad.getResult();
  if (getBias())
    operandCotangents[1] = grad.getBiasGrad();
  return success();
}

Component LogSoftmaxOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult LogSoftmaxGradOp::verify() {
  RankedTensorType type = getOutput().getType();
  if (getCotangent().getType() != type || getResult().getType() != type || // LSG1
      type.getDimSize(1) < getVocabulary().getSize())
    return emitOpError() << "LSG1: cotangent, output and result are " << getCotangent().getType() << ", " << type
                         << " and " << getResult().getType() << ": they must be one type with at least the "
                         << getVocabulary().getSize() << " columns of the vocabulary";
  if (failed(verifyVectors(*this, "LSG1", type.getDimSize(0), // LSG1
                           {{"lse", getLse()}, {"lse_cotangent", getLseCotangent()}})))
    return failure();
  return verifyBias(*this, "LSG2", type.getDimSize(1), getBiasGrad()); // LSG2
}

Component LogSoftmaxGradOp::getDefaultComponent() { return Component::Vocabulary; }

Component CountLabelsOp::getDefaultComponent() { return Component::Vocabulary; }

//===----------------------------------------------------------------------===//
// moe.nll and moe.mean_loss
//===----------------------------------------------------------------------===//

/// NL1 and NLG1.
static LogicalResult verifyLogProbs(Operation *op, StringRef code, Value logProbs, VocabularyAttr vocabulary,
                                    ArrayRef<std::pair<StringRef, Value>> vectors) {
  if (dim(logProbs, 1) < vocabulary.getSize())
    return op->emitOpError() << code << ": there are " << dim(logProbs, 1) << " columns for a vocabulary of "
                             << vocabulary.getSize();
  return verifyVectors(op, code, dim(logProbs, 0), vectors);
}

LogicalResult NLLOp::verify() {
  return verifyLogProbs(*this, "NL1", getLogProbs(), getVocabulary(), // NL1
                        {{"lse", getLse()}, {"labels", getLabels()}, {"losses", getLosses()}});
}

SmallVector<Value> NLLOp::getResiduals() { return {getLse(), getLabels()}; }

LogicalResult NLLOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                  ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  auto grad = NLLGradOp::create(builder, loc, getLogProbs().getType(), getLse().getType(), resultCotangents[0],
                                residuals[0], residuals[1], getVocabularyAttr());
  operandCotangents[0] = grad.getLogProbsGrad();
  if (getVocabulary().hasZLoss())
    operandCotangents[1] = grad.getLseGrad();
  return success();
}

Component NLLOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult NLLGradOp::verify() {
  return verifyLogProbs(
      *this, "NLG1", getLogProbsGrad(), getVocabulary(), // NLG1
      {{"cotangents", getCotangents()}, {"lse", getLse()}, {"labels", getLabels()}, {"lse_grad", getLseGrad()}});
}

Component NLLGradOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult MeanLossOp::verify() {
  return verifyVectors(*this, "ML1", dim(getLosses(), 0), {{"weights", getWeights()}}); // ML1
}

SmallVector<Value> MeanLossOp::getResiduals() {
  SmallVector<Value> residuals = {getCount()};
  if (getWeights())
    residuals.push_back(getWeights());
  return residuals;
}

LogicalResult MeanLossOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                       ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = MeanLossGradOp::create(builder, loc, getLosses().getType(), resultCotangents[0],
                                                getWeights() ? residuals[1] : Value(), residuals[0]);
  return success();
}

Component MeanLossOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult MeanLossGradOp::verify() {
  return verifyVectors(*this, "MLG1", dim(getResult(), 0), {{"weights", getWeights()}}); // MLG1
}

Component MeanLossGradOp::getDefaultComponent() { return Component::Vocabulary; }
