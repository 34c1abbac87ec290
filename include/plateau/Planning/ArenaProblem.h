//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which buffers may share bytes: an arena to be packed, apart from any IR.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_PLANNING_ARENAPROBLEM_H
#define PLATEAU_PLANNING_ARENAPROBLEM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <cstdint>
#include <vector>

namespace mlir::plateau::planning {

/// For each lane, a number of its calls: those that are done at some moment.
inline constexpr unsigned maxLanes = 8;
using Clock = std::array<int32_t, maxLanes>;

/// Whether each lane is at least as far in `b`.
inline bool isAtMost(const Clock &a, const Clock &b) {
  bool isMore = false;
  for (unsigned lane = 0; lane < maxLanes; ++lane)
    isMore |= a[lane] > b[lane];
  return !isMore;
}

/// Calls on lanes, which wait for one another, and buffers that they access.
///
/// A buffer is used again and again: a *life* is a span in which its bytes matter, and between two lives they do not. A
/// buffer that is written once has one life; one that each iteration of a loop writes anew has one in each iteration.
/// Life A is before life B when every access of A happens before every access of B. Two buffers may share bytes when
/// each two lives of theirs have an order. Sizes are rounded up to the alignment of slots, and so is the size of the
/// arena.
class ArenaProblem {
public:
  static constexpr int64_t alignment = 64;

  struct Call {
    uint8_t lane;
    int32_t position; ///< Among the calls of its lane.
    Clock done;       ///< What is surely done when the call begins.
  };

  struct Life {
    int32_t buffer;
    Clock begins; ///< What is surely done when any access begins.
    Clock ends;   ///< What must be done for all accesses to be.
    /// The last state of the lanes in which no call that comes after this life has begun: at most so many calls each.
    Clock until;
    int32_t first;                        ///< First call that accesses it, in issue order.
    int32_t last;                         ///< Last one.
    int32_t release;                      ///< Last call that does not come after this life.
    llvm::SmallVector<int32_t, 1> starts; ///< The accesses that no other access is before.
  };

  explicit ArenaProblem(unsigned lanes) : byLane(lanes) {}

  /// Adds a call behind those issued before; it happens after `waits` too. Returns its number.
  int32_t addCall(unsigned lane, llvm::ArrayRef<int32_t> waits = {});
  /// All calls added later happen after `waits`.
  void addFence(llvm::ArrayRef<int32_t> waits);

  int32_t addBuffer(int64_t bytes, llvm::StringRef name = {});
  /// From the first to the last of these calls, in whatever order they run. No accesses: nothing is added.
  void addLife(int32_t buffer, llvm::ArrayRef<int32_t> accesses);

  /// Lists the conflicts. To be called once, when all is added and before what follows is used.
  void finalize();

  unsigned getNumLanes() const { return byLane.size(); }
  int64_t getNumBuffers() const { return sizes.size(); }
  /// Rounded up.
  int64_t getBytes(int32_t buffer) const { return sizes[buffer]; }
  int64_t getExactBytes(int32_t buffer) const { return exactSizes[buffer]; }
  int64_t getTotalBytes() const;
  llvm::StringRef getName(int32_t buffer) const { return names[buffer]; }
  llvm::ArrayRef<Call> getCalls() const { return calls; }
  /// The calls of a lane, in order.
  llvm::ArrayRef<int32_t> getLane(unsigned lane) const { return byLane[lane]; }
  llvm::ArrayRef<Life> getLives() const { return lives; }
  /// The call happens before the other.
  bool isBefore(int32_t call, int32_t other) const {
    return calls[call].position < calls[other].done[calls[call].lane];
  }
  static bool isBefore(const Life &a, const Life &b) { return isAtMost(a.ends, b.begins); }
  /// May not share bytes with `buffer`.
  void forEachConflict(int32_t buffer, llvm::function_ref<void(int32_t)> visit) const;
  int64_t getNumConflicts() const { return neighbours.size() / 2; }

  /// First and last call between which the buffer is in use, its lives taken together.
  int32_t getFirst(int32_t buffer) const { return firsts[buffer]; }
  int32_t getRelease(int32_t buffer) const { return releases[buffer]; }

  /// The end of the highest buffer.
  int64_t getArenaBytes(llvm::ArrayRef<int64_t> offsets) const;
  /// Looks at every pair of buffers, one after the other: for tests. An empty string when all is well.
  std::string check(llvm::ArrayRef<int64_t> offsets) const;

private:
  template <typename Fn>
  void forEachOverlap(Fn visit) const;

  std::vector<Call> calls;
  std::vector<std::vector<int32_t>> byLane;
  Clock floor = {};
  std::vector<int64_t> sizes, exactSizes;
  std::vector<std::string> names;
  std::vector<Life> lives;
  std::vector<int32_t> firsts, releases;
  std::vector<int64_t> starts;     ///< Where the conflicts of a buffer start in `neighbours`.
  std::vector<int32_t> neighbours; ///< Empty when there are too many to list.
  bool isListed = false;
};

} // namespace mlir::plateau::planning

#endif // PLATEAU_PLANNING_ARENAPROBLEM_H
