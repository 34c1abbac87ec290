//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "CarryEvents.h"
#include "Dependences.h"
#include "plateau/Analysis/Order.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDPLACEWAITS
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace mlir::plateau::sched

using namespace mlir;
using namespace mlir::plateau::sched;

/// The loops around an op, outermost first.
static SmallVector<LoopOp, 2> getLoops(Operation *op) {
  SmallVector<LoopOp, 2> loops;
  for (auto loop = op->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
    loops.push_back(loop);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

/// How the later node's op names the event of the earlier node.
static EventCarrier::Event getEvent(const Node &before, const Node &after) {
  SmallVector<LoopOp, 2> a = getLoops(before.op), b = getLoops(after.op);
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    if (int64_t distance = after.iteration[i] - before.iteration[i])
      return {before.op, &a[i].getBody().front(), distance};
  return {before.op};
}

namespace {
struct PlaceWaits : mlir::plateau::sched::impl::SchedPlaceWaitsBase<PlaceWaits> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    Timeline::Options options;
    options.prefix = true;
    FailureOr<Timeline> timeline = Timeline::get(program, options);
    if (failed(timeline) || failed(addFenceEvents(*timeline)))
      return signalPassFailure();

    std::vector<SmallVector<int64_t, 2>> dependences = getDependences(*timeline);
    llvm::MapVector<Operation *, SmallVector<EventCarrier::Event, 2>> events;
    EventCarrier carrier(program);
    for (auto [index, node] : llvm::enumerate(timeline->nodes))
      for (int64_t before : dependences[index]) {
        SmallVector<EventCarrier::Event, 2> &known = events[node.op];
        EventCarrier::Event event = getEvent(timeline->nodes[before], node);
        auto *same = llvm::find_if(known, [&](const EventCarrier::Event &other) {
          return other.call == event.call && other.body == event.body;
        });
        if (same == known.end())
          known.push_back(event);
        else // The later iteration of the call, whose lane has done the earlier ones by then.
          same->distance = std::min(same->distance, event.distance);
      }
    for (auto &[op, needed] : events)
      for (const EventCarrier::Event &event : needed)
        carrier.require(event, op);
    carrier.carry();
    for (auto &[op, needed] : events) {
      auto call = cast<LaneOpInterface>(op);
      SmallVector<Value> waits(call.getWaits());
      for (const EventCarrier::Event &event : needed)
        if (Value value = carrier.get(event, op); !llvm::is_contained(waits, value)) {
          waits.push_back(value);
          ++waitCount;
        }
      call.getWaitsMutable().assign(waits);
    }
  }

  LogicalResult addFenceEvents(const Timeline &timeline);
};
} // namespace

/// What wrote a table that the host reads is done at a fence in between: the last one waits for it when none does.
LogicalResult PlaceWaits::addFenceEvents(const Timeline &timeline) {
  std::optional<Order> order;
  SmallVector<int64_t> fences;
  llvm::SmallDenseSet<std::pair<Operation *, int64_t>> known;
  for (auto [index, node] : llvm::enumerate(timeline.nodes)) {
    if (isa<FenceOp>(node.op))
      fences.push_back(index);
    for (const ReadRange &read : node.reads)
      for (const Piece &piece : read.pieces) {
        if (!read.isTable || piece.writer == Piece::initial || !known.insert({node.op, piece.writer}).second)
          continue;
        if (!order)
          order.emplace(timeline);
        Operation *writer = timeline.nodes[piece.writer].op;
        if (order->isBeforeIssue(piece.writer, index))
          continue;
        auto fail = [&, &node = node](const char *why) {
          InFlightDiagnostic diag = node.op->emitOpError() << "reads a table when the host issues it, " << why;
          diag.attachNote(writer->getLoc()) << "the table is written here";
          return diag;
        };
        if (fences.empty() || fences.back() < piece.writer)
          return fail("and no fence stands between it and the call that writes the table");
        auto fence = cast<FenceOp>(timeline.nodes[fences.back()].op);
        Block *block = writer->getBlock();
        if (block != fence->getBlock())
          return fail("and the call that writes the table stands in a loop, whose fence cannot name it");
        fence.getEventsMutable().append(cast<LaneOpInterface>(writer).getEvent());
        ++waitCount;
      }
  }
  return success();
}
