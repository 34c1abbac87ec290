//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Runs a program in issue order on bytes. A launch writes a hash of its callee, its arguments and what it reads: two
// programs that leave the same bytes did the same calls on the same values.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_SCHED_BYTEINTERPRETER_H
#define PLATEAU_TEST_UNIT_SCHED_BYTEINTERPRETER_H

#include "plateau/Dialect/Sched/IR/Sched.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mlir::plateau::sched {

/// A byte, or -1 where there may be anything.
using Bytes = std::vector<int>;

struct Outcome {
  std::map<int64_t, Bytes> buffers; ///< By number.
  std::vector<Bytes> returned;
  /// Hash of each call with the hashes of the calls it waits for, in order of size.
  std::multiset<std::vector<uint64_t>> calls;
  /// Reads that did not find what the writer they name wrote.
  std::vector<std::string> faults;
};

Outcome interpret(ProgramOp program);

} // namespace mlir::plateau::sched

#endif // PLATEAU_TEST_UNIT_SCHED_BYTEINTERPRETER_H
