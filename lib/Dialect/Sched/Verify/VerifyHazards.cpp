//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// HZ: accesses to the same bytes are ordered when one of them writes.
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/Verify/Checkers.h"
#include "plateau/Dialect/Sched/Verify/MemoryMap.h"
#include "plateau/Dialect/Sched/Verify/Passes.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDVERIFYHAZARDS
#include "plateau/Dialect/Sched/Verify/Passes.h.inc"
} // namespace mlir::plateau::sched

namespace {
/// The accesses of a byte that a later one must follow: its last writer, and the last reader on each lane since.
/// Earlier writers come before the last one and earlier readers of a lane before its last one, or a fault was found.
struct History {
  int64_t writer = -1;
  std::array<int64_t, Order::numLanes> readers;
  History(int64_t writer = -1) : writer(writer) { readers.fill(-1); }
};

class Replay {
public:
  Replay(const Timeline &timeline, const Order &order) : timeline(timeline), order(order) {}

  FaultList run() {
    for (int64_t index = 0; index < static_cast<int64_t>(timeline.nodes.size()); ++index) {
      const Node &node = timeline.nodes[index];
      if (!node.lane)
        continue; // A fence accesses nothing, and sched.return follows every call.
      SmallVector<Access, 6> reads, writes;
      for (const ReadRange &read : node.reads) {
        bool isFirstTable = read.isTable && (reads.empty() || reads.back().kind == Access::Read);
        int64_t operand = isFirstTable || reads.empty() ? 0 : reads.back().operand + 1;
        reads.push_back({index, read.isTable ? Access::Table : Access::Read, operand, read});
      }
      for (auto [operand, write] : llvm::enumerate(node.writes))
        writes.push_back({index, Access::Write, static_cast<int64_t>(operand), write});
      checkInside(reads, writes);
      for (const Access &read : reads)
        addRead(read);
      for (const Access &write : writes)
        addWrite(write);
    }
    return std::move(faults);
  }

private:
  static bool isNeverWritten(const ByteRange &range) {
    return isa<ConstantOp, TableOp>(range.root.getDefiningOp()); // C2
  }

  /// HZ3.
  void checkInside(ArrayRef<Access> reads, ArrayRef<Access> writes) {
    for (size_t operand = 0; operand < writes.size(); ++operand) {
      const Access &write = writes[operand];
      Extent written = memories.get(write.range);
      auto check = [&](const Access &other, bool mayBeSame) {
        Extent extent = memories.get(other.range);
        if (extent.memory != written.memory || extent.end <= written.begin || written.end <= extent.begin)
          return;
        bool isSame = other.range.root == write.range.root && other.range.begin == write.range.begin &&
                      other.range.end == write.range.end;
        if (!mayBeSame || !isSame)
          faults.add({"HZ3", write, {other}}, timeline);
      };
      for (const Access &read : reads)
        check(read, /*mayBeSame=*/true);
      for (const Access &other : writes.take_front(operand))
        check(other, /*mayBeSame=*/false);
    }
  }

  void addRead(const Access &read) {
    if (isNeverWritten(read.range))
      return;
    Extent extent = memories.get(read.range);
    histories[extent.memory].update(extent.begin, extent.end, [&](int64_t, int64_t, History &history) {
      if (history.writer >= 0 && !order.isBefore(history.writer, read.node))
        addFault("HZ1", read, history.writer, extent);
      if (history.writer >= 0 && read.kind == Access::Table && !order.isBeforeIssue(history.writer, read.node))
        addFault("HZ2", {read.node, Access::HostTable, read.operand, read.range}, history.writer, extent);
      history.readers[static_cast<int64_t>(*timeline.nodes[read.node].lane)] = read.node;
    });
  }

  void addWrite(const Access &write) {
    Extent extent = memories.get(write.range);
    histories[extent.memory].update(extent.begin, extent.end, [&](int64_t, int64_t, History &history) {
      if (history.writer >= 0 && history.writer != write.node && !order.isBefore(history.writer, write.node))
        addFault("HZ1", write, history.writer, extent);
      for (int64_t reader : history.readers)
        if (reader >= 0 && reader != write.node && !order.isBefore(reader, write.node))
          addFault("HZ1", write, reader, extent, /*isReader=*/true);
    });
    histories[extent.memory].assign(extent.begin, extent.end, History(write.node));
  }

  void addFault(StringRef code, const Access &access, int64_t other, Extent extent, bool isReader = false) {
    faults.add({code, access, {find(other, extent, isReader)}}, timeline);
  }

  /// The operand of the node that accesses these bytes.
  Access find(int64_t index, Extent extent, bool isReader) {
    const Node &node = timeline.nodes[index];
    auto meets = [&](const ByteRange &range) {
      Extent other = memories.get(range);
      return other.memory == extent.memory && other.begin < extent.end && extent.begin < other.end;
    };
    int64_t operand = 0, table = 0;
    if (isReader) {
      for (const ReadRange &read : node.reads) {
        int64_t number = read.isTable ? table++ : operand++;
        if (meets(read))
          return {index, read.isTable ? Access::Table : Access::Read, number, read};
      }
    } else {
      for (const ByteRange &write : node.writes) {
        if (meets(write))
          return {index, Access::Write, operand, write};
        ++operand;
      }
    }
    llvm_unreachable("a node is in the history of bytes that it accesses");
  }

  const Timeline &timeline;
  const Order &order;
  MemoryMap memories;
  llvm::DenseMap<int64_t, RangeMap<History>> histories; ///< By memory.
  FaultList faults;
};
} // namespace

FaultList mlir::plateau::sched::findHazards(const Timeline &timeline, const Order &order) {
  return Replay(timeline, order).run();
}

LogicalResult mlir::plateau::sched::verifyHazards(ProgramOp program, const Timeline &timeline, const Order &order) {
  auto text = [&](const Fault &fault) -> std::string {
    const Access &other = fault.others.front();
    std::string what = describe(other) + " of " + describe(timeline.nodes[other.node]);
    if (fault.code == "HZ3")
      return "overlaps " + describe(other) + " of the same call, and is not the same place";
    if (fault.code == "HZ2")
      return "is read by the host when it issues the call, before " + what + " is known to be done: a fence is missing";
    return "is not ordered with " + what + ": a wait is missing, or the bytes must not be shared";
  };
  auto note = [&](const Fault &fault, size_t index) {
    const Access &other = fault.others[index];
    return describe(other) + " of " + describe(timeline.nodes[other.node]) + ", " + describe(other.range);
  };
  return emitFaults(program, timeline, findHazards(timeline, order), "sched-verify-hazards", text, note);
}

namespace {
struct VerifyHazards : plateau::sched::impl::SchedVerifyHazardsBase<VerifyHazards> {
  using Base::Base;

  void runOnOperation() override {
    Timeline::Options options;
    options.prefix = !unrollLoops;
    FailureOr<Timeline> timeline = Timeline::get(getOperation(), options);
    if (failed(timeline) || failed(verifyHazards(getOperation(), *timeline, Order(*timeline))))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
