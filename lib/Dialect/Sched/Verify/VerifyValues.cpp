//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// VA: every read finds the value that it names.
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/IR/Place.h"
#include "plateau/Dialect/Sched/Verify/Checkers.h"
#include "plateau/Dialect/Sched/Verify/MemoryMap.h"
#include "plateau/Dialect/Sched/Verify/Passes.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDVERIFYVALUES
#include "plateau/Dialect/Sched/Verify/Passes.h.inc"
} // namespace mlir::plateau::sched

/// The operand with which node `index` writes the bytes; anything when it writes none of them.
static Access findWrite(const Timeline &timeline, MemoryMap &memories, int64_t index, Extent extent) {
  const Node &node = timeline.nodes[index];
  for (auto [operand, write] : llvm::enumerate(node.writes)) {
    Extent other = memories.get(write);
    if (other.memory == extent.memory && other.begin < extent.end && extent.begin < other.end)
      return {index, Access::Write, static_cast<int64_t>(operand), write};
  }
  return {index, Access::Write, 0, node.writes.empty() ? ByteRange() : node.writes.front()};
}

FaultList mlir::plateau::sched::findWrongValues(const Timeline &timeline) {
  FaultList faults;
  MemoryMap memories;
  llvm::DenseMap<int64_t, RangeMap<int64_t>> writers; // By memory: 1 + node, 0 at the start.
  for (int64_t index = 0; index < static_cast<int64_t>(timeline.nodes.size()); ++index) {
    const Node &node = timeline.nodes[index];
    int64_t operand = 0, tables = 0;
    for (const ReadRange &read : node.reads) {
      Access access = {index, read.isTable ? Access::Table : Access::Read, read.isTable ? tables++ : operand++, read};
      bool isSlot = isa<SlotOp>(read.root.getDefiningOp());
      for (const Piece &piece : read.pieces) {
        ByteRange bytes = {read.root, piece.begin, piece.end};
        if (piece.writer == Piece::initial && isSlot) {
          access.range = bytes;
          faults.add({"VA2", access, {}}, timeline);
          continue;
        }
        Extent extent = memories.get(bytes);
        int64_t base = extent.begin - piece.begin;
        writers[extent.memory].update(extent.begin, extent.end, [&](int64_t begin, int64_t end, int64_t &last) {
          int64_t found = last - 1;
          if (found == piece.writer)
            return;
          access.range = {read.root, begin - base, end - base};
          Fault fault = {"VA1", access, {}, found, piece.writer};
          for (int64_t writer : {found, piece.writer})
            if (writer >= 0)
              fault.others.push_back(findWrite(timeline, memories, writer, {extent.memory, begin, end}));
          faults.add(std::move(fault), timeline);
        });
      }
    }
    for (const ByteRange &write : node.writes) {
      Extent extent = memories.get(write);
      writers[extent.memory].assign(extent.begin, extent.end, index + 1);
    }
  }
  return faults;
}

/// VA3: what nobody reads at the end, nobody has checked.
static LogicalResult verifyBuffers(ProgramOp program, const Timeline &timeline) {
  llvm::SmallDenseSet<Value> named;
  for (const ReadRange &read : timeline.nodes.back().reads)
    named.insert(read.root);
  LogicalResult result = success();
  for (const Node &node : timeline.nodes)
    for (auto [operand, write] : llvm::enumerate(node.writes))
      if (auto buffer = write.root.getDefiningOp<BufferOp>(); buffer && named.insert(write.root).second) {
        InFlightDiagnostic diag = buffer.emitError()
                                  << "VA3: buffer " << buffer.getNumber() << " is written by " << describe(node)
                                  << ", and sched.return names no value of it: what it holds at the end is not checked";
        diag.attachNote(node.op->getLoc()) << "write #" << operand << ", " << describe(write);
        result = failure();
      }
  return result;
}

namespace {
/// VA4: the lowering computes addresses from `Place::get`; the timeline follows values as the host meets them.
class PlaceCheck {
public:
  PlaceCheck(const Timeline &timeline) : timeline(timeline) {}

