//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Runs of a program in every order that its lanes allow.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_SCHED_SIMULATOR_H
#define PLATEAU_TEST_UNIT_SCHED_SIMULATOR_H

#include "RandomSchedule.h"

namespace mlir::plateau::sched {

/// What the runs of a program show.
struct Runs {
  bool hasRace = false;             ///< Two calls run at a time, and one writes what the other accesses.
  bool hasRaceInside = false;       ///< A call overwrites what it also reads or writes, and not in place.
  bool hasEarlyHostRead = false;    ///< The host reads a table while a call that writes those bytes is not done.
  bool hasUnfencedTable = false;    ///< ... and that call is the one that is named.
  bool hasWrongReadInOrder = false; ///< With calls one after the other, as issued.
  bool hasWrongRead = false;        ///< In any order in which calls run one at a time.
  bool isComplete = true;           ///< All orders were seen.
};

/// Explores all states; for `hasWrongRead` at most `mostStates`, of positions and contents of memory.
Runs simulate(const RandomSchedule &program, size_t mostStates);

} // namespace mlir::plateau::sched

#endif // PLATEAU_TEST_UNIT_SCHED_SIMULATOR_H
