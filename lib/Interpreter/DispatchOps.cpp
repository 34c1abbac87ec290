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

/// rows[r, :] = input[token of r, :] and row_values[r] = values[token of r, slot of r], on the rank r comes from, for
/// the rows of an iteration
template <typename Scalar>
static LogicalResult evaluateDispatch(DispatchOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<int64_t> iteration = readIteration(calls, op.getPlan(), op.getIndex());
  if (failed(getGroups(op, calls)) || failed(iteration))
    return failure();
  int64_t topK = op.getPlan().getType().getTopK();
  for (RankCall &call : calls) {
    std::vector<PlanRow> plan = readRows(call, op.getPlan(), *iteration);
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

/// For each slot [token · top_k + slot] of `rank`, where its row went; rank −1 for a slot that sent none in the
/// iteration.
static std::vector<Destination> findDestinations(CombineOp op, int64_t iteration, int rank, ArrayRef<RankCall> calls) {
  PlanType type = op.getPlan().getType();
  std::vector<Destination> destinations(type.getTokens() * type.getTopK());
  for (const RankCall &call : calls)
    for (auto [index, row] : llvm::enumerate(readRows(call, op.getPlan(), iteration)))
      if (row.source == rank)
        destinations[row.token * type.getTopK() + row.slot] = {call.getRank(), static_cast<int64_t>(index)};
  return destinations;
}

/// Makes `result`, with zeros for the tokens of an iteration and what `init` has for the others, and gives its
/// elements.
template <typename Scalar>
static MutableArrayRef<Scalar> writeOnto(CombineOp op, int64_t iteration, RankCall &call, Value init, Value result) {
  auto elements = call.write<Scalar>(result);
  if (!init)
    return elements;
  llvm::copy(call.read<Scalar>(init), elements.begin());
  Plan plan = readPlan(call, op.getPlan());
  int64_t tokens = op.getPlan().getType().getTokens();
  for (int64_t token = 0; token < tokens; ++token)
    if (int64_t columns = elements.size() / tokens; plan.getIteration(token) == iteration)
      llvm::fill(elements.slice(token * columns, columns), Scalar());
  return elements;
}

/// result[t, :] = Σ rows of the slots of t, in order; values[t, j] = the number of that slot's row, or 0; for the
/// tokens of an iteration
template <typename Scalar>
static LogicalResult evaluateCombine(CombineOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<int64_t> iteration = readIteration(calls, op.getPlan(), op.getIndex());
  if (failed(getGroups(op, calls)) || failed(iteration))
    return failure();
  for (const RankCall &call : calls)
    for (Value value : {Value(op.getRows()), Value(op.getRowValues())})
      if (value && (failed(readRowsFor(call, op.getPlan(), *iteration, value)) || failed(call.checkDefined(value))))
        return failure();
  int64_t topK = op.getPlan().getType().getTopK();
  for (RankCall &call : calls) {
    std::vector<Destination> destinations = findDestinations(op, *iteration, call.getRank(), calls);
    auto slots = static_cast<int64_t>(destinations.size());
    if (op.getRows()) {
      int64_t columns = op.getRows().getType().getDimSize(1);
      auto result = writeOnto<Scalar>(op, *iteration, call, op.getInit(), op.getResult());
      for (int64_t slot = 0; slot < slots; ++slot)
        if (auto [rank, index] = destinations[slot]; rank >= 0) {
          auto row = calls[rank].template read<Scalar>(op.getRows()).slice(index * columns, columns);
          for (int64_t c = 0; c < columns; ++c)
            result[slot / topK * columns + c] += row[c];
        }
    }
    if (op.getRowValues()) {
      auto values = writeOnto<Scalar>(op, *iteration, call, op.getValuesInit(), op.getValues());
      for (int64_t slot = 0; slot < slots; ++slot)
        if (auto [rank, index] = destinations[slot]; rank >= 0)
          values[slot] = calls[rank].template read<Scalar>(op.getRowValues())[index];
    }
  }
  return success();
}

void interpreter::addDispatchOps(OpTable &table) {
  table.add<DispatchOp>(evaluateDispatch<double>, evaluateDispatch<Field>, Access::Moves, Shapes::Routed);
  // What others write a part of is moved, undefined or not; rows are looked at above.
  table.add<CombineOp>(evaluateCombine<double>, evaluateCombine<Field>, Access::Moves, Shapes::Routed);
}
