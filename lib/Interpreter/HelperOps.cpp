//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Weights on their way to the ranks that help with an expert, and gradients on their way back.
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "Hash.h"
#include "Plan.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

/// What a slot without an expert holds: nothing may depend on it.
template <typename Scalar>
static Scalar getPoison();
template <>
double getPoison<double>() {
  return getUndefined<double>();
}
template <>
Field getPoison<Field>() {
  return Hash("slot without an expert").toField();
}

/// result[s, ...] = weights[expert in slot s, ...], on the expert's own rank
template <typename Scalar>
static LogicalResult evaluateMigrate(MigrateExpertsOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<SmallVector<Group>> groups = getGroups(op, calls);
  if (failed(groups))
    return failure();
  int64_t localExperts = op.getPlan().getType().getLocalExperts();
  int64_t size = ShapedType::getNumElements(op.getResult().getType().getShape().drop_front());
  for (const Group &group : *groups)
    for (int helper : group) {
      auto result = calls[helper].template write<Scalar>(op.getResult());
      llvm::fill(result, getPoison<Scalar>());
      for (auto [slot, expert] : llvm::enumerate(readPlan(calls[helper], op.getPlan()).helped))
        if (expert >= 0) {
          auto weights = calls[group[expert / localExperts]].template read<Scalar>(op.getWeights());
          llvm::copy(weights.slice(expert % localExperts * size, size), result.begin() + slot * size);
        }
    }
  return success();
}

/// result[e, ...] = grads[e, ...] + Σ helper_grads[s, ...] of the slots s that hold expert e, ranks in order
template <typename Scalar>
static LogicalResult evaluateReturn(ReturnExpertGradsOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<SmallVector<Group>> groups = getGroups(op, calls);
  if (failed(groups))
    return failure();
  int64_t localExperts = op.getPlan().getType().getLocalExperts();
  int64_t size = ShapedType::getNumElements(op.getResult().getType().getShape().drop_front());
  for (const Group &group : *groups)
    for (auto [member, owner] : llvm::enumerate(group)) {
      auto result = calls[owner].template write<Scalar>(op.getResult());
      llvm::copy(calls[owner].template read<Scalar>(op.getGrads()), result.begin());
      for (int helper : group)
        for (auto [slot, expert] : llvm::enumerate(readPlan(calls[helper], op.getPlan()).helped)) {
          if (expert < 0 || expert / localExperts != static_cast<int64_t>(member))
            continue;
          auto part = calls[helper].template read<Scalar>(op.getHelperGrads()).slice(slot * size, size);
          for (int64_t i = 0; i < size; ++i)
            result[expert % localExperts * size + i] += part[i];
        }
    }
  return success();
}

void interpreter::addHelperOps(OpTable &table) {
  table.add<MigrateExpertsOp>(evaluateMigrate<double>, evaluateMigrate<Field>, Access::Moves, Shapes::Routed);
  table.add<ReturnExpertGradsOp>(evaluateReturn<double>, evaluateReturn<Field>, Access::Computes, Shapes::Routed);
}
