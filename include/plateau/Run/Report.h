//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A page that shows where the memory of a planned step has its peak, and what makes it.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_REPORT_H
#define PLATEAU_RUN_REPORT_H

#include "plateau/Run/PlannedMemory.h"
#include "plateau/Run/StepCalls.h"

namespace mlir::plateau::run {

/// What the page says besides what stands in the program.
struct ReportFacts {
  std::string input; ///< The module's name.
  int ranks = 1;
  std::optional<int64_t> step;                           ///< The one that `spans` are of; none before the first.
  std::array<std::optional<int64_t>, PLR_SPACES> limits; ///< Budgets of a rank.
  MemorySummary memory;
};

/// Writes the page: one HTML file that needs nothing else. `spans` are those of rank 0 in the step, or empty.
llvm::Error writeReport(llvm::StringRef path, const StepCalls &calls, llvm::ArrayRef<plr_span> spans,
                        const ReportFacts &facts);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_REPORT_H
