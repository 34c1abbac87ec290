//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "GroupBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

GroupBuilder::GroupBuilder(Operation *op, FlatSymbolRefAttr grid, int64_t ranks, Phase phase, Component component)
    : builder(op), grid(grid), ranks(ranks) {
  std::optional<int64_t> layer;
  if (ScopeAttr own = getScope(op->getLoc())) {
    phase = own.getPhase();
    layer = own.getLayer();
  }
  scope = ScopeAttr::get(op->getContext(), phase, component, layer);
}

FailureOr<GroupBuilder> GroupBuilder::get(Operation *op, FlatSymbolRefAttr grid, Phase phase, Component component) {
  if (!grid)
    return GroupBuilder(op, grid, /*ranks=*/1, phase, component);
  FailureOr<Grid> found = Grid::lookup(op, grid);
  if (failed(found))
    return op->emitOpError() << "is on grid " << grid << ", and there is none with static sizes";
  GroupBuilder group(op, grid, found->getShards(), phase, component);
  group.axis = static_cast<int64_t>(found->shape.size()) - 1;
  return group;
}

Location GroupBuilder::locate(StringRef name) const {
  return withScope(NameLoc::get(StringAttr::get(scope.getContext(), name)), scope);
}

shard::GridAxesAttr GroupBuilder::getAxes() {
  return shard::GridAxesAttr::get(builder.getContext(), ArrayRef<shard::GridAxis>{static_cast<shard::GridAxis>(axis)});
}

/// `type` with its first dimension times `factor` / `divisor`.
static RankedTensorType scaleRows(Value value, int64_t factor, int64_t divisor) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = shape[0] * factor / divisor;
  return type.clone(shape);
}

Value GroupBuilder::gather(StringRef name, Value part) {
  if (!part || ranks == 1)
    return part;
  return shard::AllGatherOp::create(builder, locate(name), scaleRows(part, ranks, 1), grid, getAxes(), part,
                                    builder.getIndexAttr(0));
}

Value GroupBuilder::scatterSum(StringRef name, Value whole) {
  if (!whole || ranks == 1)
    return whole;
  auto sum = shard::ReductionKindAttr::get(builder.getContext(), shard::ReductionKind::Sum);
  return shard::ReduceScatterOp::create(builder, locate(name), scaleRows(whole, 1, ranks), grid, getAxes(), whole, sum,
                                        builder.getIndexAttr(0));
}

Value GroupBuilder::getShardStart(StringRef name, int64_t rows) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  if (ranks > 1)
    return ShardStartOp::create(builder, locate(name), type, grid, builder.getI64IntegerAttr(0),
                                builder.getI64IntegerAttr(rows));
  return arith::ConstantOp::create(builder, locate(name), DenseElementsAttr::get(type, int32_t(0)));
}

Value GroupBuilder::createZeros(StringRef name, RankedTensorType type) {
  Location loc = locate(name);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

Value GroupBuilder::round(StringRef name, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return arith::TruncFOp::create(builder, locate(name), type.clone(element), value);
}
