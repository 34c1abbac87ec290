//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Makes plans: the loads of all ranks say which rank computes a row, and the rows of all ranks in which iteration.
//===----------------------------------------------------------------------===//

#include "ChunkCut.h"
#include "Groups.h"
#include "LeastLoaded.h"
#include "Plan.h"
#include <tuple>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

/// Rows of each expert, of all ranks of a group.
static std::vector<int64_t> countLoads(PlanOp op, const Group &group, ArrayRef<RankCall> calls) {
  std::vector<int64_t> loads(op.getPlan().getType().getExperts());
  for (int source : group)
    for (int64_t id : calls[source].read<int64_t>(op.getIds()))
      if (id >= 0)
        ++loads[id];
  return loads;
}

static Assignment assign(PlanOp op, ArrayRef<int64_t> loads) {
  PlanType type = op.getPlan().getType();
  std::optional<LeastLoadedAttr> balance = op.getBalance();
  if (!balance)
    return assignToOwners(loads, type.getRanks(), type.getHelperSlots());
  return assignLeastLoaded(loads, type.getRanks(), type.getHelperSlots(),
                           {balance->getAlphaNumerator(), balance->getAlphaDenominator(), balance->getMinRows(),
                            balance->getThresholdNumerator(), balance->getThresholdDenominator()});
}

/// The rows that each member of a group receives, without their iterations, in the order of their sources.
static std::vector<std::vector<PlanRow>> findRows(PlanOp op, const Group &group, const Assignment &assignment,
                                                  ArrayRef<RankCall> calls) {
  PlanType type = op.getPlan().getType();
  std::vector<std::vector<PlanRow>> rows(group.size());
  std::vector<int64_t> positions(type.getExperts()); // in the list of each expert
  for (int source : group)
    for (auto [index, expert] : llvm::enumerate(calls[source].read<int64_t>(op.getIds()))) {
      if (expert < 0)
        continue;
      int64_t position = positions[expert]++;
      auto piece = llvm::find_if(assignment.pieces[expert],
                                 [&](const Piece &part) { return part.begin <= position && position < part.end; });
      int64_t expertSlot = expert - piece->rank * type.getLocalExperts();
      if (piece->rank != expert / type.getLocalExperts()) {
        const std::vector<int64_t> &helped = assignment.helped[piece->rank];
        expertSlot = type.getLocalExperts() + (llvm::find(helped, expert) - helped.begin());
      }
      auto slot = static_cast<int64_t>(index);
      rows[piece->rank].push_back({0, expertSlot, source, slot / type.getTopK(), slot % type.getTopK()});
    }
  return rows;
}

static LogicalResult checkCapacity(const LeafRows &leafRows, int64_t capacity, const Group &group,
                                   ArrayRef<RankCall> calls) {
  int64_t most = 0, fullLeaf = 0, receiver = 0;
  for (auto [leaf, rows] : llvm::enumerate(leafRows))
    for (auto [member, count] : llvm::enumerate(rows))
      if (count > most)
        std::tie(most, fullLeaf, receiver) = std::tuple(count, leaf, group[member]);
  if (capacity == 0 || most <= capacity)
    return success();
  return calls[receiver].fail("receives " + Twine(most) + " rows of leaf " + Twine(fullLeaf) +
                              " alone, which are more than the capacity of " + Twine(capacity) +
                              " rows: a capacity of " + Twine(most) + " holds every leaf");
}

static LogicalResult evaluatePlan(PlanOp op, MutableArrayRef<RankCall> calls) {
  PlanType type = op.getPlan().getType();
  FailureOr<SmallVector<Group>> groups = getGroups(op, calls);
  if (failed(groups))
    return failure();
  for (const RankCall &call : calls)
    if (failed(checkIds(call, call.read<int64_t>(op.getIds()), type.getTopK(), type.getExperts())))
      return failure();
  for (const Group &group : *groups) {
    Assignment assignment = assign(op, countLoads(op, group, calls));
    std::vector<std::vector<PlanRow>> rows = findRows(op, group, assignment, calls);
    LeafRows leafRows(type.getIterations(), std::vector<int64_t>(group.size()));
    for (auto [member, received] : llvm::enumerate(rows))
      for (const PlanRow &row : received)
        ++leafRows[row.token % type.getIterations()][member];
    if (failed(checkCapacity(leafRows, type.getCapacity(), group, calls)))
      return failure();
    std::vector<int64_t> iterations = cutChunks(leafRows, type.getChunks(), type.getCapacity());
    for (auto [member, receiver] : llvm::enumerate(group)) {
      Plan plan = {assignment.helped[member], iterations, rows[member]};
      for (PlanRow &row : plan.rows)
        row.iteration = plan.getIteration(row.token);
      llvm::sort(plan.rows, [](const PlanRow &a, const PlanRow &b) {
        return std::tie(a.iteration, a.expert, a.source, a.token, a.slot) <
               std::tie(b.iteration, b.expert, b.source, b.token, b.slot);
      });
      calls[receiver].set(op.getPlan(), makePlan(plan));
    }
  }
  return success();
}

void interpreter::addPlanOps(OpTable &table) {
  table.add<PlanOp>(evaluatePlan, evaluatePlan, Access::Computes, Shapes::Routed);
}
