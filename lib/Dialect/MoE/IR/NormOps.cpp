//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/runtime_footprint.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

/// Whether `statistics` has the shape of `input` without its last dimension.
static bool isOneForEachRow(RankedTensorType statistics, RankedTensorType input) {
  return statistics.getShape() == input.getShape().drop_back();
}

LogicalResult RMSNormOp::verify() {
  RankedTensorType input = getInput().getType(), weight = getWeight().getType();
  if (weight.getDimSize(0) != input.getShape().back()) // RN1
    return emitOpError() << "RN1: weight has " << weight.getDimSize(0) << " elements and a row has "
                         << input.getShape().back();
  if (getOutput().getType() != input || weight.getElementType() != input.getElementType()) // RN2
    return emitOpError() << "RN2: output must be " << input << " and weight " << input.getElementType();
  if (!isOneForEachRow(getInverse().getType(), input)) // RN3
    return emitOpError() << "RN3: inverse has one element for each row of " << input;
  if (!getEpsilon().isFinite() || getEpsilon().isNegative()) // RN4
    return emitOpError() << "RN4: epsilon must be finite and not negative";
  return success();
}

SmallVector<Value> RMSNormOp::getResiduals() { return {getInput(), getWeight(), getInverse()}; }

LogicalResult RMSNormOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                      ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  if (resultCotangents[1])
    return emitOpError("has no adjoint for its result 'inverse'");
  auto grad = RMSNormGradOp::create(builder, loc, getInput().getType(), getWeight().getType(), resultCotangents[0],
                                    residuals[0], residuals[1], residuals[2]);
  operandCotangents[0] = grad.getInputGrad();
  operandCotangents[1] = grad.getWeightGrad();
  return success();
}

Component RMSNormOp::getDefaultComponent() { return Component::Dense; }

LogicalResult RMSNormGradOp::verify() {
  RankedTensorType input = getInput().getType(), weight = getWeight().getType();
  if (getCotangent().getType() != input || getInputGrad().getType() != input) // RNG1
    return emitOpError() << "RNG1: cotangent and input_grad must be " << input;
  if (getWeightGrad().getType() != weight || weight.getDimSize(0) != input.getShape().back()) // RNG2
    return emitOpError() << "RNG2: weight and weight_grad must be one type of " << input.getShape().back()
                         << " elements";
  if (!isOneForEachRow(getInverse().getType(), input)) // RNG3
    return emitOpError() << "RNG3: inverse has one element for each row of " << input;
  return success();
}

Component RMSNormGradOp::getDefaultComponent() { return Component::Dense; }

int64_t RMSNormGradOp::getWorkspaceBytes() { return plr_footprint_rms_norm_grad(getWeight().getType().getDimSize(0)); }
