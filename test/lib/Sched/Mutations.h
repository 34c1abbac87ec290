//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Ways to break a program, and the judgement of each by other means than the checkers'.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_LIB_SCHED_MUTATIONS_H
#define PLATEAU_TEST_LIB_SCHED_MUTATIONS_H

#include "plateau/Analysis/Order.h"
#include <functional>
#include <string>

namespace mlir::plateau::sched::test {

/// A change of a program that can be taken back.
struct Mutation {
  std::string text;
  std::function<void()> apply, undo;
  Operation *first, *second; ///< Ops that a diagnostic of the change should name; see the class.
};

/// Each event that a call or a fence waits for, left out. `first` waits.
std::vector<Mutation> getDroppedWaits(ProgramOp program);
/// Each ring with one place less. `first` is the slot.
std::vector<Mutation> getShrunkRings(ProgramOp program);
/// Each slot moved to the offset of each other slot of its space: of all `total` about `most`, evenly spread (0: all).
/// `first` is moved onto `second`.
std::vector<Mutation> getMovedSlots(ProgramOp program, int64_t most, int64_t &total);
/// Each slot that starts where another one ends, while both are live in issue order, moved down by one alignment: onto
/// the end of the other. `first` is moved onto `second`.
std::vector<Mutation> getLoweredSlots(ProgramOp program, const Timeline &timeline);
/// Each two neighbours among the collectives of a block in each other's place, where their operands allow it.
/// `numImpossible` counts the others.
std::vector<Mutation> getSwappedCollectives(ProgramOp program, int64_t &numImpossible);

/// Whether the bytes of the slot see a wrong access, by looking at all pairs: two that overlap, one a write, are not
/// ordered or belong to one call (but for updates in place); or a write comes, in issue order, between a read and the
/// writer that it names, or that writer did not write what is read.
bool isWrong(const Timeline &timeline, const Order &order, SlotOp slot);

} // namespace mlir::plateau::sched::test

#endif // PLATEAU_TEST_LIB_SCHED_MUTATIONS_H
