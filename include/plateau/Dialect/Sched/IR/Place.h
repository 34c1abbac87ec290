//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Where a value lies.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_PLACE_H
#define PLATEAU_DIALECT_SCHED_IR_PLACE_H

#include "plateau/Dialect/Sched/IR/Sched.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::plateau::sched {

/// A range of the memory of one slot, buffer, constant or table: bytes [offset + Σ stride·index, … + bytes) of place
/// number (ring + Σ index of ringIndex) mod D.
struct Place {
  /// A part of the offset that grows with the counter of a loop.
  struct Term {
    Value index;
    int64_t strideBytes;
  };

  Value root;              ///< Result of sched.slot, buffer, constant or table.
  int64_t offsetBytes = 0; ///< In the place of the ring.
  int64_t bytes = 0;
  SmallVector<Term, 1> terms;
  int64_t ring = 0; ///< Added to the counter; in 0 ... D - 1.
  Value ringIndex;  ///< Counter of a loop; null when the place is fixed.

  bool operator==(const Place &other) const;

  /// Where the value lies, or what the place is. Looks through views, through what launches write, and through values
  /// that loops carry. Fails without a message when a carried value has no such place (L3).
  static FailureOr<Place> get(Value value);
};

} // namespace mlir::plateau::sched

#endif // PLATEAU_DIALECT_SCHED_IR_PLACE_H
