//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// An op in which several ranks take part, and the grids that say which.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_COLLECTIVEOPINTERFACE_H
#define PLATEAU_INTERFACES_COLLECTIVEOPINTERFACE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"

#include "plateau/Interfaces/CollectiveOpInterface.h.inc"

namespace mlir::plateau {

/// A view of the linear rank order as a grid, row-major.
struct Grid {
  SmallVector<int64_t> shape;

  /// The grid of that symbol, seen from `op`; fails, without a message, when there is none.
  static FailureOr<Grid> lookup(Operation *op, FlatSymbolRefAttr symbol);
  /// Number of ranks along `axes`.
  int64_t getSize(ArrayRef<int64_t> axes) const;
  int64_t getRanks() const;
  /// All axes but the last one: the ranks along them hold the same part of a tensor that the last axis divides.
  SmallVector<int64_t> getReplicaAxes() const;
  int64_t getShards() const { return shape.back(); }
};

/// Emits an error at `op`, which divides a tensor or a layer along the last axis of a grid, unless that grid exists and
/// its last axis has `parts` ranks.
LogicalResult verifyShards(Operation *op, FlatSymbolRefAttr symbol, int64_t parts, StringRef code);

} // namespace mlir::plateau

#endif // PLATEAU_INTERFACES_COLLECTIVEOPINTERFACE_H
