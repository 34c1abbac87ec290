//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Random programs with loops, rings and lanes: each read names who wrote last.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_SCHED_RANDOMPROGRAM_H
#define PLATEAU_TEST_UNIT_SCHED_RANDOMPROGRAM_H

#include <string>

namespace mlir::plateau::sched {

/// The body of a program without waits, on lanes compute, comm, h2d and d2h. `#t` is a tag.
std::string makeRandomProgram(unsigned seed);

} // namespace mlir::plateau::sched

#endif // PLATEAU_TEST_UNIT_SCHED_RANDOMPROGRAM_H
