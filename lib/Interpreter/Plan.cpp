//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Plan.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

Tensor interpreter::makePlan(ArrayRef<PlanRow> rows) {
  std::vector<int64_t> elements;
  for (const PlanRow &row : rows)
    elements.insert(elements.end(), {row.expert, row.source, row.token, row.slot});
  return Tensor::make({static_cast<int64_t>(rows.size()), 4}, std::move(elements));
}

std::vector<PlanRow> interpreter::readPlan(const RankCall &call, Value plan) {
  std::vector<PlanRow> rows;
  for (auto elements = call.read<int64_t>(plan); !elements.empty(); elements = elements.drop_front(4))
    rows.push_back({elements[0], elements[1], elements[2], elements[3]});
  return rows;
}

FailureOr<std::vector<PlanRow>> interpreter::readPlanFor(const RankCall &call, Value plan, Value value) {
  std::vector<PlanRow> rows = readPlan(call, plan);
  int64_t given = call.get(value).getShape().front();
  if (given != static_cast<int64_t>(rows.size()))
    return call.fail("has an operand of " + Twine(given) + " rows, and by the plan the rank receives " +
                     Twine(rows.size()));
  return rows;
}
