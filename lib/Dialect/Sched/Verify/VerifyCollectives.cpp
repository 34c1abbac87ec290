//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// CO: ranks meet in their collectives in one order.
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/Verify/Checkers.h"
#include "plateau/Dialect/Sched/Verify/Passes.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::sched;

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDVERIFYCOLLECTIVES
#include "plateau/Dialect/Sched/Verify/Passes.h.inc"
} // namespace mlir::plateau::sched

static bool hasPeers(CollectiveOp op) {
  FailureOr<Grid> grid = Grid::lookup(op, op.getGridAttr());
  return failed(grid) || grid->getSize(op.getAxes()) > 1;
}

FaultList mlir::plateau::sched::findUnorderedCollectives(const Timeline &timeline, const Order &order) {
  FaultList faults;
  llvm::DenseMap<Operation *, bool> peers;
  std::array<int64_t, Order::numLanes> last; // Collective on each lane.
  last.fill(-1);
  for (int64_t index = 0; index < static_cast<int64_t>(timeline.nodes.size()); ++index) {
    const Node &node = timeline.nodes[index];
    auto op = dyn_cast<CollectiveOp>(node.op);
    if (!op)
      continue;
    auto [known, isNew] = peers.try_emplace(node.op);
    if (isNew)
      known->second = hasPeers(op);
    if (!known->second)
      continue;
    for (int64_t other : last)
      if (other >= 0 && !order.isBefore(other, index))
        faults.add({"CO2", {index, Access::Write, 0, {}}, {{other, Access::Write, 0, {}}}}, timeline);
    last[static_cast<int64_t>(*node.lane)] = index;
  }
  return faults;
}

/// CO1.
static LogicalResult verifyNumbers(ProgramOp program) {
  CollectiveOp last;
  int64_t count = 0;
  program.walk([&](CollectiveOp op) {
    if (last && op.getOrdinal() <= last.getOrdinal() && ++count <= maxToldFaults) {
      InFlightDiagnostic diag = op.emitError()
                                << "CO1: collective \"" << op.getCallee() << "\" on " << stringifyLane(op.getLane())
                                << ", number " << op.getOrdinal() << ", is issued behind number " << last.getOrdinal()
                                << ": the ranks agreed on the order of their numbers";
      diag.attachNote(last.getLoc()) << "collective \"" << last.getCallee() << "\" on " << stringifyLane(last.getLane())
                                     << ", number " << last.getOrdinal();
    }
    last = op;
  });
  return emitCount(program, "sched-verify-collectives", count, std::min(count, maxToldFaults));
}

LogicalResult mlir::plateau::sched::verifyCollectives(ProgramOp program, const Timeline &timeline, const Order &order) {
  LogicalResult numbers = verifyNumbers(program);
  FaultList faults = findUnorderedCollectives(timeline, order);
  ArrayRef<Fault> told = faults.get().take_front(maxToldFaults);
  for (const Fault &fault : told) {
    const Node &node = timeline.nodes[fault.access.node], &other = timeline.nodes[fault.others.front().node];
    InFlightDiagnostic diag = node.op->emitError()
                              << "CO2: " << describe(node) << " is not ordered with " << describe(other)
                              << ": two ranks could enter them in different orders and wait for each other";
    diag.attachNote(other.op->getLoc()) << describe(other);
  }
  LogicalResult count = emitCount(program, "sched-verify-collectives", faults.size(), told.size());
  return success(succeeded(numbers) && succeeded(count));
}

namespace {
struct VerifyCollectives : plateau::sched::impl::SchedVerifyCollectivesBase<VerifyCollectives> {
  using Base::Base;

  void runOnOperation() override {
    Timeline::Options options;
    options.prefix = !unrollLoops;
    FailureOr<Timeline> timeline = Timeline::get(getOperation(), options);
    if (failed(timeline) || failed(verifyCollectives(getOperation(), *timeline, Order(*timeline))))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
