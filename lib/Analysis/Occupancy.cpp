//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Analysis/Occupancy.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::sched;

using Life = Occupant::Life;

ArrayRef<int64_t> Occupant::getAccesses(const Life &life) const {
  auto begin = llvm::lower_bound(accesses, life.first), end = llvm::upper_bound(accesses, life.last);
  return ArrayRef(accesses).slice(begin - accesses.begin(), end - begin);
}

bool Occupant::isLiveAt(int64_t node) const {
  const Life *life = llvm::partition_point(lives, [&](const Life &life) { return life.last < node; });
  return life != lives.end() && life->first <= node;
}

/// Appends what starts at `node`, unless it is there.
static void begin(Occupant &occupant, int64_t node) {
  if (occupant.lives.empty() || occupant.lives.back().first != node)
    occupant.lives.push_back({node, node});
}

/// The life of what `writer` wrote lasts until `node` at least.
static void extend(Occupant &occupant, int64_t writer, int64_t node) {
  Life *life = llvm::partition_point(occupant.lives, [&](const Life &life) { return life.first < writer; });
  if (life != occupant.lives.end() && life->first == writer)
    life->last = std::max(life->last, node);
}

/// Lives that share a node become one.
static void merge(SmallVectorImpl<Life> &lives) {
  size_t kept = 0;
  for (const Life &life : lives) {
    if (kept > 0 && life.first <= lives[kept - 1].last)
      lives[kept - 1].last = std::max(lives[kept - 1].last, life.last);
    else
      lives[kept++] = life;
  }
  lives.truncate(kept);
}

void Occupancy::addLives(const Timeline &timeline) {
  llvm::DenseMap<Value, size_t> slots;
  for (auto [index, occupant] : llvm::enumerate(occupants))
    slots[occupant.root] = index;
  auto touch = [&](const ByteRange &range, int64_t node) -> Occupant * {
    auto slot = slots.find(range.root);
    if (slot == slots.end())
      return nullptr; // A constant or a table.
    Occupant &occupant = occupants[slot->second];
    if (occupant.accesses.empty() || occupant.accesses.back() != node)
      occupant.accesses.push_back(node);
    return &occupant;
  };
  for (auto [node, info] : llvm::enumerate(timeline.nodes)) {
    for (const ReadRange &read : info.reads)
      if (Occupant *occupant = touch(read, node)) {
        for (const Piece &piece : read.pieces)
          extend(*occupant, piece.writer, node);
        begin(*occupant, node); // Even if it reads what no call wrote.
      }
    for (const ByteRange &write : info.writes)
      if (Occupant *occupant = touch(write, node))
        begin(*occupant, node);
  }
  for (Occupant &occupant : occupants) {
    if (occupant.isBuffer())
      occupant.lives.assign(1, {0, static_cast<int64_t>(timeline.nodes.size()) - 1});
    merge(occupant.lives);
  }
}

static std::optional<Phase> getPhase(Operation *op) {
  auto lane = dyn_cast<LaneOpInterface>(op);
  return lane ? std::optional(lane.getTag().getPhase()) : std::nullopt;
}

void Occupancy::addUse(const Timeline &timeline) {
  // What begins at a node, and what ends behind it: occupants, in the order of nodes.
  std::vector<std::pair<int64_t, const Occupant *>> begins, ends;
  for (const Occupant &occupant : occupants)
    for (const Life &life : occupant.lives) {
      begins.emplace_back(life.first, &occupant);
      ends.emplace_back(life.last, &occupant);
    }
  llvm::sort(begins);
  llvm::sort(ends);

  std::array<std::array<int64_t, numComponents>, numSpaces> live = {};
  auto add = [&](const Occupant &occupant, int64_t sign) {
    live[static_cast<int64_t>(occupant.space)][static_cast<int64_t>(occupant.tag.getComponent())] +=
        sign * occupant.bytes;
  };
  auto nextBegin = begins.begin(), nextEnd = ends.begin();
  for (SpaceUse &use : spaces)
    use.liveBytes.reserve(timeline.nodes.size());
  for (int64_t node = 0, count = timeline.nodes.size(); node < count; ++node) {
    for (; nextBegin != begins.end() && nextBegin->first == node; ++nextBegin)
      add(*nextBegin->second, 1);
    std::optional<Phase> phase = getPhase(timeline.nodes[node].op);
    for (auto [use, components] : llvm::zip_equal(spaces, live)) {
      int64_t total = 0;
      for (auto [bytes, peak] : llvm::zip_equal(components, use.componentPeakBytes)) {
        total += bytes;
        peak = std::max(peak, bytes);
      }
      use.liveBytes.push_back(total);
      if (total > use.peakBytes) {
        use.peakBytes = total;
        use.peakNode = node;
        use.atPeakBytes = components;
      }
      if (phase) {
        int64_t &peak = use.phasePeakBytes[static_cast<int64_t>(*phase)];
        peak = std::max(peak, total);
      }
    }
    for (; nextEnd != ends.end() && nextEnd->first == node; ++nextEnd)
      add(*nextEnd->second, -1);
  }
}

Occupancy::Occupancy(ProgramOp program, const Timeline &timeline) {
  for (SpaceUse &use : spaces)
    use.arenaBytes = 0;
  program.walk([&](Operation *op) {
    if (auto arena = dyn_cast<ArenaOp>(op)) {
      spaces[static_cast<int64_t>(arena.getSpace())].arenaBytes = arena.getBytes();
    } else if (auto slot = dyn_cast<SlotOp>(op)) {
      occupants.push_back({slot,
                           slot.getSpace(),
                           slot.getTag(),
                           static_cast<int64_t>(llvm::alignTo(slot.getBytes(), slotAlignment)),
                           slot.getOffset(),
                           {},
                           {}});
    } else if (auto buffer = dyn_cast<BufferOp>(op)) {
      int64_t bytes = llvm::alignTo(getBytes(buffer.getType()), slotAlignment);
      spaces[static_cast<int64_t>(buffer.getSpace())].bufferBytes += bytes;
      occupants.push_back({buffer, buffer.getSpace(), buffer.getTag(), bytes, std::nullopt, {}, {}});
    }
  });
  addLives(timeline);
  llvm::erase_if(occupants, [](const Occupant &occupant) { return occupant.lives.empty(); });
  addUse(timeline);
}

std::vector<const Occupant *> Occupancy::getLiveAt(Space space, int64_t node) const {
  std::vector<const Occupant *> live;
  for (const Occupant &occupant : occupants)
    if (occupant.space == space && occupant.isLiveAt(node))
      live.push_back(&occupant);
  llvm::stable_sort(live, [](const Occupant *a, const Occupant *b) { return a->bytes > b->bytes; });
  return live;
}
