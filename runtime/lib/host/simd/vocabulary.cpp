//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "simd.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

/// Sum over j < columns of term(j, count): f32 inside blocks of a fixed number of columns, the blocks in double. `term`
/// gives zero in lanes past `count`.
template <typename Term>
static double blockedSum(int64_t columns, Term term) {
  constexpr int64_t block = 64 * lanes;
  double total = 0;
  for (int64_t begin = 0; begin < columns; begin += block) {
    int64_t end = begin + block < columns ? begin + block : columns;
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

static float largest(int64_t columns, const float *input) {
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

// A NaN in a row is passed over by the maximum and then makes the sum, and so the whole row, NaN.
void logSoftmax(int64_t rows, int64_t columns, const float *input, float *result) {
  for (int64_t row = 0; row < rows; ++row, input += columns, result += columns) {
    float top = largest(columns, input);
    // The exponentials keep the processor busy, not the memory: it fetches the next row meanwhile.
    const float *next = row + 1 < rows ? input + columns : input;
    double total = blockedSum(columns, [&](int64_t j, int64_t count) {
      __builtin_prefetch(next + j);
      return exponential(load(input + j, count, -infinity) - top);
    });
    float logTotal = float(__builtin_log(total));
    forEachVector(columns, [&](int64_t j, int64_t count) {
      store(result + j, (load(input + j, count) - top) - logTotal, count);
    });
  }
}

void logSoftmaxGrad(int64_t rows, int64_t columns, const float *cotangent, const float *output, float *result) {
  for (int64_t row = 0; row < rows; ++row, cotangent += columns, output += columns, result += columns) {
    float total = float(blockedSum(columns, [&](int64_t j, int64_t count) { return load(cotangent + j, count); }));
    forEachVector(columns, [&](int64_t j, int64_t count) {
      store(result + j, load(cotangent + j, count) - exponential(load(output + j, count)) * total, count);
    });
  }
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
