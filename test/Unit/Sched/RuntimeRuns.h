//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A random program on the runtime, its lanes in an order drawn from a seed.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_SCHED_RUNTIMERUNS_H
#define PLATEAU_TEST_UNIT_SCHED_RUNTIMERUNS_H

#include "RandomSchedule.h"
#include <cstdint>

namespace mlir::plateau::sched {

/// Whether a call found bytes whose last writer is not the one that it names. Each unit of memory holds the number of
/// the call that wrote it last, which is also how freed bytes are poisoned: whoever comes next writes all of its place.
bool readsWrongOnRuntime(const RandomSchedule &program, uint64_t seed);

} // namespace mlir::plateau::sched

#endif // PLATEAU_TEST_UNIT_SCHED_RUNTIMERUNS_H
