//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Rows between ranks, by a plan.
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "Plan.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

// The ranks of a group on the grid are those of the plan: both are the ranks along the last axis, which are neighbours,
// and the verifiers see to it that there are equally many.

/// rows[r, :] = input[token of r, :] and row_values[r] = values[token of r, slot of r], on the rank r comes from
template <typename Scalar>
static LogicalResult evaluateDispatch(DispatchOp op, MutableArrayRef<RankCall> calls) {
  if (failed(getGroups(op, calls)))
    return failure();
  int64_t topK = op.getPlan().getType().getTopK();
  for (RankCall &call : calls) {
    std::vector<PlanRow> plan = readPlan(call, op.getPlan());
    auto count = static_cast<int64_t>(plan.size());
    if (op.getInput()) {
      int64_t columns = op.getInput().getType().getDimSize(1);
      auto rows = call.write<Scalar>(op.getRows(), {count, columns});
      for (auto [r, row] : llvm::enumerate(plan))
        llvm::copy(calls[row.source].template read<Scalar>(op.getInput()).slice(row.token * columns, columns),
                   rows.begin() + r * columns);
    }
    if (op.getValues()) {
      auto values = call.write<Scalar>(op.getRowValues(), {count});
      for (auto [r, row] : llvm::enumerate(plan))
        values[r] = calls[row.source].template read<Scalar>(op.getValues())[row.token * topK + row.slot];
    }
  }
  return success();
}

namespace {
/// Where the row that a slot sent lies: row `index` of rank `rank`.
struct Destination {
  int rank = -1;
  int64_t index = 0;
};
} // namespace

/// For each slot [token · top_k + slot] of `rank`, where its row went; rank −1 for a slot that sent none.
static std::vector<Destination> findDestinations(CombineOp op, int rank, ArrayRef<RankCall> calls) {
  PlanType type = op.getPlan().getType();
  std::vector<Destination> destinations(type.getTokens() * type.getTopK());
  for (const RankCall &call : calls)
    for (auto [index, row] : llvm::enumerate(readPlan(call, op.getPlan())))
      if (row.source == rank)
        destinations[row.token * type.getTopK() + row.slot] = {call.getRank(), static_cast<int64_t>(index)};
  return destinations;
}

/// result[t, :] = Σ rows of the slots of t, in order; values[t, j] = the number of that slot's row, or 0
template <typename Scalar>
static LogicalResult evaluateCombine(CombineOp op, MutableArrayRef<RankCall> calls) {
  if (failed(getGroups(op, calls)))
    return failure();
  for (const RankCall &call : calls)
    for (Value value : {Value(op.getRows()), Value(op.getRowValues())})
      if (value && failed(readPlanFor(call, op.getPlan(), value)))
        return failure();
  int64_t topK = op.getPlan().getType().getTopK();
  for (RankCall &call : calls) {
    std::vector<Destination> destinations = findDestinations(op, call.getRank(), calls);
    auto slots = static_cast<int64_t>(destinations.size());
    if (op.getRows()) {
      int64_t columns = op.getRows().getType().getDimSize(1);
      auto result = call.write<Scalar>(op.getResult());
      for (int64_t slot = 0; slot < slots; ++slot)
        if (auto [rank, index] = destinations[slot]; rank >= 0) {
          auto row = calls[rank].template read<Scalar>(op.getRows()).slice(index * columns, columns);
          for (int64_t c = 0; c < columns; ++c)
            result[slot / topK * columns + c] += row[c];
        }
    }
    if (op.getRowValues()) {
      auto values = call.write<Scalar>(op.getValues());
      for (int64_t slot = 0; slot < slots; ++slot)
        if (auto [rank, index] = destinations[slot]; rank >= 0)
          values[slot] = calls[rank].template read<Scalar>(op.getRowValues())[index];
    }
  }
  return success();
}

void interpreter::addDispatchOps(OpTable &table) {
  table.add<DispatchOp>(evaluateDispatch<double>, evaluateDispatch<Field>, Access::Moves, Shapes::Routed);
  table.add<CombineOp>(evaluateCombine<double>, evaluateCombine<Field>, Access::Computes, Shapes::Routed);
}
