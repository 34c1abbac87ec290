//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

LogicalResult LogSoftmaxOp::verify() {
  if (getInput().getType().getDimSize(1) < 1) // LS1
    return emitOpError() << "LS1: a row must have at least one column";
  return success();
}

SmallVector<Value> LogSoftmaxOp::getResiduals() { return {getResult()}; }

LogicalResult LogSoftmaxOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                         ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = LogSoftmaxGradOp::create(builder, loc, resultCotangents[0], residuals[0]);
  return success();
}

Component LogSoftmaxOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult LogSoftmaxGradOp::verify() {
  if (getOutput().getType().getDimSize(1) < 1) // LSG1
    return emitOpError() << "LSG1: a row must have at least one column";
  return success();
}

Component LogSoftmaxGradOp::getDefaultComponent() { return Component::Vocabulary; }

Component CountLabelsOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult NLLOp::verify() {
  if (getLogProbs().getType().getDimSize(0) != getLabels().getType().getDimSize(0)) // NL1
    return emitOpError() << "NL1: there are " << getLabels().getType().getDimSize(0) << " labels for "
                         << getLogProbs().getType().getDimSize(0) << " rows";
  return success();
}

SmallVector<Value> NLLOp::getResiduals() { return {getLabels(), getCount()}; }

LogicalResult NLLOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                  ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = NLLGradOp::create(builder, loc, getLogProbs().getType(), resultCotangents[0], residuals[0],
                                           residuals[1], getIgnoreIndexAttr());
  return success();
}

Component NLLOp::getDefaultComponent() { return Component::Vocabulary; }

LogicalResult NLLGradOp::verify() {
  if (getResult().getType().getDimSize(0) != getLabels().getType().getDimSize(0)) // NLG1
    return emitOpError() << "NLG1: there are " << getLabels().getType().getDimSize(0) << " labels for "
                         << getResult().getType().getDimSize(0) << " rows";
  return success();
}

Component NLLGradOp::getDefaultComponent() { return Component::Vocabulary; }
