//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The collectives of the shard dialect: which ranks take part, and their adjoints. The objective is the sum over the
// ranks of what each returns, so a cotangent on a rank is the derivative of that sum by the rank's own value.
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include "plateau/Interfaces/ExternalModels.h"

using namespace mlir;
using namespace mlir::plateau;

static int64_t getBytes(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  return type && type.hasStaticShape() ? type.getNumElements() * type.getElementTypeBitWidth() / 8 : 0;
}

namespace {
template <typename Model, typename OpTy>
struct Collective : CollectiveOpInterface::ExternalModel<Model, OpTy> {
  FlatSymbolRefAttr getCollectiveGrid(Operation *op) const { return cast<OpTy>(op).getGridAttr(); }
  SmallVector<int64_t> getCollectiveAxes(Operation *op, int64_t) const {
    return llvm::map_to_vector(cast<OpTy>(op).getGridAxes(), [](auto axis) { return static_cast<int64_t>(axis); });
  }
};

struct AllReduceCollective : Collective<AllReduceCollective, shard::AllReduceOp> {
  // A reduce-scatter, then an all-gather.
  int64_t getSentBytes(Operation *op, int64_t ranks) const {
    return 2 * (ranks - 1) * llvm::divideCeil(getBytes(op->getResult(0)), ranks);
  }
};
struct AllGatherCollective : Collective<AllGatherCollective, shard::AllGatherOp> {
  int64_t getSentBytes(Operation *op, int64_t ranks) const { return (ranks - 1) * getBytes(op->getOperand(0)); }
};
struct ReduceScatterCollective : Collective<ReduceScatterCollective, shard::ReduceScatterOp> {
  int64_t getSentBytes(Operation *op, int64_t ranks) const { return (ranks - 1) * getBytes(op->getResult(0)); }
};

struct AllReduce : DifferentiableOpInterface::ExternalModel<AllReduce, shard::AllReduceOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *op, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    auto reduce = cast<shard::AllReduceOp>(op);
    if (reduce.getReduction() != shard::ReductionKind::Sum)
      return op->emitOpError("has no adjoint: only sums have one");
    operands[0] = shard::AllReduceOp::create(builder, loc, op->getOperand(0).getType(), reduce.getGridAttr(),
                                             reduce.getGridAxesAttr(), results[0], reduce.getReductionAttr());
    return success();
  }
};

struct AllGather : DifferentiableOpInterface::ExternalModel<AllGather, shard::AllGatherOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *op, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    auto gather = cast<shard::AllGatherOp>(op);
    auto sum = shard::ReductionKindAttr::get(op->getContext(), shard::ReductionKind::Sum);
    operands[0] = shard::ReduceScatterOp::create(builder, loc, op->getOperand(0).getType(), gather.getGridAttr(),
                                                 gather.getGridAxesAttr(), results[0], sum, gather.getGatherAxisAttr());
    return success();
  }
};

struct ReduceScatter : DifferentiableOpInterface::ExternalModel<ReduceScatter, shard::ReduceScatterOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *op, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    auto scatter = cast<shard::ReduceScatterOp>(op);
    if (scatter.getReduction() != shard::ReductionKind::Sum)
      return op->emitOpError("has no adjoint: only sums have one");
    operands[0] = shard::AllGatherOp::create(builder, loc, op->getOperand(0).getType(), scatter.getGridAttr(),
                                             scatter.getGridAxesAttr(), results[0], scatter.getScatterAxisAttr());
    return success();
  }
};
} // namespace

void mlir::plateau::registerShardModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, shard::ShardDialect *) {
    shard::AllReduceOp::attachInterface<AllReduceCollective, AllReduce>(*context);
    shard::AllGatherOp::attachInterface<AllGatherCollective, AllGather>(*context);
    shard::ReduceScatterOp::attachInterface<ReduceScatterCollective, ReduceScatter>(*context);
  });
}
