//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PipelineDispatchPlans.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static void refuse(PlanUses &plan, Operation *op, const Twine &reason) {
  if (!plan.reason.empty())
    return;
  plan.reason = (op->getName().getStringRef() + " " + reason).str();
  plan.place = op->getLoc();
}

/// All names of a plan: it goes into checkpoint regions, and comes out of them.
static void trace(PlanUses &plan) {
  llvm::SetVector<Value> names;
  names.insert(plan.op.getPlan());
  for (size_t next = 0; next < names.size(); ++next) // The set grows.
    for (OpOperand &use : names[next].getUses()) {
      Operation *user = use.getOwner();
      if (auto region = dyn_cast<CheckpointOp>(user))
        names.insert(region.getBody().getArgument(use.getOperandNumber()));
      else if (auto yield = dyn_cast<YieldOp>(user))
        names.insert(yield->getParentOp()->getResult(use.getOperandNumber()));
      else if (!isa<RoutedOpInterface>(user))
        refuse(plan, user, "takes the plan");
    }
  plan.names = names.takeVector();
}

SmallVector<std::unique_ptr<PlanUses>> mlir::plateau::moe::findPlans(FunctionOpInterface function) {
  SmallVector<std::unique_ptr<PlanUses>> plans;
  llvm::DenseMap<Value, PlanUses *> owners;
  function->walk([&](PlanOp op) {
    PlanUses &plan = *plans.emplace_back(std::make_unique<PlanUses>(op));
    trace(plan);
    for (Value name : plan.names)
      owners[name] = &plan;
    PlanType type = op.getPlan().getType();
    if (type.getIterations() > 1 || type.getHelperSlots() > 0 || type.getCapacity() > 0)
      refuse(plan, op, "has iterations, helper slots or a capacity already");
  });

  llvm::MapVector<Block *, SmallVector<DispatchComponent>> blocks;
  function->walk([&](RoutedOpInterface op) { blocks.try_emplace(op->getBlock()); });
  for (auto &[block, components] : blocks)
    components = findComponents(*block, [&](Value name, Operation *op, const Twine &reason) {
      if (PlanUses *plan = owners.lookup(name))
        refuse(*plan, op, reason);
    });
  for (auto &[block, components] : blocks) {
    llvm::erase_if(components, [&](const DispatchComponent &component) {
      PlanUses *plan = owners.lookup(component.plan);
      return !plan || !plan->reason.empty();
    });
    for (DispatchGroup &group : groupSinks(*block, components))
      owners.lookup(group.plan)->groups.push_back(std::move(group));
  }
  return plans;
}
