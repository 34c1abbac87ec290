//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Loops whose carried values are updated in place.
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

/// The plan by which all calls of a loop are, iteration by iteration; null when there is none.
static Value findPlan(sched::LoopOp loop) {
  Value plan;
  for (Operation &op : loop.getBody().front()) {
    auto call = dyn_cast<sched::LaneOpInterface>(op);
    if (!call && !isa<sched::LoopOp>(op))
      continue;
    if (!call || call.getTables().empty())
      return {};
    auto isPlan = [](Value table) {
      auto fill = table.getDefiningOp<sched::CollectiveOp>();
      return fill && fill.getCallee() == "plr_plan_fill";
    };
    auto found = llvm::find_if(call.getTables(), isPlan);
    if (found == call.getTables().end() || (plan && *found != plan) || call.getTables().size() < 2)
      return {};
    plan = *found;
  }
  return plan;
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
  auto inFlight = op->getAttrOfType<IntegerAttr>("moe.in_flight");
  auto loop = sched::LoopOp::create(builder, op.getLoc(), TypeRange(inits), /*from=*/0, trips,
                                    inFlight ? builder.getI64IntegerAttr(inFlight.getInt()) : IntegerAttr(),
                                    /*until=*/Value(), /*untilBehind=*/IntegerAttr(), inits);
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
  if (Value plan = findPlan(loop)) {
    loop.getUntilMutable().assign(plan);
    loop.setUntilBehind(1);
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

LogicalResult FunctionConversion::lowerIndex(Operation *op) {
  auto it = indices.find(op->getOperand(0));
  APInt constant;
  bool isSum = isa<arith::AddIOp>(op);
  Value other = op->getOperand(1);
  if (it == indices.end() && isSum) {
    it = indices.find(op->getOperand(1));
    other = op->getOperand(0);
  }
  if (!op->getResult(0).getType().isIndex() || it == indices.end() || !matchPattern(other, m_ConstantInt(&constant)))
    return op->emitOpError("is lowered only for the index of a loop and a constant");
  Index index = it->second;
  index.from += isSum ? constant.getSExtValue() : -constant.getSExtValue();
  indices[op->getResult(0)] = index;
  return success();
}
