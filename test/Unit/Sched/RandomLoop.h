//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Programs with one loop that may be overlapped, drawn from a seed.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_SCHED_RANDOMLOOP_H
#define PLATEAU_TEST_UNIT_SCHED_RANDOMLOOP_H

#include <cstdint>
#include <string>

namespace mlir::plateau::sched {

struct RandomLoopOptions {
  int64_t inFlight = 2, stages = 2, trips = 5, from = 0;
  /// Slots that are written and read in two parts. Without, all that an iteration writes to a slot is read in the last
  /// stage that touches it.
  bool hasParts = true;
  /// Any stage may use what the loop carries and any part of an output, so that most loops cannot be overlapped.
  bool hasConflicts = false;
};

/// The body of a program on lanes compute, comm and h2d, with the tag `#t`.
std::string drawLoop(uint64_t seed, const RandomLoopOptions &options);

} // namespace mlir::plateau::sched

#endif // PLATEAU_TEST_UNIT_SCHED_RANDOMLOOP_H
