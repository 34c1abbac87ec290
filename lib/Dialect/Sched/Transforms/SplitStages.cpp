//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "plateau/Dialect/Sched/IR/Place.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDSPLITSTAGES
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace mlir::plateau::sched

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::sched;

namespace {
/// The calls of stage 1 so far: what comes from them, and the memory that they touch.
class Backward {
public:
  void add(LaneOpInterface call) {
    ops.insert(call);
    forEachPlace(call, [&](Value root, bool isWrite) { (isWrite ? written : read).insert(root); });
  }
  /// Something that names values of them is as late as they are.
  void addPart(Operation *op) {
    if (llvm::any_of(op->getOperands(), [&](Value operand) { return ops.contains(operand.getDefiningOp()); }))
      ops.insert(op);
  }
  bool empty() const { return ops.empty(); }
  /// Whether `call` may stand in front of them.
  bool isFree(LaneOpInterface call) const {
    if (llvm::any_of(call->getOperands(), [&](Value operand) { return ops.contains(operand.getDefiningOp()); }))
      return false;
    bool meets = false;
    forEachPlace(
        call, [&](Value root, bool isWrite) { meets |= written.contains(root) || (isWrite && read.contains(root)); });
    return !meets;
  }

private:
  template <typename Fn>
  static void forEachPlace(LaneOpInterface call, Fn fn) {
    auto each = [&](ValueRange values, bool isWrite) {
      for (Value value : values)
        if (FailureOr<Place> place = Place::get(value); succeeded(place)) // The verifier has refused the others.
          fn(place->root, isWrite);
    };
    each(call.getReads(), false);
    each(call.getTables(), false);
    each(call.getWrites(), true);
  }

  llvm::DenseSet<Operation *> ops;
  llvm::DenseSet<Value> read, written;
};

struct SplitStages : sched::impl::SchedSplitStagesBase<SplitStages> {
  using SchedSplitStagesBase::SchedSplitStagesBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (by != "phase") {
      program.emitError() << "sched-split-stages{by=" << by.getValue() << "}: stages can be made of phases, by=phase";
      return signalPassFailure();
    }
    if (inFlight < 0) {
      program.emitError() << "sched-split-stages{in-flight=" << inFlight.getValue() << "}: must not be negative";
      return signalPassFailure();
    }
    int64_t overlapped = 0;
    WalkResult walked = program.walk([&](LoopOp loop) {
      bool hasLoop = !loop.getBody().front().getOps<LoopOp>().empty();
      if (inFlight > 0 && !loop.getInFlight() && !hasLoop)
        loop.setInFlight(inFlight);
      if (!loop.getInFlight())
        return WalkResult::advance();
      if (hasLoop) {
        loop.emitOpError() << "is to overlap " << *loop.getInFlight() << " iterations and has a loop inside";
        return WalkResult::interrupt();
      }
      split(loop);
      ++overlapped;
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    if (inFlight > 1 && overlapped == 0)
      program.emitWarning()
          << "@" << program.getSymName() << " is to overlap " << inFlight.getValue()
          << " iterations and has no loop: there is one micro-batch, or each makes a plan of its routes, "
             "and its loop became its iterations";
  }

  static void split(LoopOp loop) {
    auto calls = llvm::to_vector(loop.getBody().front().getOps<LaneOpInterface>());
    if (llvm::any_of(calls, [](LaneOpInterface call) { return call.getStageNumber().has_value(); }))
      return;
    Backward backward;
    Operation *first = nullptr; // Of stage 1.
    int64_t kept = 0;
    LaneOpInterface firstKept;
    for (Operation &op : llvm::make_early_inc_range(loop.getBody().front())) {
      auto call = dyn_cast<LaneOpInterface>(op);
      if (!call) {
        backward.addPart(&op);
        continue;
      }
      bool isForward = call.getTag().getPhase() == Phase::Forward;
      if (isForward && first && !backward.isFree(call)) {
        firstKept = kept++ ? firstKept : call;
        isForward = false;
      }
      op.setAttr("stage", Builder(&op).getI64IntegerAttr(isForward ? 0 : 1));
      if (isForward && first)
        moveInFront(&op, first);
      if (isForward)
        continue;
      backward.add(call);
      first = first ? first : &op;
    }
    if (kept > 0)
      firstKept->emitRemark() << kept << " calls of the forward phase depend on ones of the backward phase, and are in "
                              << "stage 1 as these are; the first is this one";
  }

  /// Moves `op` and the parts of values that it names, which depend on nothing of stage 1.
  static void moveInFront(Operation *op, Operation *first) {
    SmallVector<Operation *> open = {op}, moved;
    llvm::DenseSet<Operation *> seen = {op};
    while (!open.empty()) {
      Operation *next = open.pop_back_val();
      moved.push_back(next);
      for (Value operand : next->getOperands()) {
        Operation *source = operand.getDefiningOp();
        if (source && source->getBlock() == first->getBlock() && first->isBeforeInBlock(source) &&
            seen.insert(source).second)
          open.push_back(source);
      }
    }
    llvm::sort(moved, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *next : moved)
      next->moveBefore(first);
  }
};
} // namespace
