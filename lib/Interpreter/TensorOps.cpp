//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Views and slices of tensors: elements move, none is computed.
//===----------------------------------------------------------------------===//

#include "Cell.h"
#include "Points.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

template <Mode mode>
static LogicalResult evaluateEmpty(tensor::EmptyOp op, RankCall &call) {
  call.set(op.getResult(), makeUndefined(op.getType(), mode));
  return success();
}

/// The same elements in the shape of the result.
template <typename OpTy>
static LogicalResult evaluateReshape(OpTy op, RankCall &call) {
  call.set(op.getResult(), call.get(op->getOperand(0)).reshape(getShape(op->getResult(0).getType())));
  return success();
}

/// Where the points of a slice lie in `whole`: offsets may be known only now, sizes and strides are in the IR.
template <typename OpTy>
static FailureOr<LinearForm> getPositions(OpTy op, RankCall &call, const Tensor &whole) {
  if (ShapedType::isDynamicShape(op.getStaticSizes()) || ShapedType::isDynamicShape(op.getStaticStrides()))
    return call.fail("the interpreter knows slices of static sizes and strides only");
  LinearForm form;
  for (auto [dimension, offset] : llvm::enumerate(op.getMixedOffsets())) {
    int64_t first = isa<Value>(offset) ? call.read<int64_t>(cast<Value>(offset))[0] : *getConstantIntValue(offset);
    int64_t step = op.getStaticStrides()[dimension], last = first + (op.getStaticSizes()[dimension] - 1) * step;
    if (first < 0 || last >= whole.getShape()[dimension])
      return call.fail("takes elements " + Twine(first) + " to " + Twine(last) + " of dimension " + Twine(dimension) +
                       ", which has " + Twine(whole.getShape()[dimension]));
    int64_t stride = getStrides(whole.getShape())[dimension];
    form.constant += first * stride;
    form.coefficients.push_back(step * stride);
  }
  return form;
}

template <Mode mode>
static LogicalResult evaluateExtractSlice(tensor::ExtractSliceOp op, RankCall &call) {
  const Tensor &source = call.get(op.getSource());
  FailureOr<LinearForm> position = getPositions(op, call, source);
  if (failed(position))
    return failure();
  Tensor result = makeUndefined(op.getType(), mode);
  const void *from = getElements(source);
  void *to = getMutableElements(result);
  int64_t next = 0; // unit dimensions that the result drops do not change the order
  forEachPoint(op.getStaticSizes(),
               [&](ArrayRef<int64_t> point) { storeCell(to, next++, loadCell(from, (*position)(point))); });
  call.set(op.getResult(), std::move(result));
  return success();
}

static LogicalResult evaluateInsertSlice(tensor::InsertSliceOp op, RankCall &call) {
  Tensor result = call.get(op.getDest()).copy();
  FailureOr<LinearForm> position = getPositions(op, call, result);
  if (failed(position))
    return failure();
  const void *from = getElements(call.get(op.getSource()));
  void *to = getMutableElements(result);
  int64_t next = 0;
  forEachPoint(op.getStaticSizes(),
               [&](ArrayRef<int64_t> point) { storeCell(to, (*position)(point), loadCell(from, next++)); });
  call.set(op.getResult(), std::move(result));
  return success();
}

template <Mode mode>
static LogicalResult evaluateConcat(tensor::ConcatOp op, RankCall &call) {
  Tensor result = makeUndefined(op.getType(), mode);
  void *to = getMutableElements(result);
  SmallVector<int64_t> strides = getStrides(result.getShape());
  int64_t start = 0; // where the next input begins along the dimension
  for (Value input : op.getInputs()) {
    const Tensor &part = call.get(input);
    const void *from = getElements(part);
    int64_t next = 0;
    LinearForm position;
    position.constant = start * strides[op.getDim()];
    position.coefficients = strides;
    forEachPoint(part.getShape(),
                 [&](ArrayRef<int64_t> point) { storeCell(to, position(point), loadCell(from, next++)); });
    start += part.getShape()[op.getDim()];
  }
  call.set(op.getResult(), std::move(result));
  return success();
}

template <Mode mode>
static LogicalResult evaluateSplat(tensor::SplatOp op, RankCall &call) {
  Cell cell = loadCell(getElements(call.get(op.getInput())), 0);
  Tensor result = makeUndefined(op.getType(), mode);
  void *elements = getMutableElements(result);
  for (int64_t index = 0, size = result.getSize(); index < size; ++index)
    storeCell(elements, index, cell);
  call.set(op.getResult(), std::move(result));
  return success();
}

template <typename OpTy>
static void addReshape(OpTable &table) {
  table.add<OpTy>(evaluateReshape<OpTy>, evaluateReshape<OpTy>, Access::Moves);
}

void interpreter::addTensorOps(OpTable &table) {
  table.add<tensor::EmptyOp>(evaluateEmpty<Mode::Float64>, evaluateEmpty<Mode::Exact>, Access::Moves);
  addReshape<tensor::ExpandShapeOp>(table);
  addReshape<tensor::CollapseShapeOp>(table);
  addReshape<tensor::CastOp>(table);
  table.add<tensor::ExtractSliceOp>(evaluateExtractSlice<Mode::Float64>, evaluateExtractSlice<Mode::Exact>,
                                    Access::Moves);
  table.add<tensor::InsertSliceOp>(evaluateInsertSlice, evaluateInsertSlice, Access::Moves);
  table.add<tensor::ConcatOp>(evaluateConcat<Mode::Float64>, evaluateConcat<Mode::Exact>, Access::Moves);
  table.add<tensor::SplatOp>(evaluateSplat<Mode::Float64>, evaluateSplat<Mode::Exact>, Access::Moves);
}
