//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// AR5: arenas and buffers fit the budget; if not, why.
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/Verify/Checkers.h"
#include "plateau/Dialect/Sched/Verify/MemoryMap.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
/// Bytes of a slot that hold one value, from the node that writes it to the last node that names it.
struct Life {
  Value root;
  int64_t bytes, first, last;
};

/// The life that is open for some bytes; none before they are written.
struct OpenLife {
  int64_t writer = -1, last = -1;
};
} // namespace

static std::vector<Life> getLives(const Timeline &timeline, Space space) {
  auto isInSpace = [&](const ByteRange &range) {
    auto slot = range.root.getDefiningOp<SlotOp>();
    return slot && slot.getSpace() == space;
  };
  std::vector<Life> lives;
  llvm::MapVector<Value, RangeMap<OpenLife>> open;
  for (int64_t index = 0; index < static_cast<int64_t>(timeline.nodes.size()); ++index) {
    const Node &node = timeline.nodes[index];
    for (const ReadRange &read : node.reads)
      if (isInSpace(read))
        for (const Piece &piece : read.pieces)
          open[read.root].update(piece.begin, piece.end, [&](int64_t, int64_t, OpenLife &life) {
            if (life.writer == piece.writer)
              life.last = index;
          });
    for (const ByteRange &write : node.writes) {
      if (!isInSpace(write))
        continue;
      RangeMap<OpenLife> &map = open[write.root];
      map.update(write.begin, write.end, [&](int64_t begin, int64_t end, OpenLife &life) {
        // An update in place reads and writes the same bytes: they count once.
        if (life.writer >= 0)
          lives.push_back({write.root, end - begin, life.writer, std::min(life.last, index - 1)});
      });
      map.assign(write.begin, write.end, {index, index});
    }
  }
  for (auto &entry : open)
    entry.second.forEach([&](int64_t begin, int64_t end, const OpenLife &life) {
      if (life.writer >= 0)
        lives.push_back({entry.first, end - begin, life.writer, life.last});
    });
  return lives;
}

Peak mlir::plateau::sched::getLivePeak(const Timeline &timeline, Space space) {
  std::vector<Life> lives = getLives(timeline, space);
  std::vector<int64_t> change(timeline.nodes.size() + 1);
  for (const Life &life : lives) {
    change[life.first] += life.bytes;
    change[life.last + 1] -= life.bytes;
  }
  Peak peak;
  int64_t now = 0;
  for (int64_t node = 0; node < static_cast<int64_t>(timeline.nodes.size()); ++node) {
    now += change[node];
    if (now > peak.bytes) {
      peak.bytes = now;
      peak.node = node;
    }
  }
  llvm::MapVector<Value, int64_t> bytes;
  for (const Life &life : lives)
    if (life.first <= peak.node && peak.node <= life.last)
      bytes[life.root] += life.bytes;
  for (auto [root, size] : bytes)
    peak.shares.push_back({root.getDefiningOp<SlotOp>(), size, static_cast<int64_t>(peak.shares.size())});
  // Of equal ones the first in use.
  llvm::sort(peak.shares, [](const Peak::Share &a, const Peak::Share &b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.number < b.number;
  });
  return peak;
}

/// A sum that stays at the largest number rather than pass it.
static int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  return llvm::AddOverflow(a, b, sum) ? std::numeric_limits<int64_t>::max() : sum;
}

static LogicalResult verifySpace(ProgramOp program, const Timeline &timeline, Space space, int64_t budget) {
  int64_t arenaBytes = 0, bufferBytes = 0;
  for (ArenaOp arena : program.getOps<ArenaOp>())
    if (arena.getSpace() == space && arena.getBytes())
      arenaBytes = llvm::alignTo(*arena.getBytes(), slotAlignment); // What the runtime takes.
  for (BufferOp buffer : program.getOps<BufferOp>())
    if (buffer.getSpace() == space)
      bufferBytes = add(bufferBytes, static_cast<int64_t>(llvm::alignTo(getBytes(buffer.getType()), slotAlignment)));
  int64_t total = add(arenaBytes, bufferBytes);
  if (budget < 0 || total <= budget)
    return success();

  Peak peak = getLivePeak(timeline, space);
  StringRef name = stringifySpace(space);
  InFlightDiagnostic diag = program.emitError()
                            << "AR5: @" << program.getSymName() << " needs " << total << " bytes of " << name
                            << " memory, " << arenaBytes << " for the arena and " << bufferBytes
                            << " for buffers, and the budget is " << budget << ": " << total - budget << " too many";
  Diagnostic &why = diag.attachNote();
  why << "at the peak " << peak.bytes << " bytes are live together, the lower bound of this schedule; fragmentation is "
      << arenaBytes << " - " << peak.bytes << " = " << arenaBytes - peak.bytes << " bytes. ";
  int64_t least = add(static_cast<int64_t>(llvm::alignTo(peak.bytes, slotAlignment)), bufferBytes);
  if (least > budget)
    why << "It is impossible: no packing fits, since bound and buffers are " << least << " bytes";
  else
    why << "It is badly packed: bound and buffers are " << least << " bytes, which would fit";
  constexpr size_t most = 8;
  if (peak.node >= 0)
    diag.attachNote(timeline.nodes[peak.node].op->getLoc())
        << "the peak, " << describe(timeline.nodes[peak.node]) << ": " << peak.shares.size() << " slots are live";
  for (Peak::Share share : ArrayRef(peak.shares).take_front(most)) {
    TagAttr tag = share.slot.getTag();
    Diagnostic &note = diag.attachNote(share.slot.getLoc());
    note << share.bytes << " bytes of " << tag.getOp() << " (" << stringifyComponent(tag.getComponent()) << ", "
         << stringifyPhase(tag.getPhase());
    if (tag.getLayer())
      note << ", layer " << *tag.getLayer();
    note << ")";
  }
  return diag;
}

LogicalResult mlir::plateau::sched::verifyBudget(ProgramOp program, const Timeline &timeline, int64_t hbmBytes,
                                                 int64_t hostBytes) {
  LogicalResult device = verifySpace(program, timeline, Space::Device, hbmBytes);
  LogicalResult host = verifySpace(program, timeline, Space::Host, hostBytes);
  return success(succeeded(device) && succeeded(host));
}
