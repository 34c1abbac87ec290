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
#include "plateau/Dialect/MoE/IR/MoE.h"

namespace mlir::plateau::interpreter {

/// A row that a rank receives.
struct PlanRow {
  int64_t iteration;
  int64_t expert; ///< Among the expert slots of the rank that receives it: its own experts, then those it helps with.
  int64_t source; ///< The rank it comes from.
  int64_t token, slot;
};

struct Plan {
  std::vector<int64_t> helped;     ///< The expert in each helper slot of the rank, or −1.
  std::vector<int64_t> iterations; ///< The iteration of each leaf of the tokens.
  std::vector<PlanRow> rows;       ///< By iteration, expert slot, source, token and slot.

  int64_t getIteration(int64_t token) const { return iterations[token % iterations.size()]; }
};

using PlanValue = TypedValue<moe::PlanType>;

/// The plan as the value of an SSA value, and back.
Tensor makePlan(const Plan &plan);
Plan readPlan(const RankCall &call, PlanValue plan);

/// The iteration that an op names, 0 when it names none; fails unless the plan has it.
FailureOr<int64_t> readIteration(const RankCall &call, PlanValue plan, Value index);
/// The same for an op in which ranks meet; fails unless all name the same.
FailureOr<int64_t> readIteration(ArrayRef<RankCall> calls, PlanValue plan, Value index);

/// The rows of an iteration.
std::vector<PlanRow> readRows(const RankCall &call, PlanValue plan, int64_t iteration);
/// The same; fails unless `value` has as many rows.
FailureOr<std::vector<PlanRow>> readRowsFor(const RankCall &call, PlanValue plan, int64_t iteration, Value value);

/// Fails unless each id [tokens, top_k] is −1 or an expert.
LogicalResult checkIds(const RankCall &call, ArrayRef<int64_t> ids, int64_t topK, int64_t experts);

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_PLAN_H
