//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

LogicalResult RotaryTableOp::verify() {
  RankedTensorType cos = getCos().getType();
  if (cos != getSin().getType() || cos.getDimSize(0) != getPositions().getType().getDimSize(0) ||
      cos.getDimSize(1) < 1) // RT1
    return emitOpError() << "RT1: cos and sin are one type with a row for each of "
                         << getPositions().getType().getDimSize(0) << " positions and at least one column";
  double theta = getTheta().convertToDouble();
  if (!std::isfinite(theta) || theta <= 0) // RT2
    return emitOpError() << "RT2: theta must be finite and positive";
  return success();
}

Component RotaryTableOp::getDefaultComponent() { return Component::Attention; }

LogicalResult RotaryOp::verify() {
  RankedTensorType input = getInput().getType(), cos = getCos().getType();
  if (input.getDimSize(2) % 2 || getResult().getType() != input) // RO1
    return emitOpError() << "RO1: the head size of " << input << " must be even and the result of its type";
  if (cos != getSin().getType() || cos.getDimSize(0) != input.getDimSize(0) ||
      cos.getDimSize(1) * 2 != input.getDimSize(2)) // RO2
    return emitOpError() << "RO2: cos and sin must be [" << input.getDimSize(0) << ", " << input.getDimSize(2) / 2
                         << "]";
  return success();
}

/// A turn by the inverse of a turn is the input itself only up to rounding, so nothing folds but the empty tensor.
OpFoldResult RotaryOp::fold(FoldAdaptor) {
  return getInput().getType().getNumElements() == 0 ? OpFoldResult(getInput()) : OpFoldResult();
}

SmallVector<Value> RotaryOp::getResiduals() { return {getCos(), getSin()}; }

LogicalResult RotaryOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                     ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = RotaryOp::create(builder, loc, getInput().getType(), resultCotangents[0], residuals[0],
                                          residuals[1], !getInverse());
  return success();
}

Component RotaryOp::getDefaultComponent() { return Component::Attention; }
