//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/IR/Place.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDHOIST
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace mlir::plateau::sched

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
/// Where a call is issued: behind the op that had a number (-1: in front of all), the n-th of those moved there.
using Position = std::pair<int64_t, int64_t>;

struct Access {
  Place place;
  bool isWrite;
  Position position;
};

/// Ops between two that nothing moves over.
class Segment {
public:
  void add(Operation *op) { ops.push_back(op); }
  /// Returns how many calls it moves.
  int64_t run();

private:
  Position getEarliest(LaneOpInterface call);
  void record(LaneOpInterface call, Position position);
  void move(Operation *call, int64_t behind);

  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, Position> positions;
  llvm::DenseMap<Value, std::vector<Access>> accesses; ///< By slot or buffer, in the order of the program.
  std::array<Position, getMaxEnumValForLane() + 1> lastOfLane;
  Position lastCollective{-1, 0};
  llvm::SmallDenseMap<int64_t, Position> lastOfStage;
  llvm::DenseMap<int64_t, std::pair<Operation *, int64_t>>
      moved; ///< The last op moved behind an op, and how many were.
};
} // namespace

static int64_t getDepth(const Place &place) {
  auto slot = place.root.getDefiningOp<SlotOp>();
  return slot ? slot.getRing() : 1;
}

/// Whether the two places of one slot or buffer may share a byte, in the same iteration.
static bool mayOverlap(const Place &a, const Place &b) {
  if (a.ringIndex == b.ringIndex && (a.ring - b.ring) % getDepth(a) != 0)
    return false;
  auto isSame = [](const Place::Term &x, const Place::Term &y) {
    return x.index == y.index && x.strideBytes == y.strideBytes;
  };
  if (a.terms.size() != b.terms.size() || !llvm::equal(a.terms, b.terms, isSame))
    return true;
  return a.offsetBytes < b.offsetBytes + b.bytes && b.offsetBytes < a.offsetBytes + a.bytes;
}

template <typename Fn>
static void forEachPlace(LaneOpInterface call, Fn visit) {
  auto each = [&](ValueRange values, bool isWrite) {
    for (Value value : values)
      if (FailureOr<Place> place = Place::get(value); succeeded(place))
        visit(*place, isWrite);
  };
  each(call.getReads(), false);
  each(call.getTables(), false);
  each(call.getWrites(), true);
}

/// Calls whose places no slot lives longer for when they come earlier.
static bool isMovable(LaneOpInterface call) {
  if (call.getLane() == Lane::Compute || !isa<CollectiveOp, CopyOp>(call.getOperation()))
    return false;
  return llvm::all_of(call.getWrites(), [&](Value write) {
    FailureOr<Place> place = Place::get(write);
    if (failed(place))
      return false;
    if (place->root.getDefiningOp<BufferOp>())
      return true;
    return llvm::any_of(call.getReads(), [&](Value read) {
      FailureOr<Place> other = Place::get(read);
      return succeeded(other) && *other == *place;
    });
  });
}

/// What is no call, and can stand anywhere behind what it names.
static bool isPart(Operation *op) { return isa_and_present<ViewOp, JoinOp, UpdateOp, NoEventOp>(op); }

/// Behind all that it depends on.
Position Segment::getEarliest(LaneOpInterface call) {
  Position earliest{-1, 0};
  auto after = [&](Position position) { earliest = std::max(earliest, position); };
  after(lastOfLane[static_cast<unsigned>(call.getLane())]);
  if (isa<CollectiveOp>(call.getOperation()))
    after(lastCollective);
  if (std::optional<int64_t> stage = call.getStageNumber())
    for (auto [other, position] : lastOfStage)
      if (other < *stage)
        after(position);
  // Values and events, through the parts between.
  SmallVector<Value> values(call->getOperands());
  llvm::SmallDenseSet<Value> seen;
  while (!values.empty()) {
    Operation *op = values.pop_back_val().getDefiningOp();
    if (!op)
      continue;
    if (isPart(op)) {
      for (Value operand : op->getOperands())
        if (seen.insert(operand).second)
          values.push_back(operand);
    } else if (auto known = positions.find(op); known != positions.end()) {
      after(known->second);
    }
  }
  forEachPlace(call, [&](const Place &place, bool isWrite) {
    for (const Access &access : llvm::reverse(accesses[place.root]))
      if ((isWrite || access.isWrite) && access.position > earliest && mayOverlap(access.place, place))
        after(access.position);
  });
  return earliest;
}

