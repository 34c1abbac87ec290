//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which leaves of tokens an iteration takes. Whole numbers alone, so that all ranks cut alike.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_CHUNK_CUT_H
#define PLATEAU_RUNTIME_HOST_CHUNK_CUT_H

#include "plateau/runtime.h"

namespace plateau::rt::host {

/// In the caller's memory, [chunks · leaves] each. An iteration has the leaves firstLeaf, firstLeaf + chunks, … of one
/// chunk, leafCount in all.
struct Cut {
  int32_t *firstLeaf, *leafCount; ///< Of an iteration.
  int32_t *iterationOf;           ///< Of a leaf.
};

/// Where a leaf has most rows.
struct FullestLeaf {
  int64_t leaf = 0, rank = 0, rows = 0;
};

/// The most that a rank receives of one leaf: the smallest capacity. rows[chunks · leaves, ranks] are those of all
/// ranks.
FullestLeaf findFullestLeaf(int64_t ranks, const plr_plan_shape &shape, const int64_t *rows);

/// Goes through the chunks and the leaves of each in order, and begins an iteration when a rank would receive more rows
/// than the capacity, which is 0 (there is none) or holds each leaf. Returns the number of iterations; those behind
/// have no leaves. sums[ranks] is scratch memory.
int64_t cutIntoIterations(int64_t ranks, const plr_plan_shape &shape, const int64_t *rows, const Cut &cut,
                          int64_t *sums);

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_CHUNK_CUT_H
