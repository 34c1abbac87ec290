//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include <map>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

FailureOr<SmallVector<Group>> interpreter::getGroups(Operation *op, ArrayRef<RankCall> calls) {
  auto collective = cast<CollectiveOpInterface>(op);
  FlatSymbolRefAttr symbol = collective.getCollectiveGrid();
  FailureOr<Grid> grid = Grid::lookup(op, symbol);
  if (failed(grid))
    return calls.front().fail("there is no grid @" + symbol.getValue() + " with static sizes");
  if (grid->getRanks() != static_cast<int64_t>(calls.size()))
    return calls.front().fail("grid @" + symbol.getValue() + " has " + Twine(grid->getRanks()) +
                              " ranks, and the program runs on " + Twine(calls.size()));
  SmallVector<int64_t> axes = collective.getCollectiveAxes(grid->shape.size());
  for (int64_t axis : axes)
    if (axis < 0 || axis >= static_cast<int64_t>(grid->shape.size()))
      return calls.front().fail("grid @" + symbol.getValue() + " has no axis " + Twine(axis));

  // Ranks are in one group when their coordinates along all other axes are equal.
  std::map<std::vector<int64_t>, Group> byOtherCoordinates;
  for (int rank = 0; rank < static_cast<int>(calls.size()); ++rank) {
    std::vector<int64_t> others;
    int64_t rest = rank;
    for (auto axis = static_cast<int64_t>(grid->shape.size()); axis-- > 0; rest /= grid->shape[axis])
      if (!llvm::is_contained(axes, axis))
        others.push_back(rest % grid->shape[axis]);
    byOtherCoordinates[others].push_back(rank);
  }
  return llvm::map_to_vector(byOtherCoordinates, [](auto &entry) { return entry.second; });
}
