//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// How many iterations of a loop stand for all of them: docs/proof.md, Loops.
//===----------------------------------------------------------------------===//

#include "plateau/Analysis/Timeline.h"
#include <numeric>

using namespace mlir;
using namespace mlir::plateau::sched;

/// The carried arguments that a yielded value hands on: without a call in between, through views, joins and loops
/// inside.
static llvm::SmallDenseSet<int64_t> getHandedOn(LoopOp loop, Value yielded) {
  llvm::SmallDenseSet<int64_t> arguments;
  llvm::SmallDenseSet<Value> seen;
  SmallVector<Value> work = {yielded};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto owner = dyn_cast<LoopOp>(argument.getOwner()->getParentOp());
      int64_t index = int64_t(argument.getArgNumber()) - 1;
      if (owner == loop)
        arguments.insert(index);
      else if (owner && loop->isProperAncestor(owner))
        work.append({owner.getInits()[index], owner.getYield().getValues()[index]});
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (auto view = dyn_cast<ViewOp>(op)) {
      work.push_back(view.getSource());
    } else if (auto join = dyn_cast<JoinOp>(op)) {
      llvm::append_range(work, join.getParts());
    } else if (auto update = dyn_cast<UpdateOp>(op)) {
      work.append({update.getSource(), update.getPart()});
    } else if (auto inner = dyn_cast<LoopOp>(op); inner && loop->isProperAncestor(inner)) {
      int64_t index = cast<OpResult>(value).getResultNumber();
      work.append({inner.getInits()[index], inner.getYield().getValues()[index]});
    }
  }
  return arguments;
}

/// The iterations that a value or an event can be carried before it is used; none when arguments pass one another
/// round in a cycle, since what they stand for then has no constant distance. What an argument hands to itself stays.
static std::optional<int64_t> getDistance(LoopOp loop) {
  int64_t count = loop.getInits().size();
  SmallVector<SmallVector<int64_t, 1>> next(count); // Whom each argument hands its value to.
  SmallVector<int64_t> numOpen(count), distances(count, 1), work;
  for (auto [index, value] : llvm::enumerate(loop.getYield().getValues()))
    for (int64_t argument : getHandedOn(loop, value))
      if (argument != static_cast<int64_t>(index)) {
        next[argument].push_back(index);
        ++numOpen[index];
      }
  for (int64_t index = 0; index < count; ++index)
    if (numOpen[index] == 0)
      work.push_back(index);
  int64_t numDone = 0, distance = 1;
  while (!work.empty()) {
    int64_t index = work.pop_back_val();
    ++numDone;
    distance = std::max(distance, distances[index]);
    for (int64_t other : next[index]) {
      distances[other] = std::max(distances[other], distances[index] + 1);
      if (--numOpen[other] == 0)
        work.push_back(other);
    }
  }
  return numDone == count ? std::optional(distance) : std::nullopt;
}

/// What a value is a part of, or the value itself.
static Value getSource(Value value) {
  while (auto view = value.getDefiningOp<ViewOp>())
    value = view.getSource();
  return value;
}

static bool isNeverWritten(Value root) {
  auto buffer = root.getDefiningOp<BufferOp>();
  return (buffer && !buffer.getWritable()) || root.getDefiningOp<ConstantOp>() || root.getDefiningOp<TableOp>();
}

/// Whether two of the rings share bytes, as far as their offsets are known.
static bool doShareBytes(ArrayRef<SlotOp> rings) {
  struct Extent {
    Space space;
    int64_t begin, end;
  };
  SmallVector<Extent> extents;
  for (SlotOp slot : rings)
    if (std::optional<int64_t> offset = slot.getOffset())
      extents.push_back({slot.getSpace(), *offset, *offset + slot.getBytes()});
  llvm::sort(extents, [](const Extent &a, const Extent &b) {
    return std::tie(a.space, a.begin, a.end) < std::tie(b.space, b.begin, b.end);
  });
  int64_t end = 0;
  for (size_t i = 1; i < extents.size(); ++i) {
    end = extents[i].space == extents[i - 1].space ? std::max(end, extents[i - 1].end) : 0;
    if (extents[i].begin < end)
      return true;
  }
  return false;
}

int64_t mlir::plateau::sched::getPrefixTripCount(LoopOp loop) {
  int64_t trips = loop.getTripCount();
  std::optional<int64_t> distance = getDistance(loop);
  if (!distance)
    return trips;

  llvm::SmallSetVector<SlotOp, 8> rings;
  llvm::SmallDenseSet<int64_t> lanes;
  bool isPeriodic = true;
  loop->walk([&](Operation *op) {
    if (auto lane = dyn_cast<LaneOpInterface>(op))
      lanes.insert(static_cast<int64_t>(lane.getLane()));
    // A value that is written part by part has a writer of any distance.
    if (isa<UpdateOp>(op))
      isPeriodic = false;
    auto view = dyn_cast<ViewOp>(op);
    if (!view)
      return;
    // What is never written meets no write, wherever the calls of the body read it.
    if (view.getStride() != 0 && view.getIndex() == loop.getCounter() &&
        !(isNeverWritten(getSource(view)) &&
          llvm::all_of(view->getUsers(), [](Operation *user) { return isa<LaneOpInterface>(user); })))
      isPeriodic = false;
    if (auto slot = view.getSource().getDefiningOp<SlotOp>(); slot && slot.getRing() > 1)
      rings.insert(slot);
  });
  if (!isPeriodic)
    return trips;

  int64_t deepest = 1, period = 1;
  for (SlotOp slot : rings) {
    int64_t depth = slot.getRing();
    deepest = std::max(deepest, depth);
    period = depth > trips ? depth : std::lcm(period, depth);
    if (period > trips)
      return trips;
  }
  // Two rings that share bytes meet at pairs of places, not at distances: a pair of iterations, each of any residue.
  int64_t reach = doShareBytes(rings.getArrayRef()) ? 2 * period : deepest;
  int64_t numLanes = std::max<int64_t>(lanes.size(), 1);
  // A path through the loop comes in by an event that was carried in, changes lanes, and goes out by one carried out.
  int64_t prefix = reach + (numLanes + 1) * *distance + numLanes;
  if (prefix >= trips)
    return trips;
  // With as many iterations modulo the rings, what stands behind the loop finds their places where it looks for them.
  prefix += (trips - prefix) % period;
  return std::min(prefix, trips);
}
