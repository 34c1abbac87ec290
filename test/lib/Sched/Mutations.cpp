//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Mutations.h"
#include "mlir/IR/Builders.h"
#include <map>

using namespace mlir;
using namespace mlir::plateau::sched;
using namespace mlir::plateau::sched::test;

std::vector<Mutation> test::getDroppedWaits(ProgramOp program) {
  std::vector<Mutation> mutations;
  program.walk([&](Operation *op) {
    auto lane = dyn_cast<LaneOpInterface>(op);
    auto fence = dyn_cast<FenceOp>(op);
    if (!lane && !fence)
      return;
    auto getWaits = [op]() -> MutableOperandRange {
      auto lane = dyn_cast<LaneOpInterface>(op);
      return lane ? lane.getWaitsMutable() : cast<FenceOp>(op).getEventsMutable();
    };
    SmallVector<Value> waits(lane ? lane.getWaits() : OperandRange(fence.getEvents()));
    if (fence && waits.size() == 1) {
      // A fence waits for something (F2): here for what is complete.
      auto apply = [=] {
        OpBuilder builder(op);
        getWaits().assign(ValueRange(NoEventOp::create(builder, op->getLoc()).getEvent()));
      };
      auto undo = [=] {
        Operation *none = op->getOperand(0).getDefiningOp();
        getWaits().assign(waits);
        none->erase();
      };
      mutations.push_back({"wait #0", apply, undo, op, nullptr});
      return;
    }
    for (size_t index = 0; index < waits.size(); ++index)
      mutations.push_back({"wait #" + std::to_string(index), [=] { getWaits().erase(index); },
                           [=] { getWaits().assign(waits); }, op, nullptr});
  });
  return mutations;
}

std::vector<Mutation> test::getShrunkRings(ProgramOp program) {
  std::vector<Mutation> mutations;
  program.walk([&](SlotOp slot) {
    int64_t depth = slot.getRing();
    if (depth > 1)
      mutations.push_back({"ring of " + std::to_string(depth), [=] { SlotOp(slot).setRing(depth - 1); },
                           [=] { SlotOp(slot).setRing(depth); }, slot, nullptr});
  });
  return mutations;
}

std::vector<Mutation> test::getMovedSlots(ProgramOp program, int64_t most, int64_t &total) {
  SmallVector<SlotOp> slots;
  program.walk([&](SlotOp slot) { slots.push_back(slot); });
  // There are many: counted first, then made.
  auto forEach = [&](auto visit) {
    for (SlotOp moved : slots)
      for (SlotOp onto : slots)
        if (moved != onto && moved.getSpace() == onto.getSpace() && moved.getOffset() && onto.getOffset() &&
            *moved.getOffset() != *onto.getOffset())
          visit(moved, onto);
  };
  total = 0;
  forEach([&](SlotOp, SlotOp) { ++total; });
  int64_t step = most > 0 ? std::max<int64_t>((total + most - 1) / most, 1) : 1, index = 0;
  std::vector<Mutation> mutations;
  forEach([&](SlotOp moved, SlotOp onto) {
    if (index++ % step != 0)
      return;
    int64_t from = *moved.getOffset(), to = *onto.getOffset();
    mutations.push_back({"slot at " + std::to_string(from) + " moved to " + std::to_string(to),
                         [=] { SlotOp(moved).setOffset(to); }, [=] { SlotOp(moved).setOffset(from); }, moved, onto});
  });
  return mutations;
}

std::vector<Mutation> test::getLoweredSlots(ProgramOp program, const Timeline &timeline) {
  llvm::DenseMap<Value, std::pair<int64_t, int64_t>> lives; // First and last node.
  for (auto [index, node] : llvm::enumerate(timeline.nodes)) {
    auto note = [&, number = static_cast<int64_t>(index)](const ByteRange &range) {
      auto [it, isNew] = lives.try_emplace(range.root, number, number);
      it->second.second = number;
    };
    llvm::for_each(node.reads, note);
    llvm::for_each(node.writes, note);
  }
  std::map<std::pair<Space, int64_t>, SmallVector<SlotOp, 2>> ends;
  program.walk([&](SlotOp slot) {
    if (slot.getOffset() && lives.contains(slot))
      ends[{slot.getSpace(), *slot.getOffset() + llvm::alignTo(slot.getBytes(), slotAlignment)}].push_back(slot);
  });
  std::vector<Mutation> mutations;
  program.walk([&](SlotOp slot) {
    if (!slot.getOffset() || !lives.contains(slot))
      return;
    int64_t offset = *slot.getOffset();
    auto [begin, end] = lives.at(slot);
    for (SlotOp below : ends[{slot.getSpace(), offset}])
      if (auto [first, last] = lives.at(below); first <= end && begin <= last)
        mutations.push_back({"slot at " + std::to_string(offset) + " lowered",
                             [=] { SlotOp(slot).setOffset(offset - slotAlignment); },
                             [=] { SlotOp(slot).setOffset(offset); }, slot, below});
  });
  return mutations;
}

