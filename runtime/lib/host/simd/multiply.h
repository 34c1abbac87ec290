//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Small matrix products on blocks that lie in the caches, built from a tile of accumulators that the registers hold.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_SIMD_MULTIPLY_H
#define PLATEAU_RUNTIME_HOST_SIMD_MULTIPLY_H

#include "simd.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

/// Rows of a tile, as many as give enough independent sums without running out of registers; a tile has two vectors of
/// columns.
#if defined(__AVX512F__)
constexpr int tileRows = 8;
#else
constexpr int tileRows = 4;
#endif
constexpr int tileVectors = 2;

/// A number of rows that is known when a tile is compiled.
template <int number>
struct Size {
  static constexpr int value = number;
};

/// A matrix whose elements are read one by one: element (m, p) is data[m · stride + p], or data[p · stride + m] when
/// transposed.
template <bool transposed>
struct Left {
  const float *data;
  int64_t stride;
  const float *at(int64_t m, int64_t p) const { return data + (transposed ? p * stride + m : m * stride + p); }
};

/// c[M, N vectors] (+)= a[M, depth] · b[depth, N vectors]. Each element is summed over `depth` in ascending order from
/// zero, so its bits do not depend on which tile it falls into.
template <int M, int N, bool accumulate, bool transposed>
inline void multiplyTile(int64_t depth, Left<transposed> a, const float *b, int64_t strideB, float *c,
                         int64_t strideC) {
  Vec sums[M][N];
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      sums[m][n] = Vec{};
  for (int64_t p = 0; p < depth; ++p) {
    Vec right[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      right[n] = load(b + p * strideB + n * lanes);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      Vec left = broadcast(*a.at(m, p));
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n)
        sums[m][n] = fusedMultiplyAdd(left, right[n], sums[m][n]);
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      float *target = c + m * strideC + n * lanes;
      store(target, accumulate ? load(target) + sums[m][n] : sums[m][n]);
    }
}

template <int N, bool accumulate, bool transposed>
inline void multiplyPanel(int64_t rows, int64_t depth, Left<transposed> a, const float *b, int64_t strideB, float *c,
                          int64_t strideC) {
  int64_t m = 0;
  auto tile = [&](auto size) {
    constexpr int M = decltype(size)::value;
    multiplyTile<M, N, accumulate>(depth, Left<transposed>{a.at(m, 0), a.stride}, b, strideB, c + m * strideC, strideC);
    m += M;
  };
  while (rows - m >= tileRows)
    tile(Size<tileRows>());
  if (tileRows > 4 && rows - m >= 4)
    tile(Size<4>());
  if (rows - m >= 2)
    tile(Size<2>());
  if (rows - m >= 1)
    tile(Size<1>());
}

/// c[rows, columns] (+)= a[rows, depth] · b[depth, columns]; columns is a multiple of `lanes`.
template <bool accumulate, bool transposed>
inline void multiply(int64_t rows, int64_t columns, int64_t depth, Left<transposed> a, const float *b, int64_t strideB,
                     float *c, int64_t strideC) {
  int64_t n = 0;
  for (; columns - n >= tileVectors * lanes; n += tileVectors * lanes)
    multiplyPanel<tileVectors, accumulate>(rows, depth, a, b + n, strideB, c + n, strideC);
  if (columns - n >= lanes)
    multiplyPanel<1, accumulate>(rows, depth, a, b + n, strideB, c + n, strideC);
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT

#endif // PLATEAU_RUNTIME_HOST_SIMD_MULTIPLY_H
