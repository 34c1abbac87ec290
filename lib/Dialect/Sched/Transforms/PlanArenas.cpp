//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "plateau/Analysis/Timeline.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"
#include "plateau/Planning/PackArena.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDPLANARENAS
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace mlir::plateau::sched

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::sched;

namespace {
/// From the write of a value to a read of it, or one access alone.
struct Use {
  int64_t from, to;
};
using Uses = llvm::MapVector<Value, SmallVector<Use, 4>>;
} // namespace

/// What the nodes use of each slot, all accesses among it.
static Uses getUses(const Timeline &timeline) {
  Uses uses;
  for (auto [index, node] : llvm::enumerate(timeline.nodes)) {
    int64_t now = index;
    for (const ReadRange &read : node.reads) {
      if (!read.root.getDefiningOp<SlotOp>())
        continue;
      int64_t from = now;
      for (const Piece &piece : read.pieces)
        from = std::min(from, piece.writer);
      uses[read.root].push_back({from, now});
    }
    for (const ByteRange &write : node.writes)
      if (write.root.getDefiningOp<SlotOp>())
        uses[write.root].push_back({now, now});
  }
  return uses;
}

/// Splits what is used of a slot where no value passes, into the calls of each life.
static void addLives(planning::ArenaProblem &problem, int32_t buffer, SmallVector<Use, 4> uses, ArrayRef<int32_t> calls,
                     bool isOneLife) {
  llvm::sort(uses, [](const Use &a, const Use &b) { return a.from < b.from; });
  SmallVector<int32_t> accesses;
  int64_t end = -1;
  for (const Use &use : uses) {
    if (use.from > end && !isOneLife) {
      problem.addLife(buffer, accesses);
      accesses.clear();
    }
    end = std::max(end, use.to);
    for (int64_t node : {use.from, use.to})
      if (node >= 0)
        accesses.push_back(calls[node]);
  }
  problem.addLife(buffer, accesses);
}

namespace {
struct PlanArenas : mlir::plateau::sched::impl::SchedPlanArenasBase<PlanArenas> {
  using Base::Base;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    Timeline::Options options;
    options.prefix = true;
    FailureOr<Timeline> timeline = Timeline::get(program, options);
    if (failed(timeline))
      return signalPassFailure();
    Uses uses = getUses(*timeline);
    llvm::MapVector<Space, SmallVector<SlotOp>> slots;
    program.walk([&](SlotOp slot) { slots[slot.getSpace()].push_back(slot); });
    for (auto &[space, slotsOfSpace] : slots)
      plan(*timeline, uses, space, slotsOfSpace);
  }

  void plan(const Timeline &timeline, const Uses &uses, Space space, ArrayRef<SlotOp> slots);
};
} // namespace

/// The arena of the space, made when there is none.
static ArenaOp getArena(ProgramOp program, Space space) {
  for (ArenaOp arena : program.getBody().getOps<ArenaOp>())
    if (arena.getSpace() == space)
      return arena;
  Block &body = program.getBody().front();
  auto behind = body.begin();
  while (isa<LaneOp, ArenaOp>(*behind))
    ++behind;
  OpBuilder builder(&body, behind);
  return ArenaOp::create(builder, program.getLoc(), space, /*bytes=*/IntegerAttr(), /*lowerBound=*/IntegerAttr());
}

void PlanArenas::plan(const Timeline &timeline, const Uses &uses, Space space, ArrayRef<SlotOp> slots) {
  planning::ArenaProblem problem(getMaxEnumValForLane() + 1);
  std::vector<int32_t> calls; // Of each node; what the host does at the end comes after all lanes.
  for (const Node &node : timeline.nodes) {
    SmallVector<int32_t> waits;
    for (int64_t wait : node.waits)
      waits.push_back(calls[wait]);
    if (isa<ReturnOp>(node.op))
      for (size_t call = 0; call < problem.getCalls().size(); ++call)
        waits.push_back(call);
    if (!node.lane)
      problem.addFence(waits);
    bool isHost = !node.lane && !isa<ReturnOp>(node.op);
    calls.push_back(isHost ? -1 : problem.addCall(node.lane ? static_cast<unsigned>(*node.lane) : 0, waits));
  }
  for (SlotOp slot : slots) {
    int32_t buffer = problem.addBuffer(slot.getBytes());
    auto used = uses.find(slot);
    if (used != uses.end())
      addLives(problem, buffer, used->second, calls, /*isOneLife=*/slot.getRing() > 1);
  }
  problem.finalize();
  planning::LowerBound bound = planning::computeLowerBound(problem, workLimit);
  planning::PackingOptions options;
  options.workPerBuffer = workPerSlot;
  planning::Packing packing = planning::packArena(problem, bound, options);

  Builder builder(&getContext());
  // The last slot needs no bytes behind it to be rounded up, though the bound counts them.
  int64_t end = 0;
  for (auto [slot, offset] : llvm::zip_equal(slots, packing.offsets)) {
    SlotOp(slot).setOffsetAttr(builder.getI64IntegerAttr(offset));
    end = std::max(end, offset + SlotOp(slot).getBytes());
  }
  ArenaOp arena = getArena(getOperation(), space);
  arena.setBytesAttr(builder.getI64IntegerAttr(end));
  arena.setLowerBoundAttr(builder.getI64IntegerAttr(std::min(bound.bytes, end)));

  slotBytes += problem.getTotalBytes();
  arenaBytes += packing.bytes;
  liveBytes += bound.liveBytes;
  boundBytes += bound.bytes;
  passCount += packing.passes;
  std::string name = getOperation().getSymName().str();
  remark::analysis(arena.getLoc(), remark::RemarkOpts::name("arena").category("sched-plan-arenas").function(name))
      << remark::metric("Program", name) << remark::metric("Space", stringifySpace(space).str())
      << remark::metric("Slots", static_cast<int64_t>(slots.size()))
      << remark::metric("SlotBytes", problem.getTotalBytes()) << remark::metric("ArenaBytes", packing.bytes)
      << remark::metric("LiveBytes", bound.liveBytes) << remark::metric("BoundBytes", bound.bytes)
      << remark::metric("BoundIsExact", bound.isExact) << remark::metric("Solver", packing.solver);
}
