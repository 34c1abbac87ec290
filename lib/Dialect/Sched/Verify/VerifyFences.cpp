//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// FE: the host reads tables only behind fences, and fences stand outside loops.
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/Verify/Checkers.h"
#include "plateau/Dialect/Sched/Verify/Passes.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDVERIFYFENCES
#include "plateau/Dialect/Sched/Verify/Passes.h.inc"
} // namespace mlir::plateau::sched

void mlir::plateau::sched::reportFences(ProgramOp program, const Timeline &timeline) {
  program.emitRemark() << "host_fences: "
                       << llvm::count_if(timeline.nodes, [](const Node &node) { return isa<FenceOp>(node.op); });
}

FaultList mlir::plateau::sched::findUnfencedTables(const Timeline &timeline, const Order &order) {
  FaultList faults;
  for (int64_t index = 0; index < static_cast<int64_t>(timeline.nodes.size()); ++index) {
    int64_t operand = 0;
    for (const ReadRange &read : timeline.nodes[index].reads) {
      if (!read.isTable)
        continue;
      for (const Piece &piece : read.pieces)
        if (piece.writer >= 0 && !order.isBeforeIssue(piece.writer, index)) {
          ByteRange bytes = {read.root, piece.begin, piece.end};
          faults.add({"FE1", {index, Access::HostTable, operand, bytes}, {{piece.writer, Access::Write, 0, bytes}}},
                     timeline);
        }
      ++operand;
    }
  }
  return faults;
}

LogicalResult mlir::plateau::sched::verifyFences(ProgramOp program, const Timeline &timeline, const Order &order) {
  for (const Node &node : timeline.nodes)
    if (isa<FenceOp>(node.op) && !node.iteration.empty()) // FE2
      return node.op->emitError() << "FE2: " << describe(node) << ": the host would wait in every iteration";
  auto writer = [&](const Fault &fault) { return describe(timeline.nodes[fault.others.front().node]); };
  auto text = [&](const Fault &fault) {
    return "is read by the host when it issues the call, and no fence before it covers its writer, " + writer(fault);
  };
  auto note = [&](const Fault &fault, size_t) { return "the writer, " + writer(fault); };
  return emitFaults(program, timeline, findUnfencedTables(timeline, order), "sched-verify-fences", text, note);
}

namespace {
struct VerifyFences : plateau::sched::impl::SchedVerifyFencesBase<VerifyFences> {
  using Base::Base;

  void runOnOperation() override {
    Timeline::Options options;
    options.prefix = !unrollLoops;
    FailureOr<Timeline> timeline = Timeline::get(getOperation(), options);
    if (failed(timeline) || failed(verifyFences(getOperation(), *timeline, Order(*timeline))))
      return signalPassFailure();
    if (reportFences)
      plateau::sched::reportFences(getOperation(), *timeline);
    markAllAnalysesPreserved();
  }
};
} // namespace
