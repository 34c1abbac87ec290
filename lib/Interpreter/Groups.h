//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which ranks take part in a collective with which.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_GROUPS_H
#define PLATEAU_LIB_INTERPRETER_GROUPS_H

#include "Evaluator.h"

namespace mlir::plateau::interpreter {

/// Ranks of one group, ascending.
using Group = SmallVector<int>;

/// The groups of a collective op; each rank of `calls` is in one. Fails when the grid is not one of those ranks.
FailureOr<SmallVector<Group>> getGroups(Operation *op, ArrayRef<RankCall> calls);

/// The groups of ranks along the last axis of a grid, which hold the shards of a tensor. Without a grid each rank has
/// the tensor for itself, and is a group of its own.
FailureOr<SmallVector<Group>> getShardGroups(Operation *op, FlatSymbolRefAttr symbol, ArrayRef<RankCall> calls);

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_GROUPS_H
