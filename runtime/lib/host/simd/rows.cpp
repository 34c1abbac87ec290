//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "blocked_sum.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

template <typename T>
static void scaleRows(int64_t rows, int64_t columns, const T *input, const float *factors, T *result) {
  for (int64_t row = 0; row < rows; ++row, input += columns, result += columns)
    forEachVector(columns,
                  [&](int64_t j, int64_t count) { store(result + j, load(input + j, count) * factors[row], count); });
}

template <typename T>
static void rowDot(int64_t rows, int64_t columns, const T *a, const T *b, float *result) {
  for (int64_t row = 0; row < rows; ++row, a += columns, b += columns)
    result[row] =
        blockedSum(columns, [&](int64_t j, int64_t count) { return load(a + j, count) * load(b + j, count); });
}

// Four rows at a time, for fewer loads and stores of the sums; each is still added by itself, in order.
template <typename T>
static void columnSums(int64_t rows, int64_t columns, const T *input, float *sums) {
  for (; rows >= 4; rows -= 4, input += 4 * columns)
    forEachVector(columns, [&](int64_t j, int64_t n) {
      Vec value = load(sums + j, n);
      for (int64_t i = 0; i < 4; ++i)
        value += load(input + i * columns + j, n);
      store(sums + j, value, n);
    });
  for (; rows > 0; --rows, input += columns)
    forEachVector(columns, [&](int64_t j, int64_t n) { store(sums + j, load(sums + j, n) + load(input + j, n), n); });
}

template <typename T>
static void roundSums(int64_t count, bool accumulate, const float *sums, T *result) {
  forEachVector(count, [&](int64_t i, int64_t n) {
    Vec value = load(sums + i, n);
    store(result + i, accumulate ? load(result + i, n) + value : value, n);
  });
}

void scaleRows(plr_type type, int64_t rows, int64_t columns, const void *input, const float *factors, void *result) {
  if (type == PLR_BF16)
    scaleRows(rows, columns, static_cast<const BF16 *>(input), factors, static_cast<BF16 *>(result));
  else
    scaleRows(rows, columns, static_cast<const float *>(input), factors, static_cast<float *>(result));
}

void rowDot(plr_type type, int64_t rows, int64_t columns, const void *a, const void *b, float *result) {
  if (type == PLR_BF16)
    rowDot(rows, columns, static_cast<const BF16 *>(a), static_cast<const BF16 *>(b), result);
  else
    rowDot(rows, columns, static_cast<const float *>(a), static_cast<const float *>(b), result);
}

void columnSums(plr_type type, int64_t rows, int64_t columns, const void *input, float *sums) {
  if (type == PLR_BF16)
    columnSums(rows, columns, static_cast<const BF16 *>(input), sums);
  else
    columnSums(rows, columns, static_cast<const float *>(input), sums);
}

void roundSums(plr_type type, int64_t count, bool accumulate, const float *sums, void *result) {
  if (type == PLR_BF16)
    roundSums(count, accumulate, sums, static_cast<BF16 *>(result));
  else
    roundSums(count, accumulate, sums, static_cast<float *>(result));
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
