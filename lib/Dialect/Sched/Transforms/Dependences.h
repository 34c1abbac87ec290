//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which calls memory needs in an order.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_SCHED_TRANSFORMS_DEPENDENCES_H
#define PLATEAU_LIB_DIALECT_SCHED_TRANSFORMS_DEPENDENCES_H

#include "plateau/Analysis/Timeline.h"

namespace mlir::plateau::sched {

/// For each node the nodes that must be done before it begins, since they access the same bytes of a slot or buffer and
/// one of the two writes: of each other lane the last one. Those that these order already, or the lane does, are left
/// out. Slots do not share bytes here: offsets are not looked at.
std::vector<SmallVector<int64_t, 2>> getDependences(const Timeline &timeline);

} // namespace mlir::plateau::sched

#endif // PLATEAU_LIB_DIALECT_SCHED_TRANSFORMS_DEPENDENCES_H
