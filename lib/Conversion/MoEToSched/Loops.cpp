//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Loops whose carried values are updated in place, and the slices they read.
//===----------------------------------------------------------------------===//

#include "FunctionConversion.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::plateau;

LogicalResult FunctionConversion::lowerBlock(Block &block) {
  for (Operation &op : block) {
    loc = op.getLoc();
    if (failed(checkOperands(&op)) || failed(lower(&op)))
      return failure();
  }
  return success();
}

LogicalResult FunctionConversion::lowerFor(scf::ForOp op) {
  APInt bounds[3];
  for (auto [bound, value] : llvm::zip_equal(bounds, ValueRange{op.getLowerBound(), op.getUpperBound(), op.getStep()}))
    if (!matchPattern(value, m_ConstantInt(&bound)))
      return op.emitOpError("is lowered only between constant bounds");
  int64_t from = bounds[0].getSExtValue(), to = bounds[1].getSExtValue(), step = bounds[2].getSExtValue();
  if (step <= 0)
    return op.emitOpError() << "has a step of " << step << ", which must be positive";
  SmallVector<Value> inits;
  for (auto [init, argument] : llvm::zip_equal(op.getInitArgsMutable(), op.getRegionIterArgs())) {
    if (!isa<TensorType>(argument.getType()))
      return op.emitOpError() << "carries a value of type " << argument.getType() << ": only tensors are lowered";
    take(init, argument);
    inits.push_back(getContent(argument));
  }
  int64_t trips = to > from ? llvm::divideCeil(to - from, step) : 0;
  auto loop = sched::LoopOp::create(builder, op.getLoc(), TypeRange(inits), /*from=*/0, trips,
                                    /*inFlight=*/IntegerAttr(), inits);
  Block &body = loop.getBody().emplaceBlock();
  Value counter = body.addArgument(builder.getIndexType(), op.getLoc());
  for (auto [init, argument] : llvm::zip_equal(inits, op.getRegionIterArgs()))
    setContent(argument, body.addArgument(init.getType(), op.getLoc()));
  indices[op.getInductionVar()] = {counter, from, step};
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&body);
    if (failed(lowerBlock(*op.getBody())))
      return failure();
  }
  for (auto [index, result, argument] : llvm::enumerate(op.getResults(), op.getRegionIterArgs())) {
    buffers.bind(result, buffers.getView(argument));
    setContent(result, loop.getResult(index));
  }
  return success();
}

LogicalResult FunctionConversion::lowerYield(scf::YieldOp op) {
  auto loop = cast<scf::ForOp>(op->getParentOp());
  SmallVector<Value> values;
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    View view = buffers.getView(value), carried = buffers.getView(loop.getRegionIterArg(index));
    Value content = getContent(value);
    if (view.buffer == carried.buffer && view.offsetBytes == carried.offsetBytes) {
      values.push_back(content); // Updated in place.
      continue;
    }
    for (BlockArgument argument : loop.getRegionIterArgs())
      if (buffers.getView(argument).buffer == view.buffer)
        return op.emitOpError() << "operand #" << index
                                << " is another carried value of the loop: values that change places are not lowered";
    values.push_back(copy(op, content, getPlace(carried, getMemory(value))));
  }
  sched::YieldOp::create(builder, op.getLoc(), values);
  return success();
}

Value FunctionConversion::getCarried(Operation *op, Value result) {
  if (!result.hasOneUse())
    return {};
  auto yield = dyn_cast<scf::YieldOp>(*result.user_begin());
  if (!yield || yield->getBlock() != op->getBlock())
    return {};
  Value carried = cast<scf::ForOp>(yield->getParentOp()).getRegionIterArg(result.use_begin()->getOperandNumber());
  bool isRead = llvm::is_contained(op->getOperands(), carried);
  return isRead && carried.getType() == result.getType() && buffers.canTake(carried, op) ? carried : Value();
}

LogicalResult FunctionConversion::lowerSlice(tensor::ExtractSliceOp op) {
  RankedTensorType source = op.getSourceType(), result = op.getType();
  auto argument = dyn_cast<BlockArgument>(op.getSource());
  if (source.getRank() != 1 || result.getRank() != 1 || !result.hasStaticShape() || op.getStaticStrides()[0] != 1 ||
      !argument || argument.getOwner() != &function.getBody().front())
    return op.emitOpError("is lowered only for ranges of a vector that is an argument of the function");
  int64_t elementBytes = source.getElementTypeBitWidth() / 8, offset = 0, stride = 0;
  Value counter;
  APInt constant;
  if (op.getOffsets().empty()) {
    offset = op.getStaticOffsets()[0];
  } else if (matchPattern(op.getOffsets()[0], m_ConstantInt(&constant))) {
    offset = constant.getSExtValue();
  } else {
    auto it = indices.find(op.getOffsets()[0]);
    if (it == indices.end())
      return op.emitOpError("is lowered only from a constant, or from the index of a loop");
    counter = it->second.counter;
    offset = it->second.from;
    stride = it->second.step;
  }
  if (stride == 0)
    counter = {};
  Value part =
      sched::ViewOp::create(builder, loc, getMemory(op.getResult()), buffers.getRoot(buffers.getView(argument).buffer),
                            counter, offset * elementBytes, stride * elementBytes, /*ring=*/IntegerAttr());
  buffers.bind(op.getResult(), {buffers.add(part, getTensorBytes(result), /*isOwned=*/false, /*isWritable=*/false)});
  setContent(op.getResult(), part);
  return success();
}
