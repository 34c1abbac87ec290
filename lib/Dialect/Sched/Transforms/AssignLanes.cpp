//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/IR/Place.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDASSIGNLANES
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace mlir::plateau::sched

using namespace mlir;
using namespace mlir::plateau::sched;

/// Of what lies in no arena and is no buffer the device has its copy.
static Space getSpace(Value memory) {
  FailureOr<Place> place = Place::get(memory);
  if (failed(place))
    return Space::Device;
  if (auto slot = place->root.getDefiningOp<SlotOp>())
    return slot.getSpace();
  if (auto buffer = place->root.getDefiningOp<BufferOp>())
    return buffer.getSpace();
  return Space::Device;
}

static Lane getLane(LaneOpInterface op) {
  if (isa<CollectiveOp>(op))
    return Lane::Comm;
  if (auto copy = dyn_cast<CopyOp>(op.getOperation())) {
    Space from = getSpace(copy.getReads()[0]), to = getSpace(copy.getWrites()[0]);
    if (from != to)
      return to == Space::Host ? Lane::D2H : Lane::H2D;
  }
  return Lane::Compute;
}

namespace {
struct AssignLanes : mlir::plateau::sched::impl::SchedAssignLanesBase<AssignLanes> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    std::array<bool, getMaxEnumValForLane() + 1> used = {};
    program.walk([&](LaneOpInterface op) {
      if (op.getLane() == Lane::Compute)
        op.setLane(getLane(op));
      used[static_cast<unsigned>(op.getLane())] = true;
    });
    Block &body = program.getBody().front();
    for (LaneOp lane : llvm::make_early_inc_range(body.getOps<LaneOp>()))
      lane.erase();
    OpBuilder builder(&body, body.begin());
    for (auto [lane, isUsed] : llvm::enumerate(used))
      if (isUsed)
        LaneOp::create(builder, program.getLoc(), static_cast<Lane>(lane));
  }
};
} // namespace