void Segment::record(LaneOpInterface call, Position position) {
  positions[call] = position;
  Position &last = lastOfLane[static_cast<unsigned>(call.getLane())];
  last = std::max(last, position);
  if (isa<CollectiveOp>(call.getOperation()))
    lastCollective = std::max(lastCollective, position);
  if (std::optional<int64_t> stage = call.getStageNumber()) {
    Position &ofStage = lastOfStage.try_emplace(*stage, Position{-1, 0}).first->second;
    ofStage = std::max(ofStage, position);
  }
  forEachPlace(call,
               [&](const Place &place, bool isWrite) { accesses[place.root].push_back({place, isWrite, position}); });
}

/// With the parts that it names, where these stand behind the place that it goes to.
void Segment::move(Operation *call, int64_t behind) {
  SmallVector<Operation *> parts, stack = {call};
  llvm::SmallDenseSet<Operation *> seen;
  while (!stack.empty()) {
    Operation *op = stack.pop_back_val();
    for (Value operand : op->getOperands()) {
      Operation *part = operand.getDefiningOp();
      if (!part || !(isPart(part) || isa<SlotOp>(part)) || !seen.insert(part).second)
        continue;
      auto known = positions.find(part);
      if (known == positions.end() || known->second <= Position{behind, 0})
        continue;
      parts.push_back(part);
      stack.push_back(part);
    }
  }
  // In the order they stood in.
  llvm::sort(parts, [&](Operation *a, Operation *b) { return positions[a] < positions[b]; });
  auto &[last, count] = moved[behind];
  parts.push_back(call);
  for (Operation *op : parts) {
    if (last || behind >= 0)
      op->moveAfter(last ? last : ops[behind]);
    else if (op != ops.front())
      op->moveBefore(ops.front());
    last = op;
    positions[op] = {behind, ++count};
  }
}

int64_t Segment::run() {
  int64_t count = 0;
  lastOfLane.fill({-1, 0});
  for (auto [index, op] : llvm::enumerate(ops))
    positions[op] = {static_cast<int64_t>(index), 0};
  for (auto [index, op] : llvm::enumerate(ops)) {
    auto call = dyn_cast<LaneOpInterface>(op);
    if (!call)
      continue;
    int64_t now = index;
    if (isMovable(call)) {
      int64_t behind = getEarliest(call).first;
      // Only what a call is moved over counts: not parts that stand in between.
      bool passes = false;
      for (int64_t between = now - 1; between > behind && !passes; --between)
        passes = isa<LaneOpInterface>(ops[between]) && positions[ops[between]] == Position{between, 0};
      if (passes) {
        move(call, behind);
        ++count;
      }
    }
    record(call, positions[call]);
  }
  return count;
}

namespace {
struct Hoist : mlir::plateau::sched::impl::SchedHoistBase<Hoist> {
  void runOnOperation() override {
    getOperation().walk([&](Block *block) {
      Segment segment;
      for (Operation &op : llvm::make_early_inc_range(*block)) {
        bool isBarrier = isa<FenceOp, LoopOp>(op) || op.hasTrait<OpTrait::IsTerminator>();
        if (!isBarrier) {
          segment.add(&op);
          continue;
        }
        movedCount += segment.run();
        segment = Segment();
      }
    });
  }
};
} // namespace
