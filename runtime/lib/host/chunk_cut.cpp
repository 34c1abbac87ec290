//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/chunk_cut.h"
#include <algorithm>

using namespace plateau::rt::host;

FullestLeaf plateau::rt::host::findFullestLeaf(int64_t ranks, const plr_plan_shape &shape, const int64_t *rows) {
  FullestLeaf result;
  for (int64_t leaf = 0; leaf < shape.chunks * shape.leaves; ++leaf)
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (rows[leaf * ranks + rank] > result.rows)
        result = {leaf, rank, rows[leaf * ranks + rank]};
  return result;
}

int64_t plateau::rt::host::cutIntoIterations(int64_t ranks, const plr_plan_shape &shape, const int64_t *rows,
                                             const Cut &cut, int64_t *sums) {
  const int64_t most = shape.chunks * shape.leaves;
  std::fill(cut.firstLeaf, cut.firstLeaf + most, 0);
  std::fill(cut.leafCount, cut.leafCount + most, 0);
  int64_t iterations = 0;
  for (int64_t chunk = 0; chunk < shape.chunks; ++chunk)
    for (int64_t leaf = chunk; leaf < most; leaf += shape.chunks) {
      const int64_t *ofLeaf = rows + leaf * ranks;
      bool fits = leaf != chunk;
      for (int64_t rank = 0; fits && shape.capacity > 0 && rank < ranks; ++rank)
        fits = sums[rank] + ofLeaf[rank] <= shape.capacity;
      if (!fits) {
        cut.firstLeaf[iterations++] = static_cast<int32_t>(leaf);
        std::fill(sums, sums + ranks, 0);
      }
      ++cut.leafCount[iterations - 1];
      cut.iterationOf[leaf] = static_cast<int32_t>(iterations - 1);
      for (int64_t rank = 0; rank < ranks; ++rank)
        sums[rank] += ofLeaf[rank];
    }
  return iterations;
}
