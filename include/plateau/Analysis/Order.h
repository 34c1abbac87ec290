//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What happens before what, whatever the speed of the lanes.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_ANALYSIS_ORDER_H
#define PLATEAU_ANALYSIS_ORDER_H

#include "plateau/Analysis/Timeline.h"

namespace mlir::plateau::sched {

/// Happens-before over a timeline, as one vector clock for each node: O(nodes · lanes) to build and to keep.
///
/// A call starts after the host issues it, after the call before it on its lane is done, and after the events that it
/// waits for. The host issues what comes behind a fence after the events of the fence. When sched.return reads, all
/// lanes are idle.
class Order {
public:
  static constexpr int64_t numLanes = getMaxEnumValForLane() + 1;
  static constexpr int64_t none = -1;

  explicit Order(const Timeline &timeline);

  /// Whether node a is done before node b starts, in every run.
  bool isBefore(int64_t a, int64_t b) const {
    if (a >= b)
      return false;
    return lanes[a] == host || getClock(b)[lanes[a]] >= a;
  }
  bool isOrdered(int64_t a, int64_t b) const { return isBefore(a, b) || isBefore(b, a); }

  /// Whether node a is done before the host issues node b, in every run.
  bool isBeforeIssue(int64_t a, int64_t b) const {
    if (a >= b)
      return false;
    return lanes[a] == host || getIssueClock(b)[lanes[a]] >= a;
  }

  /// For each lane the last node of it that is known to be done when the node starts (`none` without one); with it all
  /// earlier nodes of that lane are done.
  ArrayRef<int64_t> getClock(int64_t node) const { return ArrayRef(clocks).slice(node * numLanes, numLanes); }
  /// The same, when the host issues the node.
  ArrayRef<int64_t> getIssueClock(int64_t node) const {
    return ArrayRef(hostClocks).slice(epochs[node] * numLanes, numLanes);
  }

private:
  static constexpr int8_t host = -1;
  std::vector<int8_t> lanes;       ///< Of each node.
  std::vector<int64_t> clocks;     ///< Of each node.
  std::vector<int64_t> hostClocks; ///< Of the start, then behind each fence.
  std::vector<int32_t> epochs;     ///< Fences before each node.
};

} // namespace mlir::plateau::sched

#endif // PLATEAU_ANALYSIS_ORDER_H
