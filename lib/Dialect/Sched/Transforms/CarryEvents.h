//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Events of calls in other iterations, as values.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_SCHED_TRANSFORMS_CARRYEVENTS_H
#define PLATEAU_LIB_DIALECT_SCHED_TRANSFORMS_CARRYEVENTS_H

#include "plateau/Dialect/Sched/IR/Sched.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::plateau::sched {

/// Makes loops carry the events of their calls. First all that is needed is named, then the loops are built anew, then
/// the events are there.
class EventCarrier {
public:
  /// Which execution of a call is meant, seen from a later call. With a `body`, of a loop that both are in: the last
  /// one in the iteration of that loop `distance` before. Without: the last one before the later call, which stands
  /// behind the first call or behind a loop with it.
  struct Event {
    Operation *call;
    Block *body = nullptr;
    int64_t distance = 0;
  };

  explicit EventCarrier(ProgramOp program) : program(program) {}

  void require(const Event &event, Operation *user);
  /// Builds the loops anew. Their bodies and the calls stay what they are.
  void carry();
  Value get(const Event &event, Operation *user) const;

private:
  using Key = std::pair<Block *, Operation *>; ///< The body of a loop, and a call in it.

  void requireCarried(Block *body, Operation *call, int64_t distance);
  void requireVisible(Block *block, Operation *call);
  Value getVisible(Block *block, Operation *call) const;
  void rebuild(LoopOp loop);

  ProgramOp program;
  llvm::DenseMap<Key, int64_t> distances;                       ///< The largest that is needed.
  llvm::DenseMap<Block *, SmallVector<Operation *, 4>> carried; ///< By body, in the order in which they were required.
  llvm::DenseMap<Key, SmallVector<Value, 1>> arguments;         ///< By distance - 1.
  llvm::DenseMap<Key, Value> results;
  Value none;
};

} // namespace mlir::plateau::sched

#endif // PLATEAU_LIB_DIALECT_SCHED_TRANSFORMS_CARRYEVENTS_H