/// What `op` needs and what stands between `first` and it, in order; none when a call is among it.
static std::optional<SmallVector<Operation *>> getNeeds(Operation *op, Operation *first) {
  SmallVector<Operation *> needs;
  llvm::SmallPtrSet<Operation *, 8> seen = {op};
  SmallVector<Operation *> work = {op};
  while (!work.empty())
    for (Value operand : work.pop_back_val()->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (!source || source->getBlock() != first->getBlock() || source->isBeforeInBlock(first) ||
          !seen.insert(source).second)
        continue;
      if (!isa<ViewOp, JoinOp, SlotOp, NoEventOp>(source))
        return std::nullopt;
      needs.push_back(source);
      work.push_back(source);
    }
  llvm::sort(needs, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return needs;
}

/// Whether an op behind `first`, up to `last`, uses what `first` gives.
static bool isNeeded(Operation *first, Operation *last) {
  return llvm::any_of(first->getUsers(), [&](Operation *user) {
    Operation *inBlock = first->getBlock()->findAncestorOpInBlock(*user);
    return inBlock && (inBlock == last || inBlock->isBeforeInBlock(last));
  });
}

std::vector<Mutation> test::getSwappedCollectives(ProgramOp program, int64_t &numImpossible) {
  std::vector<Mutation> mutations;
  numImpossible = 0;
  llvm::MapVector<Block *, SmallVector<CollectiveOp>> blocks;
  program.walk([&](CollectiveOp op) { blocks[op->getBlock()].push_back(op); });
  for (auto &[block, ops] : blocks)
    for (size_t index = 0; index + 1 < ops.size(); ++index) {
      Operation *first = ops[index], *second = ops[index + 1];
      auto needs = getNeeds(second, first);
      if (!needs && isNeeded(first, second)) {
        ++numImpossible;
        continue;
      }
      if (!needs) {
        Operation *next = first->getNextNode();
        mutations.push_back(
            {"collectives", [=] { first->moveAfter(second); }, [=] { first->moveBefore(next); }, first, second});
        continue;
      }
      needs->push_back(second);
      SmallVector<Operation *> moved = *needs, behind;
      for (Operation *op : moved)
        behind.push_back(op->getNextNode());
      auto apply = [=] {
        for (Operation *op : moved)
          op->moveBefore(first);
      };
      auto undo = [=] {
        for (auto [op, next] : llvm::reverse(llvm::zip_equal(moved, behind)))
          op->moveBefore(next);
      };
      mutations.push_back({"collectives", apply, undo, first, second});
    }
  return mutations;
}

namespace {
struct Use {
  int64_t node;
  bool isWrite, isTable;
  ByteRange range;
  int64_t begin, end; ///< In the arena.
  ArrayRef<Piece> pieces;
};
} // namespace

bool test::isWrong(const Timeline &timeline, const Order &order, SlotOp slot) {
  auto getOffset = [&](SlotOp other) -> int64_t { return other.getOffset() ? *other.getOffset() : 0; };
  int64_t low = getOffset(slot), high = low + slot.getBytes();
  std::vector<Use> uses;
  auto add = [&](int64_t node, const ByteRange &range, bool isWrite, bool isTable, ArrayRef<Piece> pieces) {
    auto other = range.root.getDefiningOp<SlotOp>();
    if (!other || (other != slot && (!other.getOffset() || !slot.getOffset() || other.getSpace() != slot.getSpace())))
      return;
    int64_t offset = getOffset(other);
    if (offset + range.begin < high && low < offset + range.end)
      uses.push_back({node, isWrite, isTable, range, offset + range.begin, offset + range.end, pieces});
  };
  for (auto [index, node] : llvm::enumerate(timeline.nodes)) {
    for (const ReadRange &read : node.reads)
      add(index, read, false, read.isTable, read.pieces);
    for (const ByteRange &write : node.writes)
      add(index, write, true, false, {});
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    const Use &use = uses[i];
    for (size_t j = 0; j < uses.size(); ++j) {
      const Use &write = uses[j];
      if (i == j || !write.isWrite || use.begin >= write.end || write.begin >= use.end)
        continue;
      bool isSame = use.range.root == write.range.root && use.begin == write.begin && use.end == write.end;
      if (use.node == write.node ? use.isWrite || !isSame : !order.isOrdered(use.node, write.node))
        return true;
      if (use.isTable && write.node < use.node && !order.isBeforeIssue(write.node, use.node))
        return true;
    }
    int64_t offset = use.begin - use.range.begin;
    for (const Piece &piece : use.pieces) {
      int64_t begin = piece.begin + offset, end = piece.end + offset;
      bool isFound = false;
      for (const Use &write : uses) {
        if (!write.isWrite)
          continue;
        isFound |= write.node == piece.writer && write.begin <= begin && end <= write.end;
        if (write.node > piece.writer && write.node < use.node && write.begin < end && begin < write.end)
          return true;
      }
      // Writers outside the slot's bytes are not among the uses.
      if (!isFound && begin >= low && end <= high)
        return true;
    }
  }
  return false;
}
