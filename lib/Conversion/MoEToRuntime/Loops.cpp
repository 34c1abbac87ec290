
// Loops whose carried values are updated in place, and the slices they read.
//===----------------------------------------------------------------------===//

#include "FunctionLowering.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::plateau;

LogicalResult FunctionLowering::lowerBlock(Block &block) {
  for (Operation &op : block) {
    buffers.enter(&block);
    if (failed(checkOperands(&op)) || failed(lower(&op)))
      return failure();
    loc = op.getLoc();
    buffers.enter(&block);
    for (unsigned buffer : buffers.releaseAfter(&op))
      if (buffers.isPlan(buffer))
        calls.callVoid(loc, "plr_plan_release", {buffers.getPointer(buffer)});
      else
        release(buffers.getPointer(buffer));
  }
  return success();
}

LogicalResult FunctionLowering::lowerFor(scf::ForOp op) {
  APInt bounds[3];
  for (auto [bound, value] : llvm::zip_equal(bounds, ValueRange{op.getLowerBound(), op.getUpperBound(), op.getStep()}))
    if (!matchPattern(value, m_ConstantInt(&bound)))
      return op.emitOpError("is lowered only between constant bounds");
  if (!bounds[2].isStrictlyPositive())
    return op.emitOpError() << "has a step of " << bounds[2].getSExtValue() << ", which must be positive";
  for (auto [init, argument] : llvm::zip_equal(op.getInitArgsMutable(), op.getRegionIterArgs())) {
    if (!isa<TensorType>(argument.getType()))
      return op.emitOpError() << "carries a value of type " << argument.getType() << ": only tensors are lowered";
    take(init, argument);
  }
  auto loop = scf::ForOp::create(builder, loc, i64(bounds[0].getSExtValue()), i64(bounds[1].getSExtValue()),
                                 i64(bounds[2].getSExtValue()));
  indices[op.getInductionVar()] = loop.getInductionVar();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    if (failed(lowerBlock(*op.getBody())))
      return failure();
  }
  loc = op.getLoc();
  for (auto [result, argument] : llvm::zip_equal(op.getResults(), op.getRegionIterArgs()))
    buffers.bind(result, buffers.getView(argument));
  return success();
}

LogicalResult FunctionLowering::lowerYield(scf::YieldOp op) {
  auto loop = cast<scf::ForOp>(op->getParentOp());
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    View view = buffers.getView(value), carried = buffers.getView(loop.getRegionIterArg(index));
    if (view.buffer == carried.buffer && view.offsetBytes == carried.offsetBytes)
      continue; // Updated in place.
    for (BlockArgument argument : loop.getRegionIterArgs())
      if (buffers.getView(argument).buffer == view.buffer)
        return op.emitOpError() << "operand #" << index
                                << " is another carried value of the loop: values that change places are not lowered";
    SmallVector<Value> arguments = onLane(op);
    arguments.append({pointer(loop.getRegionIterArg(index)), pointer(value), i64(getTensorBytes(value.getType()))});
    calls.call(loc, "plr_copy", arguments);
  }
  return success();
}

Value FunctionLowering::getCarried(Operation *op, Value result) {
  if (!result.hasOneUse())
    return {};
  auto yield = dyn_cast<scf::YieldOp>(*result.user_begin());
  if (!yield || yield->getBlock() != op->getBlock())
    return {};
  Value carried = cast<scf::ForOp>(yield->getParentOp()).getRegionIterArg(result.use_begin()->getOperandNumber());
  bool isRead = llvm::is_contained(op->getOperands(), carried);
  return isRead && carried.getType() == result.getType() && buffers.canTake(carried, op) ? carried : Value();
}

LogicalResult FunctionLowering::lowerSlice(tensor::ExtractSliceOp op) {
  RankedTensorType source = op.getSourceType(), result = op.getType();
  auto argument = dyn_cast<BlockArgument>(op.getSource());
  if (source.getRank() != 1 || result.getRank() != 1 || !result.hasStaticShape() || op.getStaticStrides()[0] != 1 ||
      !argument || argument.getOwner() != &function.getBody().front())
    return op.emitOpError("is lowered only for ranges of a vector that is an argument of the function");
  int64_t elementBytes = source.getElementTypeBitWidth() / 8;
  Value base = pointer(op.getSource()), offset;
  if (op.getOffsets().empty()) {
    offset = i64(op.getStaticOffsets()[0]);
  } else {
    offset = indices.lookup(op.getOffsets()[0]);
    if (!offset)
      return op.emitOpError("is lowered only from a constant, or from the index of a loop");
  }
  Value bytes = LLVM::MulOp::create(builder, loc, offset, i64(elementBytes));
  Value start = LLVM::GEPOp::create(builder, loc, calls.getPointerType(), builder.getI8Type(), base,
                                    ArrayRef<LLVM::GEPArg>{bytes});
  buffers.bind(op.getResult(), {buffers.add(start, getTensorBytes(result), /*isOwned=*/false, /*isWritable=*/false)});
  return success();
}
