//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// What stands for the experts that the rank helps with, beside `own` for its own.
static LogicalResult verifyHelpers(Operation *op, StringRef code, PlanType plan, RankedTensorType own, Value helpers) {
  if (static_cast<bool>(helpers) != (plan.getHelperSlots() > 0))
    return op->emitOpError() << code << ": the plan has " << plan.getHelperSlots() << " helper slots, and the op "
                             << (helpers ? "something" : "nothing") << " for them";
  if (!helpers)
    return success();
  SmallVector<int64_t> shape(own.getShape());
  shape[0] = plan.getHelperSlots();
  if (auto expected = RankedTensorType::get(shape, own.getElementType()); helpers.getType() != expected)
    return op->emitOpError() << code << ": has " << helpers.getType() << " for the helper slots, and it must be "
                             << expected;
  return success();
}

LogicalResult GroupedMatmulOp::verify() {
  RankedTensorType rows = getRows().getType(), weights = getWeights().getType(), result = getResult().getType();
  int64_t experts = getPlan().getType().getLocalExperts();
  if (weights.getDimSize(0) != experts) // GM1
    return emitOpError() << "GM1: there are weights of " << weights.getDimSize(0) << " experts, and a rank has "
                         << experts;
  int64_t in = weights.getDimSize(getTranspose() ? 2 : 1), out = weights.getDimSize(getTranspose() ? 1 : 2);
  if (rows.getDimSize(1) != in || result.getDimSize(1) != out) // GM2
    return emitOpError() << "GM2: weights " << weights << " take " << in << " columns to " << out << ", but rows are "
                         << rows << " and the result is " << result;
  if (rows.getElementType() != weights.getElementType() || rows.getElementType() != result.getElementType()) // GM3
    return emitOpError() << "GM3: rows, weights and result must have one element type";
  if (!rows.isDynamicDim(0) || !result.isDynamicDim(0)) // GM4
    return emitOpError() << "GM4: the rows of a plan are known when the step runs: " << rows << " and " << result
                         << " must be [?, columns]";
  if (failed(verifyHelpers(*this, "GM5", getPlan().getType(), weights, getHelpers()))) // GM5
    return failure();
  return verifyIndex(*this, getPlan().getType(), getIndex()); // RO1
}

SmallVector<Value> GroupedMatmulOp::getResiduals() { return {getRows(), getWeights(), getPlan()}; }

LogicalResult GroupedMatmulOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                            ArrayRef<Value> resultCotangents,
                                            MutableArrayRef<Value> operandCotangents) {
  Value cotangent = resultCotangents[0], rows = residuals[0], weights = residuals[1], plan = residuals[2];
  operandCotangents[0] =
      GroupedMatmulOp::create(builder, loc, rows.getType(), cotangent, weights, plan, /*helpers=*/Value(),
                              /*index=*/Value(), /*transpose=*/!getTranspose());
  operandCotangents[1] =
      GroupedMatmulGradOp::create(builder, loc, weights.getType(), /*helperResult=*/Type(),
                                  getTranspose() ? cotangent : rows, getTranspose() ? rows : cotangent, plan,
                                  /*init=*/Value(), /*helperInit=*/Value(), /*index=*/Value())
          .getResult();
  return success();
}

Component GroupedMatmulOp::getDefaultComponent() { return Component::Experts; }

