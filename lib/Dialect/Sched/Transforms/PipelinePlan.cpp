//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PipelinePlan.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::plateau::sched;

FailureOr<PipelinePlan> PipelinePlan::get(LoopOp loop) {
  PipelinePlan plan(loop);
  if (failed(plan.readBody()) || failed(plan.setRings()) || failed(plan.verifyOrder()) || failed(plan.verifyLags()))
    return failure();
  return plan;
}

static bool hasCell(LaneOpInterface call) {
  auto args = call->getAttrOfType<ArrayAttr>("args");
  return args && args.walk([](CellAttr) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Calls with their delays, and what may leave the body.
LogicalResult PipelinePlan::readBody() {
  constexpr int64_t most = 4096; // Each costs copies of the body.
  int64_t inFlight = *loop.getInFlight(), lastStage = 0;
  if (inFlight > most)
    return loop.emitOpError() << "is to overlap " << inFlight << " iterations: at most " << most << " can";
  for (Operation &op : loop.getBody().front()) {
    if (auto call = dyn_cast<LaneOpInterface>(op)) {
      std::optional<int64_t> stage = call.getStageNumber();
      if (!stage)
        return op.emitOpError() << "has no stage, and stands in a loop that overlaps " << inFlight
                                << " iterations by stages: give it one, or the whole loop by sched-split-stages";
      if (*stage > most)
        return op.emitOpError() << "is in stage " << *stage << ": stages are numbered 0 ... " << most;
      calls.push_back(call);
      lastStage = *stage;
    } else if (isa<LoopOp>(op)) {
      return op.emitOpError() << "stands in a loop that is to overlap " << inFlight
                              << " iterations: only a loop without loops inside can";
    } else if (isa<SlotOp, BufferOp, ConstantOp, TableOp, NoEventOp>(op)) {
      invariants.push_back(&op);
    } else if (!isa<ViewOp, JoinOp, UpdateOp, YieldOp>(op)) {
      return op.emitOpError() << "stands in a loop that is to overlap " << inFlight
                              << " iterations, and is no call, no place and no part of a value";
    }
  }
  bool oneStage = !calls.empty() && calls.front().getStageNumber() == calls.back().getStageNumber();
  if (inFlight > 1 && oneStage)
    loop.emitRemark() << "all calls are in one stage, so in_flight(" << inFlight << ") overlaps nothing";
  for (LaneOpInterface call : calls) {
    delays[call] = oneStage || calls.empty()
                       ? 0
                       : llvm::divideCeil(static_cast<uint64_t>(*call.getStageNumber()) * (inFlight - 1),
                                          static_cast<uint64_t>(lastStage));
    depth = std::max(depth, delays[call] + 1);
  }
  if (depth > 1 && loop->getParentOfType<LoopOp>())
    for (LaneOpInterface call : calls)
      if (hasCell(call))
        return call->emitOpError("takes a row of a table by the iteration of a loop that stands in another: what is "
                                 "overlapped before and after the inner loop would count with the outer one");
  return success();
}

/// Which slots an iteration has for itself, and how many places they need.
LogicalResult PipelinePlan::setRings() {
  for (LaneOpInterface call : calls) {
    auto add = [&](ValueRange values, bool isWrite) {
      for (Value value : values)
        if (FailureOr<Place> place = Place::get(value); succeeded(place)) // The verifier has refused the others.
          accesses[place->root].push_back({call, isWrite, *place});
    };
    add(call.getReads(), false);
    add(call.getTables(), false);
    add(call.getWrites(), true);
  }
  for (auto &[root, all] : accesses) {
    auto slot = root.getDefiningOp<SlotOp>();
    if (!slot)
      continue;
    if (depth > 1 && slot.getOffset())
      return slot.emitOpError() << "has offset " << *slot.getOffset() << ", and is used in a loop whose iterations "
                                << "are to overlap: plan arenas after sched-pipeline-loops";
    bool inBody = slot->getParentOp() == loop;
    if (inBody && slot.getRing() != 1)
      return slot.emitOpError() << "has a ring of " << slot.getRing() << " in the body of a loop with in_flight, where "
                                << "each iteration has one place and sched-pipeline-loops makes the ring";
    if (inBody && slot.getRows() && !isOutside(slot.getRows()))
      return slot.emitOpError("has the rows of a plan that the loop's body computes, so that no ring of it can be "
                              "made in front of the loop");
    if (slot.getRing() != 1 ||
        (!inBody && !llvm::all_of(slot->getUsers(), [&](Operation *user) { return user->getParentOp() == loop; })))
      continue;
    int64_t first = depth, last = 0;
    for (const Access &access : all) {
      first = std::min(first, delays[access.call]);
      last = std::max(last, delays[access.call]);
    }
    rings[root] = std::min(last - first + 1, std::max<int64_t>(loop.getTripCount(), 1));
  }
  return success();
}

/// Whether the two share a byte when `late` is `distance` iterations after `early`, in any iteration.
bool PipelinePlan::overlap(const Place &early, const Place &late, int64_t distance) const {
  Value counter = loop->getRegion(0).getArgument(0);
  auto slot = early.root.getDefiningOp<SlotOp>();
  int64_t places = slot ? slot.getRing() : 1;
  if (early.ringIndex == late.ringIndex) {
    int64_t turn = late.ring - early.ring + (late.ringIndex == counter ? distance : 0);
    if (turn % places != 0)
      return false;
  }
  // Both begin at a constant plus a stride for each iteration; anything else they grow with must be the same.
  auto split = [&](const Place &place, SmallVectorImpl<std::pair<Value, int64_t>> &others) {
    int64_t stride = 0;
    for (const Place::Term &term : place.terms)
      if (term.index == counter)
        stride += term.strideBytes;
      else
        others.push_back({term.index, term.strideBytes});
    return stride;
  };
  SmallVector<std::pair<Value, int64_t>> earlyOthers, lateOthers;
  int64_t earlyStride = split(early, earlyOthers), lateStride = split(late, lateOthers);
  if (earlyOthers != lateOthers)
    return true;
  // late - early in iteration i of `early` is base + slope · i, and bytes are shared when it is in low ... high.
  int64_t base = late.offsetBytes + lateStride * distance - early.offsetBytes, slope = lateStride - earlyStride;
  int64_t low = 1 - late.bytes, high = early.bytes - 1;
  int64_t from = loop.getFrom(), to = static_cast<int64_t>(loop.getTo()) - 1 - distance;
  if (slope < 0) {
    slope = -slope;
    base = -base;
    std::tie(low, high) = std::pair(-high, -low);
  }
  if (slope == 0)
    return low <= base && base <= high;
  return std::max(from, llvm::divideCeilSigned(low - base, slope)) <=
         std::min(to, llvm::divideFloorSigned(high - base, slope));
}

/// Whether some iteration does `early`, a later one `late`, on a common byte, and the later one comes first when they
/// overlap.
bool PipelinePlan::conflicts(const Access &early, const Access &late) const {
  // Times i + delay(early) and i + distance + delay(late); when they are equal, `late` stands in front, since its
  // stage is the lower one.
  int64_t most = std::min(delays.lookup(early.call) - delays.lookup(late.call), loop.getTripCount() - 1);
  for (int64_t distance = 1; distance <= most; ++distance)
    if (overlap(early.place, late.place, distance))
      return true;
  return false;
}

void PipelinePlan::reportConflict(const Access &early, const Access &late) const {
  InFlightDiagnostic error = late.call->emitOpError();
  error << (late.isWrite ? "writes" : "reads") << " in stage " << *late.call.getStageNumber()
        << " what a call of stage " << *early.call.getStageNumber() << (early.isWrite ? " writes" : " reads")
        << " in an earlier iteration, and would come before it when " << depth
        << " iterations overlap: put both in one stage";
  if (late.place.root.getDefiningOp<SlotOp>())
    error << ", or give iterations a slot of their own in the loop's body";
  error.attachNote(early.call->getLoc()) << "the call of stage " << *early.call.getStageNumber();
  error.attachNote(late.place.root.getLoc()) << "the memory that both use";
}

LogicalResult PipelinePlan::verifyOrder() {
  for (auto &[root, all] : accesses) {
    if (rings.contains(root))
      continue;
    for (bool isWrite : {true, false}) // Two updates of an accumulator say more than an update and a read.
      for (const Access &write : all)
        for (const Access &other : all) {
          if (!write.isWrite || other.isWrite != isWrite)
            continue;
          bool isEarly = delays.lookup(write.call) > delays.lookup(other.call);
          const Access &early = isEarly ? write : other, &late = isEarly ? other : write;
          if (!conflicts(early, late))
            continue;
          reportConflict(early, late);
          return failure();
        }
  }
  return success();
}

/// The smallest lag at which `value` is there when a time ends. Fails when it only goes round among carried values.
FailureOr<int64_t> PipelinePlan::findLag(Value value) {
  constexpr int64_t open = -1;
  if (isOutside(value))
    return 0;
  if (auto known = lags.find(value); known != lags.end())
    return known->second == open ? FailureOr<int64_t>() : FailureOr<int64_t>(known->second);
  lags[value] = open;
  int64_t lag = 0;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getArgNumber() > 0 && !isUnchanged(argument)) {
      FailureOr<int64_t> yielded = findLag(getYielded(argument));
      if (failed(yielded))
        return failure();
      lag = std::max<int64_t>(0, *yielded - 1);
    }
  } else if (auto call = value.getDefiningOp<LaneOpInterface>()) {
    lag = delays.lookup(call);
  } else if (auto update = value.getDefiningOp<UpdateOp>()) {
    // It may update what it gave one iteration before: each part must be there, then so is the rest.
    FailureOr<int64_t> next = findLag(update.getPart());
    do {
      if (failed(next))
        return failure();
      lag = *next;
      for (BlockArgument carried : loop.getCarried())
        lags.erase(carried);
      lags[value] = lag;
      next = findLag(update.getSource());
      if (succeeded(next))
        next = std::max(lag, *next);
    } while (failed(next) || *next != lag);
  } else {
    for (Value operand : value.getDefiningOp()->getOperands()) {
      FailureOr<int64_t> part = findLag(operand);
      if (failed(part))
        return failure();
      lag = std::max(lag, *part);
    }
  }
  lags[value] = lag;
  return lag;
}

