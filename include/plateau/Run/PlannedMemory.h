//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The memory that a program plans, beside what was observed of it.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_PLANNEDMEMORY_H
#define PLATEAU_RUN_PLANNEDMEMORY_H

#include "plateau/Dialect/Sched/IR/Sched.h"
#include "plateau/runtime.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <optional>

namespace mlir::plateau::run {

/// A space of a rank, in bytes. The planned peak is the arena and the buffers that outlive the step, each rounded up to
/// 64; so is the lower bound, with the least that an arena could have. Unknown ones are none.
struct SpaceMemory {
  std::optional<int64_t> planned, lowerBound, arena;
  int64_t observed = 0;
};

/// How a run went, space by space.
struct MemorySummary {
  std::array<SpaceMemory, PLR_SPACES> spaces;
  /// Large allocations of the process while it ran steps; none when they are not counted.
  std::optional<int64_t> allocationsAfterStart;
  std::optional<int64_t> hostFences; ///< In a step, of a rank.
  /// By how much the process's resident memory, at its highest in a step, passed what it was before the first one: the
  /// arenas of its ranks, and what else a step makes resident.
  std::optional<int64_t> residentGrowth;

  /// For people: what was planned and observed, space by space.
  void print(sched::ProgramOp program, llvm::raw_ostream &os) const;
  /// One JSON object, in a line.
  void printJSON(llvm::raw_ostream &os) const;
};

/// Memory of this process that is resident, and the most of it since resetResidentPeak; none where the system does not
/// say.
std::optional<int64_t> getResidentBytes();
std::optional<int64_t> getResidentPeak();
void resetResidentPeak();

/// What the program plans for each space.
std::array<SpaceMemory, PLR_SPACES> getPlannedMemory(sched::ProgramOp program);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_PLANNEDMEMORY_H
