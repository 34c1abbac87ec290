//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

/// The tensors of a group against its layout: U1, U2 and PK1, PK2.
static LogicalResult verifyTensors(Operation *op, StringRef code, LayoutAttr layout, RankedTensorType group,
                                   TypeRange tensors) {
  if (tensors.size() != layout.getMembers().size())
    return op->emitOpError() << code << "1: there are " << tensors.size() << " tensors and the layout has "
                             << layout.getMembers().size();
  for (auto [type, member] : llvm::zip_equal(tensors, layout.getMembers())) {
    auto wanted = RankedTensorType::get(member.getShape(), group.getElementType());
    if (type != wanted)
      return op->emitOpError() << code << "1: tensor '" << member.getParameter().getName() << "' is " << type
                               << " and the layout says " << wanted;
  }
  return success();
}

/// A group holds its layout's extent: U2, PK2, SS1 and AW4.
static LogicalResult verifyExtent(Operation *op, StringRef code, LayoutAttr layout, RankedTensorType group) {
  if (group.getNumElements() < layout.getExtent())
    return op->emitOpError() << code << ": the group has " << group.getNumElements()
                             << " elements and the layout needs " << layout.getExtent();
  return success();
}

LogicalResult UnpackOp::verify() {
  if (failed(verifyTensors(*this, "U", getLayout(), getGroup().getType(), getTensors().getTypes()))) // U1
    return failure();
  return verifyExtent(*this, "U2", getLayout(), getGroup().getType()); // U2
}

Component UnpackOp::getDefaultComponent() { return Component::Parameters; }

LogicalResult PackOp::verify() {
  if (failed(verifyTensors(*this, "PK", getLayout(), getInto().getType(), getTensors().getTypes()))) // PK1
    return failure();
  return verifyExtent(*this, "PK2", getLayout(), getInto().getType()); // PK2; PK3 is a trait
}

Component PackOp::getDefaultComponent() { return Component::Gradients; }

LogicalResult SumSquaresOp::verify() {
  return verifyExtent(*this, "SS1", getLayout(), getGradients().getType()); // SS1
}

Component SumSquaresOp::getDefaultComponent() { return Component::Optimizer; }

LogicalResult GradNormOp::verify() {
  if (getSquares().empty()) // GN1
    return emitOpError() << "GN1: needs at least one sum of squares";
  return success();
}

Component GradNormOp::getDefaultComponent() { return Component::Optimizer; }

LogicalResult ClipFactorOp::verify() {
  const APFloat &limit = getMaxNorm();
  if (limit.isNaN() || limit.isNegative() || limit.isZero()) // CF1
    return emitOpError() << "CF1: max_norm must be positive, or +inf for no clipping";
  return success();
}

Component ClipFactorOp::getDefaultComponent() { return Component::Optimizer; }

LogicalResult AdamWOp::verify() {
  RankedTensorType parameters = getParameters().getType(), gradients = getGradients().getType();
  if (gradients.getShape() != parameters.getShape() ||
      !(gradients.getElementType().isF32() || gradients.getElementType() == parameters.getElementType())) // AW1
    return emitOpError() << "AW1: gradients must be " << parameters << " like the parameters, or f32 of that length";
  auto state = RankedTensorType::get(parameters.getShape(), Float32Type::get(getContext()));
  for (Value value : {getFirst(), getSecond(), getMaster(), getNewFirst(), getNewSecond(), getNewMaster()})
    if (value && value.getType() != state) // AW2
      return emitOpError() << "AW2: first, second and master must be " << state;
  bool isNarrow = parameters.getElementType().isBF16();
  if (isNarrow != static_cast<bool>(getMaster()) || isNarrow != static_cast<bool>(getNewMaster())) // AW3
    return emitOpError() << "AW3: a master is there exactly when the parameters are bf16";
  if (getNewParameters().getType() != parameters)
    return emitOpError() << "AW1: new parameters must be " << parameters << " like the parameters";
  if (failed(verifyExtent(*this, "AW4", getLayout(), parameters))) // AW4
    return failure();
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  double epsilon = getEpsilon().convertToDouble(), decay = getWeightDecay().convertToDouble();
  if (!(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1 && static_cast<float>(epsilon) > 0 && decay >= 0) ||
      !std::isfinite(epsilon) || !std::isfinite(decay)) // AW5
    return emitOpError() << "AW5: needs 0 <= beta1, beta2 < 1, epsilon > 0 in f32 and weight_decay >= 0";
  return success();
}

Component AdamWOp::getDefaultComponent() { return Component::Optimizer; }
