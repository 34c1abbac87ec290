//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Constants, and arith and math on tensors (or scalars), element by element.
//===----------------------------------------------------------------------===//

#include "ElementFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

template <typename Scalar>
static LogicalResult evaluateConstant(arith::ConstantOp op, RankCall &call) {
  ArrayRef<int64_t> shape = getShape(op.getType());
  auto fromFloat = [](const APFloat &number) { return fromDouble<Scalar>(number.convertToDouble()); };
  auto fromInteger = [](const APInt &number) { return normalizeInteger(number.sextOrTrunc(64).getZExtValue(), 64); };
  auto fromBits = [&](const APInt &number) {
    return number.getBitWidth() == 1 ? int64_t(number.getZExtValue()) : fromInteger(number);
  };
  if (auto scalar = dyn_cast<FloatAttr>(op.getValue())) {
    call.set(op.getResult(), Tensor::make(shape, fromFloat(scalar.getValue())));
    return success();
  }
  if (auto scalar = dyn_cast<IntegerAttr>(op.getValue())) {
    call.set(op.getResult(), Tensor::make(shape, fromBits(scalar.getValue())));
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense)
    return call.fail("its value is neither a number nor dense elements");
  if (isa<FloatType>(dense.getElementType())) {
    auto elements = llvm::map_range(dense.getValues<APFloat>(), fromFloat);
    call.set(op.getResult(), Tensor::make(shape, std::vector<Scalar>(elements.begin(), elements.end())));
    return success();
  }
  if (!dense.getElementType().isIntOrIndex())
    return call.fail("its elements are neither floating-point numbers nor integers");
  auto elements = llvm::map_range(dense.getValues<APInt>(), fromBits);
  call.set(op.getResult(), Tensor::make(shape, std::vector<int64_t>(elements.begin(), elements.end())));
  return success();
}

void interpreter::addConstantOps(OpTable &table) {
  table.add<arith::ConstantOp>(evaluateConstant<double>, evaluateConstant<Field>);
}

/// The shape of an elementwise result: that of the operands that are tensors.
static FailureOr<ArrayRef<int64_t>> getCommonShape(Operation *op, RankCall &call) {
  std::optional<ArrayRef<int64_t>> common;
  for (Value operand : op->getOperands()) {
    if (!isa<RankedTensorType>(operand.getType()))
      continue;
    ArrayRef<int64_t> shape = call.get(operand).getShape();
    if (common && *common != shape)
      return call.fail("has operands of " + Twine(common->front()) + " and of " + Twine(shape.front()) + " rows");
    common = shape;
  }
  return common.value_or(ArrayRef<int64_t>());
}

static LogicalResult evaluateElementwise(Operation *op, RankCall &call, Mode mode) {
  ElementFunction function = *getElementFunction(op, mode);
  Value value = op->getResult(0);
  FailureOr<ArrayRef<int64_t>> shape = getCommonShape(op, call);
  if (failed(shape))
    return failure();
  Tensor result = makeUndefined(value.getType(), *shape, mode);
  void *elements = getMutableElements(result);
  SmallVector<const void *> operands;
  SmallVector<int64_t> strides; // 0: a scalar operand (the condition of a select) meets every element
  for (Value operand : op->getOperands()) {
    operands.push_back(getElements(call.get(operand)));
    strides.push_back(isa<RankedTensorType>(operand.getType()));
  }
  SmallVector<Cell, 3> cells(operands.size());
  for (int64_t index = 0, size = result.getSize(); index < size; ++index) {
    for (size_t i = 0; i < operands.size(); ++i)
      cells[i] = loadCell(operands[i], index * strides[i]);
    storeCell(elements, index, function(cells.data()));
  }
  call.set(value, std::move(result));
  return success();
}

void interpreter::addElementwiseOps(OpTable &table) {
  Mode mode = table.getMode();
  for (StringRef name : getElementwiseOpNames())
    table.add(name, onEachRank([mode](Operation *op, RankCall &call) { return evaluateElementwise(op, call, mode); },
                               Access::Computes, Shapes::Routed));
}
