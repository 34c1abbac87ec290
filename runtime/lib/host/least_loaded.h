//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which rank computes which of an expert's rows. Whole numbers alone, so that all ranks come to the same plan.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_LEAST_LOADED_H
#define PLATEAU_RUNTIME_HOST_LEAST_LOADED_H

#include "plateau/runtime.h"

namespace plateau::rt::host {

/// The rows of an expert, of all ranks, are one list: by source rank, then token, then slot. A piece of it goes to an
/// expert slot of a rank, and ends where the next one begins.
struct Piece {
  int64_t end;
  int32_t rank, slot;
};

/// In the caller's memory.
struct Assignment {
  /// At most 2 · experts + ranks · helper_slots. Those of an expert follow each other, and the last one ends where its
  /// list does, or later.
  Piece *pieces;
  int32_t *firstPiece; ///< [experts]: not for one without rows.
  int32_t *helped;     ///< [ranks, helper_slots]: the expert of a slot, −1 for none.
};

struct AssignmentScratch {
  int64_t *loads, *order;      ///< [experts]
  int64_t *assigned, *pending; ///< [ranks]
};

/// All of an expert's rows go to its own rank.
void assignToOwners(int64_t ranks, const plr_plan_shape &shape, const Assignment &result);

/// The least-loaded plan for scratch.loads[e] rows of each expert. What a rank has above alpha times the mean goes to
/// the ranks that have least, unless it is few rows. A rank helps with an expert in one of its helper slots; where none
/// is left, the expert's own rank keeps the rows.
void assignLeastLoaded(int64_t ranks, const plr_plan_shape &shape, const Assignment &result,
                       const AssignmentScratch &scratch);

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_LEAST_LOADED_H
