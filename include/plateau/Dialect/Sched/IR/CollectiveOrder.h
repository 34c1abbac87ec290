//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The order of collectives that ranks agree on.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_COLLECTIVEORDER_H
#define PLATEAU_DIALECT_SCHED_IR_COLLECTIVEORDER_H

#include "plateau/Dialect/Sched/IR/Sched.h"

namespace mlir::plateau::sched {

/// Numbers the collectives of the program in the order of its text: what the conversion does, and then only a pass that
/// means to copy or to reorder them. `sched-verify-collectives` holds the text to the numbers.
void numberCollectives(ProgramOp program);

/// A hash of all collectives in order, each with its lane, group, arguments and the loops around it. Ranks whose
/// digests are equal meet in the same calls in the same order; they compare them before they start.
uint64_t getCollectiveDigest(ProgramOp program);

} // namespace mlir::plateau::sched

#endif // PLATEAU_DIALECT_SCHED_IR_COLLECTIVEORDER_H
