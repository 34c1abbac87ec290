//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Plan.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

// The lists one after the other; the type says how long the first two are.
Tensor interpreter::makePlan(const Plan &plan) {
  std::vector<int64_t> elements = plan.helped;
  llvm::append_range(elements, plan.iterations);
  for (const PlanRow &row : plan.rows)
    elements.insert(elements.end(), {row.iteration, row.expert, row.source, row.token, row.slot});
  auto size = static_cast<int64_t>(elements.size());
  return Tensor::make({size}, std::move(elements));
}

Plan interpreter::readPlan(const RankCall &call, PlanValue value) {
  auto elements = call.read<int64_t>(value);
  Plan plan;
  plan.helped = elements.take_front(value.getType().getHelperSlots()).vec();
  elements = elements.drop_front(plan.helped.size());
  plan.iterations = elements.take_front(value.getType().getIterations()).vec();
  elements = elements.drop_front(plan.iterations.size());
  for (; !elements.empty(); elements = elements.drop_front(5))
    plan.rows.push_back({elements[0], elements[1], elements[2], elements[3], elements[4]});
  return plan;
}

FailureOr<int64_t> interpreter::readIteration(const RankCall &call, PlanValue plan, Value index) {
  if (!index)
    return 0;
  int64_t iteration = call.read<int64_t>(index)[0], count = plan.getType().getIterations();
  if (iteration < 0 || iteration >= count)
    return call.fail("names iteration " + Twine(iteration) + ", and the plan has iterations 0 to " + Twine(count - 1));
  return iteration;
}

FailureOr<int64_t> interpreter::readIteration(ArrayRef<RankCall> calls, PlanValue plan, Value index) {
  FailureOr<int64_t> first = readIteration(calls.front(), plan, index);
  if (failed(first) || !index)
    return first;
  for (const RankCall &call : calls)
    if (int64_t other = call.read<int64_t>(index)[0]; other != *first)
      return call.fail("names iteration " + Twine(other) + ", and rank 0 names " + Twine(*first) +
                       ": the ranks do not meet");
  return first;
}

std::vector<PlanRow> interpreter::readRows(const RankCall &call, PlanValue plan, int64_t iteration) {
  std::vector<PlanRow> rows = readPlan(call, plan).rows;
  llvm::erase_if(rows, [&](const PlanRow &row) { return row.iteration != iteration; });
  return rows;
}

FailureOr<std::vector<PlanRow>> interpreter::readRowsFor(const RankCall &call, PlanValue plan, int64_t iteration,
                                                         Value value) {
  std::vector<PlanRow> rows = readRows(call, plan, iteration);
  int64_t given = call.get(value).getShape().front();
  if (given != static_cast<int64_t>(rows.size())) {
    std::string when = plan.getType().getIterations() > 1 ? " in iteration " + std::to_string(iteration) : "";
    return call.fail("has an operand of " + Twine(given) + " rows, and by the plan the rank receives " +
                     Twine(rows.size()) + when);
  }
  return rows;
}

LogicalResult interpreter::checkIds(const RankCall &call, ArrayRef<int64_t> ids, int64_t topK, int64_t experts) {
  for (auto [index, id] : llvm::enumerate(ids))
    if (id < -1 || id >= experts)
      return call.fail("token " + Twine(index / topK) + ", slot " + Twine(index % topK) + " has id " + Twine(id) +
                       ", which is neither -1 nor one of the " + Twine(experts) + " experts");
  return success();
}
