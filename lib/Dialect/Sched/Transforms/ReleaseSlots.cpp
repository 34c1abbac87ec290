//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Analysis/Order.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDRELEASESLOTS
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace mlir::plateau::sched

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
/// The calls that access a slot first and last.
struct Extent {
  int64_t first, last;
};

struct ReleaseSlots : mlir::plateau::sched::impl::SchedReleaseSlotsBase<ReleaseSlots> {
  using Base::Base;

  void runOnOperation() override {
    if (inFlight < 1) {
      getOperation().emitError() << "in-flight is " << inFlight.getValue() << ", and must be at least 1";
      return signalPassFailure();
    }
    Timeline::Options options;
    options.prefix = true;
    FailureOr<Timeline> timeline = Timeline::get(getOperation(), options);
    if (failed(timeline))
      return signalPassFailure();
    Order order(*timeline);
    llvm::MapVector<Value, Extent> extents;
    auto access = [&](Value root, int64_t node) {
      if (root.getDefiningOp<SlotOp>())
        extents.insert({root, {node, node}}).first->second.last = node;
    };
    for (auto [index, node] : llvm::enumerate(timeline->nodes)) {
      for (const ReadRange &read : node.reads)
        access(read.root, index);
      for (const ByteRange &write : node.writes)
        access(write.root, index);
    }
    // By the lane that is done with them, and the one that wrote them.
    std::map<std::pair<Lane, Lane>, std::vector<Extent>> queues;
    for (auto &[root, extent] : extents) {
      const Node &first = timeline->nodes[extent.first], &last = timeline->nodes[extent.last];
      // In loops rings have their waits.
      if (first.lane && last.lane && *first.lane != *last.lane && first.iteration.empty() && last.iteration.empty())
        queues[{*last.lane, *first.lane}].push_back(extent);
    }
    for (auto &[lanes, queue] : queues) {
      llvm::sort(queue, [](const Extent &a, const Extent &b) {
        return std::pair(a.last, a.first) < std::pair(b.last, b.first);
      });
      // One call may be done with several.
      std::vector<int64_t> dones;
      for (const Extent &extent : queue) {
        if (dones.empty() || dones.back() != extent.last)
          dones.push_back(extent.last);
        int64_t back = static_cast<int64_t>(dones.size()) - 2 - inFlight;
        while (back >= 0 && dones[back] >= extent.first)
          --back;
        if (back < 0 || order.isBefore(dones[back], extent.first))
          continue;
        auto call = cast<LaneOpInterface>(timeline->nodes[extent.first].op);
        Value event = cast<LaneOpInterface>(timeline->nodes[dones[back]].op).getEvent();
        if (llvm::is_contained(call.getWaits(), event))
          continue;
        call.getWaitsMutable().append(event);
        ++waitCount;
      }
    }
  }
};
} // namespace
