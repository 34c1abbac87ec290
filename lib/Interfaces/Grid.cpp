//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace mlir::plateau;

FailureOr<Grid> Grid::lookup(Operation *op, FlatSymbolRefAttr symbol) {
  auto grid = SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, symbol);
  if (!grid || grid.getShape().empty() || llvm::any_of(grid.getShape(), [](int64_t size) { return size < 1; }))
    return failure();
  std::optional<int64_t> ranks = 1;
  for (int64_t size : grid.getShape())
    ranks = ranks ? llvm::checkedMul(*ranks, size) : std::nullopt;
  if (!ranks || *ranks > std::numeric_limits<int32_t>::max())
    return failure();
  return Grid{llvm::to_vector(grid.getShape())};
}

int64_t Grid::getSize(ArrayRef<int64_t> axes) const {
  int64_t size = 1;
  for (int64_t axis : axes)
    size *= shape[axis];
  return size;
}

int64_t Grid::getRanks() const {
  int64_t ranks = 1;
  for (int64_t size : shape)
    ranks *= size;
  return ranks;
}

SmallVector<int64_t> Grid::getReplicaAxes() const {
  return llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(shape.size()) - 1));
}

LogicalResult mlir::plateau::verifyShards(Operation *op, FlatSymbolRefAttr symbol, int64_t parts, StringRef code) {
  FailureOr<Grid> grid = Grid::lookup(op, symbol);
  if (failed(grid))
    return op->emitOpError() << code << ": there is no grid " << symbol << " with static sizes: add shard.grid "
                             << symbol << "(shape = ...)";
  if (grid->getShards() != parts)
    return op->emitOpError() << code << ": the last axis of grid " << symbol << " has " << grid->getShards()
                             << " ranks, and the plan is for " << parts;
  return success();
}
