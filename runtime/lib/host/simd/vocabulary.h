//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What a vocabulary loss over whole rows and one over tiles share.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_SIMD_VOCABULARY_H
#define PLATEAU_RUNTIME_HOST_SIMD_VOCABULARY_H

#include "plateau/runtime.h"
#include "simd.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

/// Columns that are summed in f32 before the sum goes on in double.
constexpr int64_t sumBlock = 64 * lanes;

/// Sum over j < columns of term(j, count): f32 inside blocks of a fixed number of columns, the blocks in double. `term`
/// gives zero in lanes past `count`.
template <typename Term>
inline double sumInBlocks(int64_t columns, Term term) {
  double total = 0;
  for (int64_t begin = 0; begin < columns; begin += sumBlock) {
    int64_t end = begin + sumBlock < columns ? begin + sumBlock : columns;
    Vec sums[4] = {};
    int64_t j = begin;
    for (; j + 4 * lanes <= end; j += 4 * lanes)
      for (int i = 0; i < 4; ++i)
        sums[i] += term(j + i * lanes, int64_t(lanes));
    for (; j < end; j += lanes)
      sums[0] += term(j, end - j < lanes ? end - j : int64_t(lanes));
    total += sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  return total;
}

/// The largest element, NaN passed over; −inf when there is none.
inline float findLargest(int64_t columns, const float *input) {
  Vec largests[4];
  for (Vec &value : largests)
    value = broadcast(-infinity);
  int64_t j = 0;
  for (; j + 4 * lanes <= columns; j += 4 * lanes)
    for (int i = 0; i < 4; ++i)
      largests[i] = maximum(load(input + j + i * lanes), largests[i]);
  for (; j < columns; j += lanes)
    largests[0] = maximum(load(input + j, columns - j < lanes ? columns - j : int64_t(lanes), -infinity), largests[0]);
  return largest(maximum(maximum(largests[0], largests[1]), maximum(largests[2], largests[3])));
}

/// What is added to raw logits, and what caps them.
struct Shape {
  const float *bias;  ///< Null: nothing.
  float cap, inverse; ///< inverse = 1 / cap; both 0: no cap.

  Shape(const plr_vocabulary &vocabulary, const float *bias)
      : bias(bias), cap(vocabulary.softcap), inverse(cap == 0 ? 0 : 1 / cap) {}

  /// Logits are left as they are.
  bool isPlain() const { return !bias && cap == 0; }
  /// The first `count` lanes of the logits from column j on; the other lanes hold any number.
  Vec apply(const float *row, int64_t j, int64_t count) const {
    Vec slope;
    return cap == 0 ? apply<false>(row, j, count, slope) : apply<true>(row, j, count, slope);
  }
  /// `slope` is the derivative by the raw logits.
  template <bool isCapped>
  Vec apply(const float *row, int64_t j, int64_t count, Vec &slope) const {
    Vec value = load(row + j, count);
    if (bias)
      value += load(bias + j, count);
    if (!isCapped) {
      slope = broadcast(1);
      return value;
    }
    Vec part = hyperbolicTangent(value * inverse);
    slope = (1.0f - part) * (1.0f + part);
    return part * cap;
  }
};

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT

#endif // PLATEAU_RUNTIME_HOST_SIMD_VOCABULARY_H
