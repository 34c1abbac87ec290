//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Sums over a row of f32 numbers.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_SIMD_BLOCKED_SUM_H
#define PLATEAU_RUNTIME_HOST_SIMD_BLOCKED_SUM_H

#include "simd.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

/// Sum over j < columns of term(j, count), the terms of `count` ≤ lanes elements from j on, zero in lanes past `count`.
/// Blocks of a fixed number of columns are summed first and then added up, so that the rounding error does not grow
/// with the row.
template <typename Term>
inline float blockedSum(int64_t columns, Term term) {
  constexpr int64_t block = 16 * lanes;
  Vec total = {};
  for (int64_t begin = 0; begin < columns; begin += block) {
    int64_t end = begin + block < columns ? begin + block : columns;
    Vec even = {}, odd = {};
    int64_t j = begin;
    for (; j + 2 * lanes <= end; j += 2 * lanes) {
      even += term(j, int64_t(lanes));
      odd += term(j + lanes, int64_t(lanes));
    }
    for (; j < end; j += lanes)
      even += term(j, end - j < lanes ? end - j : int64_t(lanes));
    total += even + odd;
  }
  return sum(total);
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT

#endif // PLATEAU_RUNTIME_HOST_SIMD_BLOCKED_SUM_H