/// The call that gives `value`, or a part of it, later than at `lag`.
LaneOpInterface PipelinePlan::findLate(Value value, int64_t lag) const {
  if (isOutside(value))
    return {};
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getArgNumber() == 0 || isUnchanged(argument) || getFirstLag(argument) <= lag)
      return {};
    return findLate(getYielded(argument), lag);
  }
  Operation *op = value.getDefiningOp();
  if (auto call = dyn_cast<LaneOpInterface>(op))
    return delays.lookup(call) > lag ? call : LaneOpInterface();
  // The part of an update first: its source may be what it gave one iteration before.
  for (Value operand : llvm::reverse(op->getOperands()))
    if (LaneOpInterface late = findLate(operand, lag))
      return late;
  return {};
}

/// Whether each value and event that a call names is there when the call comes.
LogicalResult PipelinePlan::verifyLags() {
  for (BlockArgument carried : loop.getCarried())
    if (!isUnchanged(carried) && failed(findLag(getYielded(carried))))
      return loop.emitOpError() << "carried value #" << carried.getArgNumber() - 1
                                << " only changes places with other carried values, so that no call gives it";
  for (LaneOpInterface call : calls)
    for (Value operand : call->getOperands())
      if (LaneOpInterface late = findLate(operand, delays.lookup(call))) {
        bool isWait = isa<EventType>(operand.getType());
        InFlightDiagnostic error = call->emitOpError();
        error << (isWait ? "waits" : "needs what is given") << " in stage " << *call.getStageNumber()
              << (isWait ? " for stage " : " by stage ") << *late.getStageNumber()
              << " of an earlier iteration, and would come before it when " << depth << " iterations overlap: "
              << (isWait ? "place waits after sched-pipeline-loops" : "put both in one stage");
        error.attachNote(late->getLoc()) << "the call of stage " << *late.getStageNumber();
        return failure();
      }
  return success();
}
