//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_SCHEDOPS_TD
#define PLATEAU_DIALECT_SCHED_IR_SCHEDOPS_TD

include "plateau/Dialect/Sched/IR/MemoryOps.td"
include "plateau/Dialect/Sched/IR/ControlOps.td"
include "plateau/Dialect/Sched/IR/LaneOps.td"

#endif // PLATEAU_DIALECT_SCHED_IR_SCHEDOPS_TD
