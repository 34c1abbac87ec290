//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What takes the place of the ops on rows of a group.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHLOOP_H
#define PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHLOOP_H

#include "PipelineDispatchGroups.h"

namespace mlir::plateau::moe {

/// Puts a loop over the iterations of the plan, whose type is the new one, in the place of a group's sinks. The other
/// ops of the group are left for eraseUnusedRows.
LogicalResult buildDispatchLoop(const DispatchGroup &group, FlatSymbolRefAttr grid, int64_t inFlight);

/// The same for a plan of one iteration: only helpers are added, where the ops stand. `done` has ops that an earlier
/// group has taken care of.
void addHelpers(const DispatchGroup &group, FlatSymbolRefAttr grid, llvm::SmallDenseSet<Operation *> &done);

/// Erases ops on rows that nothing reads.
void eraseUnusedRows(Block &block);

} // namespace mlir::plateau::moe

#endif // PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHLOOP_H
