//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The least-loaded plan: which rows of which expert go to which rank. Whole numbers in, whole numbers out.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_LEASTLOADED_H
#define PLATEAU_LIB_INTERPRETER_LEASTLOADED_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace mlir::plateau::interpreter {

/// What #moe.least_loaded says.
struct LeastLoadedRule {
  int64_t alphaNumerator, alphaDenominator;
  int64_t minRows;
  int64_t thresholdNumerator, thresholdDenominator;
};

/// Positions `begin` … `end` - 1 of the list of an expert's rows go to `rank`.
struct Piece {
  int64_t rank, begin, end;
};

struct Assignment {
  std::vector<std::vector<Piece>> pieces;   ///< Of each expert, in order; together they are its list.
  std::vector<std::vector<int64_t>> helped; ///< Of each rank and helper slot, the expert that it holds, or −1.
};

/// Each expert's rows all on its own rank.
Assignment assignToOwners(llvm::ArrayRef<int64_t> loads, int64_t ranks, int64_t helperSlots);
/// `loads` are the rows of each expert, of all ranks. Experts divide evenly over ranks.
Assignment assignLeastLoaded(llvm::ArrayRef<int64_t> loads, int64_t ranks, int64_t helperSlots,
                             const LeastLoadedRule &rule);

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_LEASTLOADED_H
