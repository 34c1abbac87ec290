//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "CarryEvents.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::plateau::sched;

/// The innermost block that both stand in, directly or in loops.
static Block *getCommonBlock(Operation *a, Operation *b) {
  Block *block = a->getBlock();
  while (!block->findAncestorOpInBlock(*b))
    block = block->getParentOp()->getBlock();
  return block;
}

void EventCarrier::requireCarried(Block *body, Operation *call, int64_t distance) {
  auto [entry, isNew] = distances.insert({{body, call}, distance});
  entry->second = std::max(entry->second, distance);
  if (isNew)
    carried[body].push_back(call);
}

/// Each loop between gives the event of its last iteration.
void EventCarrier::requireVisible(Block *block, Operation *call) {
  for (Block *inner = call->getBlock(); inner != block; inner = inner->getParentOp()->getBlock())
    requireCarried(inner, call, 1);
}

void EventCarrier::require(const Event &event, Operation *user) {
  requireVisible(event.body ? event.body : getCommonBlock(event.call, user), event.call);
  if (event.body)
    requireCarried(event.body, event.call, event.distance);
}

/// The event of the last execution before the end of the block.
Value EventCarrier::getVisible(Block *block, Operation *call) const {
  Block *inner = call->getBlock();
  if (inner == block)
    return cast<LaneOpInterface>(call).getEvent();
  while (inner->getParentOp()->getBlock() != block)
    inner = inner->getParentOp()->getBlock();
  return results.at({inner, call});
}

Value EventCarrier::get(const Event &event, Operation *user) const {
  if (event.body)
    return arguments.at({event.body, event.call})[event.distance - 1];
  return getVisible(getCommonBlock(event.call, user), event.call);
}

void EventCarrier::rebuild(LoopOp loop) {
  Block *body = &loop.getBody().front();
  auto calls = carried.find(body);
  if (calls == carried.end())
    return;
  OpBuilder builder(loop);
  if (!none) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&program.getBody().front());
    none = NoEventOp::create(builder, program.getLoc());
  }
  SmallVector<Value> inits(loop.getInits()), yielded(loop.getYield().getValues());
  unsigned numInits = inits.size();
  for (Operation *call : calls->second) {
    SmallVector<Value, 1> &chain = arguments[{body, call}];
    Value next = getVisible(body, call);
    for (int64_t distance = distances.at({body, call}); distance > 0; --distance) {
      inits.push_back(none);
      yielded.push_back(next);
      next = body->addArgument(none.getType(), call->getLoc());
      chain.push_back(next);
    }
  }
  auto created =
      LoopOp::create(builder, loop.getLoc(), ValueRange(inits).getTypes(), loop.getFromAttr(), loop.getToAttr(),
                     loop.getInFlightAttr(), loop.getUntil(), loop.getUntilBehindAttr(), inits);
  created->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  loop.getYield()->setOperands(yielded);
  created.getBody().takeBody(loop.getBody());
  unsigned index = numInits;
  for (Operation *call : calls->second) {
    results[{body, call}] = created.getResult(index);
    index += distances.at({body, call});
  }
  loop->replaceAllUsesWith(created.getResults().take_front(numInits));
  loop.erase();
}

void EventCarrier::carry() {
  SmallVector<LoopOp> loops; // Inner ones first.
  program.walk([&](LoopOp loop) { loops.push_back(loop); });
  for (LoopOp loop : loops)
    rebuild(loop);
}
