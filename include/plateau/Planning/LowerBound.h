//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What an arena cannot be smaller than.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_PLANNING_LOWERBOUND_H
#define PLATEAU_PLANNING_LOWERBOUND_H

#include "plateau/Planning/ArenaProblem.h"

namespace mlir::plateau::planning {

/// Buffers no two of which may share bytes need the sum of their sizes.
struct LowerBound {
  /// The most bytes live at one call, in issue order.
  int64_t liveBytes = 0;
  /// The most bytes live in a state that the lanes may be in: those in `buffers`, sizes rounded up, but for what the
  /// one that lies highest may be rounded by.
  int64_t bytes = 0;
  std::vector<int32_t> buffers;
  /// A call, in issue order, about which they are live.
  int32_t peak = 0;
  /// All states were looked at or ruled out, so that no pairwise unordered lives are larger.
  bool isExact = false;
  /// Boxes looked at.
  int64_t work = 0;
};

/// A state of the lanes is how many calls each has begun. A life is live in a state when its first access has begun and
/// no call has that comes after all its accesses. Lives that are live in one state have no order. Conversely, take
/// lives without an order and begin what their first accesses come after, and these: none of what has begun comes after
/// all accesses of one of them, so all are live. The largest set without an order (the maximum-weight antichain) is
/// hence the most that is live in a state.
///
/// A life is a box in the space of states. The deepest point is searched by branch and bound: a cell is split until
/// what is live in it at most is no more than what was found. Its estimate takes each box as a condition on one lane
/// alone, so that the lanes have their maxima apart; where all boxes are such, it is exact. Cells shrink to the states
/// that waits allow.
///
/// A life with several first accesses (its parts are written on different lanes) is several boxes; then `bytes`
/// still bounds the arena, but is not known to be the largest. The same holds when `workLimit` ends the search.
LowerBound computeLowerBound(const ArenaProblem &problem, int64_t workLimit);

} // namespace mlir::plateau::planning

#endif // PLATEAU_PLANNING_LOWERBOUND_H
