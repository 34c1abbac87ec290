//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SlotLifetimes.h"
#include "plateau/Dialect/Sched/IR/Place.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::sched;

SlotLifetimes::SlotLifetimes(ProgramOp program) {
  llvm::MapVector<Operation *, std::pair<Operation *, Operation *>> uses; // In the order of first use.
  auto note = [&](Value value, Operation *op) {
    FailureOr<Place> place = Place::get(value);
    if (failed(place))
      return;
    auto slot = place->root.getDefiningOp<SlotOp>();
    if (!slot)
      return;
    Operation *user = slot->getBlock()->findAncestorOpInBlock(*op);
    auto [it, isNew] = uses.insert({slot, {user, user}});
    it->second.second = user; // The walk is in order.
  };
  program.walk<WalkOrder::PreOrder>([&](LaneOpInterface op) {
    for (OperandRange values : {op.getReads(), op.getTables(), op.getWrites()})
      for (Value value : values)
        note(value, op);
    if (auto collective = dyn_cast<CollectiveOp>(*op); collective && collective.getCallee() == "plr_plan_fill")
      for (Value place : op.getWrites())
        planSlots.insert(place.getDefiningOp());
  });
  for (auto [slot, use] : uses) {
    begun[use.first].push_back(cast<SlotOp>(slot));
    ended[use.second].push_back(cast<SlotOp>(slot));
  }
}
