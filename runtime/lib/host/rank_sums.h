//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Sums over ranks: element by element, in rank order.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_RANK_SUMS_H
#define PLATEAU_RUNTIME_HOST_RANK_SUMS_H

#include "plateau/runtime.h"
#include <algorithm>

namespace plateau::rt::host {

/// Counts of rows, which the runtime alone sums. A type of this kind never comes from a caller.
inline constexpr plr_type countType = 4;
inline constexpr int64_t widthOf(plr_type type) {
  return type == PLR_F64 || type == countType ? 8 : type == PLR_BF16 ? 2 : 4;
}

/// Elements that are summed at a time: their sums lie beside the stack's other data in the first cache.
inline constexpr int64_t sumBlock = 1024;

/// sums[length ≤ sumBlock] of one rank's elements, of the type's type for sums. The first rank's replace what was
/// there.
void addRank(plr_type type, bool first, int64_t length, const void *input, void *sums);
/// Rounds the sums to the type.
void storeSums(plr_type type, int64_t length, const void *sums, void *result);

/// result[length] = the sum over the ranks of input(rank)[length]: bf16 and f32 in f32, f64 in f64, i32 modulo 2^32,
/// counts modulo 2^64. `result` may be one of the inputs.
template <typename Input>
void sumRanks(plr_type type, int32_t ranks, int64_t length, const Input &input, void *result) {
  const int64_t width = widthOf(type);
  alignas(64) double sums[sumBlock];
  for (int64_t i = 0; i < length; i += sumBlock) {
    int64_t block = std::min(sumBlock, length - i);
    for (int32_t rank = 0; rank < ranks; ++rank)
      addRank(type, rank == 0, block, static_cast<const char *>(input(rank)) + i * width, sums);
    storeSums(type, block, sums, static_cast<char *>(result) + i * width);
  }
}

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_RANK_SUMS_H
