//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "llvm/ADT/Sequence.h"
#include <map>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

/// The grid of that symbol, when it is one of all ranks.
static FailureOr<Grid> lookupGrid(Operation *op, FlatSymbolRefAttr symbol, ArrayRef<RankCall> calls) {
  FailureOr<Grid> grid = Grid::lookup(op, symbol);
  if (failed(grid))
    return calls.front().fail("there is no grid @" + symbol.getValue() + " with static sizes");
  if (grid->getRanks() != static_cast<int64_t>(calls.size()))
    return calls.front().fail("grid @" + symbol.getValue() + " has " + Twine(grid->getRanks()) +
                              " ranks, and the program runs on " + Twine(calls.size()));
  return grid;
}

/// Ranks are in one group when their coordinates along all axes but `axes` are equal.
static SmallVector<Group> groupRanks(const Grid &grid, ArrayRef<int64_t> axes) {
  std::map<std::vector<int64_t>, Group> byOtherCoordinates;
  for (int64_t rank = 0; rank < grid.getRanks(); ++rank) {
    std::vector<int64_t> others;
    int64_t rest = rank;
    for (auto axis = static_cast<int64_t>(grid.shape.size()); axis-- > 0; rest /= grid.shape[axis])
      if (!llvm::is_contained(axes, axis))
        others.push_back(rest % grid.shape[axis]);
    byOtherCoordinates[others].push_back(static_cast<int>(rank));
  }
  return llvm::map_to_vector(byOtherCoordinates, [](auto &entry) { return entry.second; });
}

FailureOr<SmallVector<Group>> interpreter::getGroups(Operation *op, ArrayRef<RankCall> calls) {
  auto collective = cast<CollectiveOpInterface>(op);
  FlatSymbolRefAttr symbol = collective.getCollectiveGrid();
  FailureOr<Grid> grid = lookupGrid(op, symbol, calls);
  if (failed(grid))
    return failure();
  SmallVector<int64_t> axes = collective.getCollectiveAxes(grid->shape.size());
  for (int64_t axis : axes)
    if (axis < 0 || axis >= static_cast<int64_t>(grid->shape.size()))
      return calls.front().fail("grid @" + symbol.getValue() + " has no axis " + Twine(axis));
  return groupRanks(*grid, axes);
}

FailureOr<SmallVector<Group>> interpreter::getShardGroups(Operation *op, FlatSymbolRefAttr symbol,
                                                          ArrayRef<RankCall> calls) {
  if (!symbol)
    return llvm::map_to_vector(llvm::seq<int>(0, calls.size()), [](int rank) { return Group{rank}; });
  FailureOr<Grid> grid = lookupGrid(op, symbol, calls);
  if (failed(grid))
    return failure();
  return groupRanks(*grid, {static_cast<int64_t>(grid->shape.size()) - 1});
}
