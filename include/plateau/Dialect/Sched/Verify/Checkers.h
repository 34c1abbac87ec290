//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The checkers as functions: what the passes run, and what tests hold to brute force.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_VERIFY_CHECKERS_H
#define PLATEAU_DIALECT_SCHED_VERIFY_CHECKERS_H

#include "plateau/Analysis/Order.h"
#include "plateau/Dialect/Sched/Verify/Faults.h"

namespace mlir::plateau::sched {

/// HZ1 ... HZ3 (docs/proof.md).
FaultList findHazards(const Timeline &timeline, const Order &order);
/// VA1, VA2.
FaultList findWrongValues(const Timeline &timeline);
/// CO2.
FaultList findUnorderedCollectives(const Timeline &timeline, const Order &order);
/// FE1.
FaultList findUnfencedTables(const Timeline &timeline, const Order &order);

/// The same with messages, and with the rules that need no replay.
LogicalResult verifyHazards(ProgramOp program, const Timeline &timeline, const Order &order);
LogicalResult verifyValues(ProgramOp program, const Timeline &timeline);
LogicalResult verifyCollectives(ProgramOp program, const Timeline &timeline, const Order &order);
LogicalResult verifyFences(ProgramOp program, const Timeline &timeline, const Order &order);

/// AR1 ... AR4.
LogicalResult verifyArenas(ProgramOp program);
/// AR5. A negative budget is none.
LogicalResult verifyBudget(ProgramOp program, const Timeline &timeline, int64_t hbmBytes, int64_t hostBytes);

/// What is live in a space at the call where most is.
struct Peak {
  struct Share {
    SlotOp slot;
    int64_t bytes;
    int64_t number; ///< In the order of first use.
  };
  int64_t node = -1; ///< None when the space has no slots.
  int64_t bytes = 0;
  SmallVector<Share> shares; ///< Largest first.
};

/// The most bytes of slots that hold, at one node in issue order, a value that is read there or later, or are written
/// there. They must lie apart, so no packing of this schedule needs less.
Peak getLivePeak(const Timeline &timeline, Space space);

/// A remark: `host_fences: 2`.
void reportFences(ProgramOp program, const Timeline &timeline);

} // namespace mlir::plateau::sched

#endif // PLATEAU_DIALECT_SCHED_VERIFY_CHECKERS_H
