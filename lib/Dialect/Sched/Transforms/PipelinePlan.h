//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the overlap of a loop's iterations needs to know, and whether it keeps what the loop means.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_SCHED_TRANSFORMS_PIPELINEPLAN_H
#define PLATEAU_LIB_DIALECT_SCHED_TRANSFORMS_PIPELINEPLAN_H

#include "plateau/Dialect/Sched/IR/Place.h"
#include "plateau/Dialect/Sched/IR/Sched.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::plateau::sched {

/// Iteration i does the calls of stage s at time i + delay(s). At one time, calls stand in the order of the body.
///
/// A value is spoken of by its *lag*: lag q at time t is what the value is in iteration t - q.
class PipelinePlan {
public:
  /// Fails with a message where the loop cannot be overlapped.
  static FailureOr<PipelinePlan> get(LoopOp loop);

  LoopOp getLoop() const { return loop; }
  /// Times that an iteration takes: D, or 1 when all calls are in one stage.
  int64_t getDepth() const { return depth; }
  /// In the order of the body.
  ArrayRef<LaneOpInterface> getCalls() const { return calls; }
  int64_t getDelay(LaneOpInterface call) const { return delays.lookup(call); }
  /// Slots, constants and the like that the body defines and every iteration may share.
  ArrayRef<Operation *> getInvariants() const { return invariants; }
  /// Slots that an iteration has for itself, each with the places that overlapped iterations need.
  const llvm::MapVector<Value, int64_t> &getRings() const { return rings; }
  /// 1 for what is no such slot.
  int64_t getPlaces(Value slot) const { return rings.lookup(slot) > 1 ? rings.lookup(slot) : 1; }

  bool isOutside(Value value) const { return value.getParentRegion() != &loop->getRegion(0); }
  /// What the body yields for a value it carries.
  Value getYielded(BlockArgument carried) const { return loop.getYield().getValues()[carried.getArgNumber() - 1]; }
  Value getInit(BlockArgument carried) const { return loop.getInits()[carried.getArgNumber() - 1]; }
  /// A carried value that never changes.
  bool isUnchanged(BlockArgument carried) const { return getYielded(carried) == carried; }
  /// The smallest lag at which the carried value is there when a time begins.
  int64_t getFirstLag(BlockArgument carried) const { return lags.lookup(getYielded(carried)); }

private:
  explicit PipelinePlan(LoopOp loop) : loop(loop) {}

  LogicalResult readBody();
  LogicalResult setRings();
  LogicalResult verifyOrder();
  LogicalResult verifyLags();

  struct Access {
    mutable LaneOpInterface call;
    bool isWrite;
    Place place;
  };
  bool conflicts(const Access &early, const Access &late) const;
  void reportConflict(const Access &early, const Access &late) const;
  bool overlap(const Place &early, const Place &late, int64_t distance) const;
  FailureOr<int64_t> findLag(Value value);
  LaneOpInterface findLate(Value value, int64_t lag) const;

  mutable LoopOp loop; // Accessors of ops are not const.
  int64_t depth = 1;
  SmallVector<LaneOpInterface> calls;
  SmallVector<Operation *> invariants;
  llvm::DenseMap<Operation *, int64_t> delays;
  llvm::MapVector<Value, SmallVector<Access>> accesses; ///< By slot or other root.
  llvm::MapVector<Value, int64_t> rings;
  llvm::DenseMap<Value, int64_t> lags; ///< The smallest lag at which a value is there when a time ends.
};

} // namespace mlir::plateau::sched

#endif // PLATEAU_LIB_DIALECT_SCHED_TRANSFORMS_PIPELINEPLAN_H
