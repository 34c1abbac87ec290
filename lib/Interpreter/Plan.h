//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The value of a plan on a rank: the list of the rows that the rank receives, in their order. Where a rank's own rows
// go is found in the lists of the others.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_PLAN_H
#define PLATEAU_LIB_INTERPRETER_PLAN_H

#include "Evaluator.h"

namespace mlir::plateau::interpreter {

/// A row that a rank receives.
struct PlanRow {
  int64_t expert; ///< Among those of the rank that receives it.
  int64_t source; ///< The rank it comes from.
  int64_t token, slot;
};

/// The plan as the value of an SSA value, and back.
Tensor makePlan(ArrayRef<PlanRow> rows);
std::vector<PlanRow> readPlan(const RankCall &call, Value plan);

/// The rows of a plan; fails unless `value` has as many rows.
FailureOr<std::vector<PlanRow>> readPlanFor(const RankCall &call, Value plan, Value value);

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_PLAN_H
