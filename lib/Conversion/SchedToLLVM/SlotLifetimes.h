//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// When the slots of a program are first and last used: for memory from a pool.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_CONVERSION_SCHEDTOLLVM_SLOTLIFETIMES_H
#define PLATEAU_LIB_CONVERSION_SCHEDTOLLVM_SLOTLIFETIMES_H

#include "plateau/Dialect/Sched/IR/Sched.h"

namespace mlir::plateau {

class SlotLifetimes {
public:
  explicit SlotLifetimes(sched::ProgramOp program);

  /// Slots that `op`, or an op in its regions, is the first to use of all ops of the slot's block; likewise the last.
  ArrayRef<sched::SlotOp> getBegun(Operation *op) const { return get(begun, op); }
  ArrayRef<sched::SlotOp> getEnded(Operation *op) const { return get(ended, op); }

  /// Whether the slot is a table of a plan, which the runtime makes by itself where there is a pool.
  bool isPlan(sched::SlotOp slot) const { return planSlots.contains(slot); }

private:
  using Map = llvm::DenseMap<Operation *, SmallVector<sched::SlotOp, 2>>;
  static ArrayRef<sched::SlotOp> get(const Map &map, Operation *op) {
    auto it = map.find(op);
    return it == map.end() ? ArrayRef<sched::SlotOp>() : ArrayRef(it->second);
  }

  Map begun, ended;
  llvm::DenseSet<Operation *> planSlots;
};

} // namespace mlir::plateau

#endif // PLATEAU_LIB_CONVERSION_SCHEDTOLLVM_SLOTLIFETIMES_H
