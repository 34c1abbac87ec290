//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Analysis/Order.h"

using namespace mlir;
using namespace mlir::plateau::sched;

Order::Order(const Timeline &timeline) {
  int64_t count = timeline.nodes.size();
  lanes.reserve(count);
  epochs.reserve(count);
  clocks.assign(count * numLanes, none);
  hostClocks.assign(numLanes, none);
  std::array<int64_t, numLanes> last; // On each lane.
  last.fill(none);

  for (int64_t index = 0; index < count; ++index) {
    const Node &node = timeline.nodes[index];
    int64_t *clock = &clocks[index * numLanes];
    auto join = [&](const int64_t *other) {
      for (int64_t lane = 0; lane < numLanes; ++lane)
        clock[lane] = std::max(clock[lane], other[lane]);
    };
    // What is done when `other` is done.
    auto follow = [&](int64_t other) {
      join(&clocks[other * numLanes]);
      if (lanes[other] != host)
        clock[lanes[other]] = std::max(clock[lanes[other]], other);
    };

    lanes.push_back(node.lane ? static_cast<int8_t>(*node.lane) : host);
    epochs.push_back(hostClocks.size() / numLanes - 1);
    join(&hostClocks[hostClocks.size() - numLanes]);
    for (int64_t wait : node.waits)
      follow(wait);
    if (node.lane) {
      int64_t &before = last[lanes.back()];
      if (before != none)
        follow(before);
      before = index;
    } else if (isa<ReturnOp>(node.op)) {
      for (int64_t before : last)
        if (before != none)
          follow(before);
    } else {
      hostClocks.insert(hostClocks.end(), clock, clock + numLanes);
    }
  }
}