  LogicalResult run() {
    for (const Node &node : timeline.nodes) {
      ArrayRef<Operand> known = getOperands(node.op);
      SmallVector<const ByteRange *> ranges;
      for (const ReadRange &read : node.reads)
        ranges.push_back(&read);
      for (const ByteRange &write : node.writes)
        ranges.push_back(&write);
      for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(known, ranges))) {
        auto [operand, range] = pair;
        if (auto begin = operand.getBegin(node.iteration); operand.isKnown && operand.place.root == range->root &&
                                                           begin == range->begin &&
                                                           begin + operand.place.bytes == range->end)
          continue;
        return node.op->emitError() << "VA4: memory operand #" << index << " of " << describe(node) << " lies at "
                                    << describe(*range) << ", and Place::get finds it elsewhere";
      }
    }
    return success();
  }

private:
  struct Operand {
    Place place;
    bool isKnown;
    SmallVector<std::pair<int64_t, int64_t>> terms; ///< Loop around the op, outermost first; stride.
    int64_t depth = 1, stride = 0;                  ///< Of the ring.
    int64_t ringLoop = -1;

    int64_t getBegin(ArrayRef<int64_t> iteration) const {
      int64_t begin = place.offsetBytes;
      for (auto [loop, bytes] : terms)
        begin += bytes * iteration[loop];
      int64_t number = place.ring + (ringLoop < 0 ? 0 : iteration[ringLoop]);
      return begin + ((number % depth + depth) % depth) * stride;
    }
  };

  ArrayRef<Operand> getOperands(Operation *op) {
    auto [known, isNew] = operands.try_emplace(op);
    if (!isNew)
      return known->second;
    SmallVector<Value> counters;
    for (auto loop = op->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
      counters.insert(counters.begin(), loop.getCounter());
    SmallVector<Value> values;
    if (auto lane = dyn_cast<LaneOpInterface>(op)) {
      llvm::append_range(values, lane.getReads());
      llvm::append_range(values, lane.getTables());
      llvm::append_range(values, lane.getWrites());
    } else if (auto ret = dyn_cast<ReturnOp>(op)) {
      llvm::append_range(values, ret.getValues());
    }
    for (Value value : values)
      known->second.push_back(getOperand(value, counters));
    return known->second;
  }

  static Operand getOperand(Value value, ArrayRef<Value> counters) {
    Operand operand;
    FailureOr<Place> place = Place::get(value);
    operand.isKnown = succeeded(place);
    if (failed(place))
      return operand;
    operand.place = *place;
    auto find = [&](Value counter) -> int64_t {
      auto *found = llvm::find(counters, counter);
      operand.isKnown &= found != counters.end();
      return found == counters.end() ? -1 : found - counters.begin();
    };
    for (const Place::Term &term : place->terms)
      if (int64_t loop = find(term.index); loop >= 0)
        operand.terms.push_back({loop, term.strideBytes});
    if (place->ringIndex)
      operand.ringLoop = find(place->ringIndex);
    if (auto slot = place->root.getDefiningOp<SlotOp>()) {
      operand.depth = slot.getRing();
      operand.stride = slot.getStrideBytes();
    }
    return operand;
  }

  const Timeline &timeline;
  llvm::DenseMap<Operation *, SmallVector<Operand, 3>> operands;
};
} // namespace

LogicalResult mlir::plateau::sched::verifyValues(ProgramOp program, const Timeline &timeline) {
  FaultList faults = findWrongValues(timeline);
  auto name = [&](int64_t writer) {
    return "what " + (writer >= 0 ? describe(timeline.nodes[writer]) + " wrote" : "was there before the program");
  };
  auto text = [&](const Fault &fault) -> std::string {
    if (fault.code == "VA2")
      return "names what the slot held before the program, which is nothing";
    return "names " + name(fault.named) + ", and finds " + name(fault.found);
  };
  auto note = [&](const Fault &fault, size_t index) {
    const Access &other = fault.others[index];
    return describe(other) + " of " + describe(timeline.nodes[other.node]) + ", " + describe(other.range);
  };
  LogicalResult values = emitFaults(program, timeline, faults, "sched-verify-values", text, note);
  LogicalResult buffers = verifyBuffers(program, timeline);
  LogicalResult places = PlaceCheck(timeline).run();
  return success(succeeded(values) && succeeded(buffers) && succeeded(places));
}

namespace {
struct VerifyValues : plateau::sched::impl::SchedVerifyValuesBase<VerifyValues> {
  using Base::Base;

  void runOnOperation() override {
    Timeline::Options options;
    options.prefix = !unrollLoops;
    FailureOr<Timeline> timeline = Timeline::get(getOperation(), options);
    if (failed(timeline) || failed(verifyValues(getOperation(), *timeline)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