LogicalResult GroupedMatmulGradOp::verify() {
  RankedTensorType a = getA().getType(), b = getB().getType(), result = getResult().getType();
  if (result.getShape() !=
      ArrayRef<int64_t>({getPlan().getType().getLocalExperts(), a.getDimSize(1), b.getDimSize(1)})) // GMG1
    return emitOpError() << "GMG1: the result is " << result << ", and it must be ["
                         << getPlan().getType().getLocalExperts() << ", " << a.getDimSize(1) << ", " << b.getDimSize(1)
                         << "]";
  if (a.getElementType() != b.getElementType() ||
      (!result.getElementType().isF32() && result.getElementType() != a.getElementType())) // GMG2
    return emitOpError() << "GMG2: a and b must have one element type, and the result that type or f32";
  if (getInit() && getInit().getType() != result) // GMG3
    return emitOpError() << "GMG3: init is " << getInit().getType() << " and the result " << result;
  if (!a.isDynamicDim(0) || !b.isDynamicDim(0)) // GMG4
    return emitOpError() << "GMG4: the rows of a plan are known when the step runs: " << a << " and " << b
                         << " must be [?, columns]";
  if (failed(verifyHelpers(*this, "GMG5", getPlan().getType(), result, getHelperResult()))) // GMG5
    return failure();
  if (static_cast<bool>(getHelperInit()) != (getInit() && getHelperResult()) ||
      (getHelperInit() && getHelperInit().getType() != getHelperResult().getType())) // GMG5
    return emitOpError()
           << "GMG5: the gradients of helper slots are added onto something of their type exactly when the "
              "rank's own are";
  if (getIndex() && !getInit()) // GMG6
    return emitOpError("GMG6: takes the rows of an iteration, and there is nothing that it adds their gradient onto");
  return verifyIndex(*this, getPlan().getType(), getIndex()); // RO1
}

Component GroupedMatmulGradOp::getDefaultComponent() { return Component::Experts; }

static LogicalResult verifyHalves(Operation *op, StringRef code, Value wide, Value narrow) {
  RankedTensorType whole = getType(wide), half = getType(narrow);
  if (whole.getDimSize(1) != 2 * half.getDimSize(1) || whole.getDimSize(0) != half.getDimSize(0) ||
      whole.getElementType() != half.getElementType())
    return op->emitOpError() << code << ": " << whole << " must have twice the columns of " << half
                             << ", and the same rows and element type";
  return success();
}

LogicalResult SwiGLUOp::verify() { return verifyHalves(*this, "SG1", getInput(), getResult()); } // SG1

SmallVector<Value> SwiGLUOp::getResiduals() { return {getInput()}; }

LogicalResult SwiGLUOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                     ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = SwiGLUGradOp::create(builder, loc, resultCotangents[0], residuals[0]);
  return success();
}

Component SwiGLUOp::getDefaultComponent() { return Component::Experts; }

LogicalResult SwiGLUGradOp::verify() { return verifyHalves(*this, "SGG1", getInput(), getCotangent()); } // SGG1

Component SwiGLUGradOp::getDefaultComponent() { return Component::Experts; }

LogicalResult ScaleRowsOp::verify() {
  if (getInput().getType().getDimSize(0) != getFactors().getType().getDimSize(0)) // SR1
    return emitOpError() << "SR1: " << getFactors().getType() << " must have one number for each row of "
                         << getInput().getType();
  return success();
}

SmallVector<Value> ScaleRowsOp::getResiduals() { return {getInput(), getFactors()}; }

LogicalResult ScaleRowsOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                        ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = ScaleRowsOp::create(builder, loc, resultCotangents[0], residuals[1]);
  operandCotangents[1] = RowDotOp::create(builder, loc, getFactors().getType(), resultCotangents[0], residuals[0]);
  return success();
}

Component ScaleRowsOp::getDefaultComponent() { return Component::Experts; }

LogicalResult RowDotOp::verify() {
  if (getA().getType().getDimSize(0) != getResult().getType().getDimSize(0)) // RD1
    return emitOpError() << "RD1: " << getResult().getType() << " must have one number for each row of "
                         << getA().getType();
  return success();
}

SmallVector<Value> RowDotOp::getResiduals() { return {getA(), getB()}; }

LogicalResult RowDotOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                     ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = ScaleRowsOp::create(builder, loc, residuals[1], resultCotangents[0]);
  operandCotangents[1] = ScaleRowsOp::create(builder, loc, residuals[0], resultCotangents[0]);
  return success();
}

Component RowDotOp::getDefaultComponent() { return Component::Experts; }

RoutedKind GroupedMatmulOp::getRoutedKind() { return RoutedKind::Row; }
RoutedKind GroupedMatmulGradOp::getRoutedKind() { return RoutedKind::Reduce; }
RoutedKind SwiGLUOp::getRoutedKind() { return RoutedKind::Row; }
RoutedKind SwiGLUGradOp::getRoutedKind() { return RoutedKind::Row; }
RoutedKind ScaleRowsOp::getRoutedKind() { return RoutedKind::Row; }
RoutedKind RowDotOp::getRoutedKind() { return RoutedKind::Row; }
