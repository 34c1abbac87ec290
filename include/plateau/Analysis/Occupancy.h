//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Who holds which bytes, from call to call.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_ANALYSIS_OCCUPANCY_H
#define PLATEAU_ANALYSIS_OCCUPANCY_H

#include "plateau/Analysis/Timeline.h"
#include <array>

namespace mlir::plateau::sched {

/// A slot, or a buffer.
struct Occupant {
  /// Nodes `first` ... `last` of the timeline, between which the bytes matter.
  struct Life {
    int64_t first, last;
  };

  Value root;
  Space space;
  TagAttr tag;
  int64_t bytes;                 ///< All places of a ring, up to a multiple of 64, as the arena gives them.
  std::optional<int64_t> offset; ///< In the arena; none of a buffer, nor of a slot that is not planned.
  std::vector<int64_t> accesses; ///< Nodes, in order.
  SmallVector<Life, 1> lives;    ///< In order, apart from one another. A buffer has one, the whole timeline.

  bool isBuffer() const { return isa_and_present<BufferOp>(root.getDefiningOp()); }
  /// The accesses of a life.
  ArrayRef<int64_t> getAccesses(const Life &life) const;
  /// Whether the bytes matter at the node.
  bool isLiveAt(int64_t node) const;
};

/// The bytes that are live at each node of a timeline, in issue order: those of slots that hold a value which a later
/// node reads, or that the node itself reads or writes, and those of all buffers. Lanes that run ahead of one another
/// may need more; what bounds that is the lower bound of the planner.
///
/// O(accesses · log + nodes).
struct Occupancy {
  static constexpr int64_t numComponents = getMaxEnumValForComponent() + 1;
  static constexpr int64_t numPhases = getMaxEnumValForPhase() + 1;
  static constexpr int64_t numSpaces = getMaxEnumValForSpace() + 1;

  struct SpaceUse {
    std::vector<int64_t> liveBytes; ///< At each node, with the buffers.
    int64_t bufferBytes = 0;
    std::optional<int64_t> arenaBytes; ///< When it is planned; 0 without an arena.
    int64_t peakBytes = 0;             ///< The most live bytes.
    int64_t peakNode = 0;              ///< The first node that has them.
    std::array<int64_t, numComponents> atPeakBytes = {};
    std::array<int64_t, numComponents> componentPeakBytes = {}; ///< Each at a node of its own.
    std::array<int64_t, numPhases> phasePeakBytes = {};         ///< Over nodes whose calls are of the phase.

    /// What the space takes while the program runs, whatever is live: the buffers and the arena.
    std::optional<int64_t> getPlannedBytes() const {
      return arenaBytes ? std::optional(bufferBytes + *arenaBytes) : std::nullopt;
    }
  };

  std::vector<Occupant> occupants; ///< Buffers and slots that are used, in the order of the program.
  std::array<SpaceUse, numSpaces> spaces;

  /// `timeline` is the whole program's, not a prefix.
  Occupancy(ProgramOp program, const Timeline &timeline);

  const SpaceUse &get(Space space) const { return spaces[static_cast<int64_t>(space)]; }
  /// The occupants of the space that are live at the node, the largest first.
  std::vector<const Occupant *> getLiveAt(Space space, int64_t node) const;

private:
  void addLives(const Timeline &timeline);
  void addUse(const Timeline &timeline);
};

} // namespace mlir::plateau::sched

#endif // PLATEAU_ANALYSIS_OCCUPANCY_H
