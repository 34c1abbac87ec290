//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What forward and backward attention share: how rows are cut into blocks, and the forms in which blocks are laid out.
//
// A run is a maximal range of rows that see the same first row. Blocks are cut inside runs and from a run's first
// visible row on, so a document's blocks, and with them the bits of its results, do not depend on what is packed before
// it.
//
// Queries lie along the lanes: scores are kept as [key, query], so that the reductions of a softmax run over whole
// vectors. A strip is as many queries as one panel of `multiply` takes at least once; work that causality masks is
// skipped by strips.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_SIMD_ATTENTIONBLOCKS_H
#define PLATEAU_RUNTIME_HOST_SIMD_ATTENTIONBLOCKS_H

#include "plateau/runtime_footprint.h"
#include "simd.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

constexpr int64_t queryBlock = PLR_ATTENTION_QUERY_BLOCK;
constexpr int64_t keyBlock = PLR_ATTENTION_KEY_BLOCK;
constexpr int64_t strip = PLR_ATTENTION_STRIP;
static_assert(queryBlock % strip == 0 && strip % 32 == 0, "a strip is whole panels of every variant");

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// Calls body(start, begin, end) for each run: rows begin … end − 1 see rows from `start` on.
template <typename Body>
inline void forEachRun(int64_t rows, const int32_t *starts, Body body) {
  for (int64_t begin = 0, end; begin < rows; begin = end) {
    for (end = begin + 1; end < rows && starts[end] == starts[begin];)
      ++end;
    body(int64_t(starts[begin]), begin, end);
  }
}

/// Calls body(start, begin, count) for each block of queries.
template <typename Body>
inline void forEachQueryBlock(int64_t rows, const int32_t *starts, Body body) {
  forEachRun(rows, starts, [&](int64_t start, int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block += queryBlock)
      body(start, block, smaller(queryBlock, end - block));
  });
}

/// The numbers offset, offset + 1, … in the lanes.
inline VecInt numbersFrom(int32_t offset) {
  VecInt numbers;
  for (int i = 0; i < lanes; ++i)
    numbers[i] = offset + i;
  return numbers;
}

typedef float Quad __attribute__((vector_size(16)));

inline Quad loadQuad(const float *source) {
  Quad value;
  __builtin_memcpy(&value, source, sizeof(value));
  return value;
}

inline Quad loadQuad(const BF16 *source) {
  typedef uint16_t Half __attribute__((vector_size(8)));
  typedef uint32_t Bits __attribute__((vector_size(16)));
  Half half;
  __builtin_memcpy(&half, source, sizeof(half));
  return (Quad)(__builtin_convertvector(half, Bits) << 16);
}

inline float loadOne(const float *source) { return *source; }
inline float loadOne(const BF16 *source) {
  uint32_t bits = uint32_t(source->bits) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

/// target[j · targetStride + i] = scale · source[i · sourceStride + j] for i < rows, j < columns.
template <typename T>
inline void transpose(int64_t rows, int64_t columns, const T *source, int64_t sourceStride, float scale, float *target,
                      int64_t targetStride) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const T *from = source + i * sourceStride;
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      Quad a = loadQuad(from + j), b = loadQuad(from + sourceStride + j);
      Quad c = loadQuad(from + 2 * sourceStride + j), d = loadQuad(from + 3 * sourceStride + j);
      Quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      Quad ef = __builtin_shufflevector(a, b, 2, 6, 3, 7), gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      Quad columnsOf[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                           __builtin_shufflevector(ef, gh, 0, 1, 4, 5), __builtin_shufflevector(ef, gh, 2, 3, 6, 7)};
      for (int k = 0; k < 4; ++k) {
        Quad column = columnsOf[k] * scale;
        __builtin_memcpy(target + (j + k) * targetStride + i, &column, sizeof(column));
      }
    }
    for (; j < columns; ++j)
      for (int k = 0; k < 4; ++k)
        target[j * targetStride + i + k] = scale * loadOne(from + k * sourceStride + j);
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      target[j * targetStride + i] = scale * loadOne(source + i * sourceStride + j);
}

/// Queries as strips of [headSize, strip], zero in the lanes past `count`.
template <typename T>
inline void packStrips(int64_t count, int64_t headSize, const T *source, int64_t sourceStride, float scale,
                       int64_t stripSize, float *target) {
  for (int64_t begin = 0; begin < count; begin += strip, target += stripSize) {
    int64_t rows = smaller(strip, count - begin);
    if (rows < strip)
      __builtin_memset(target, 0, headSize * strip * sizeof(float));
    transpose(rows, headSize, source + begin * sourceStride, sourceStride, scale, target, strip);
  }
}

/// Rows in f32, zero in the columns from headSize to `padded`.
template <typename T>
inline void packRows(int64_t count, int64_t headSize, const T *source, int64_t sourceStride, float scale,
                     int64_t padded, float *target) {
  for (int64_t row = 0; row < count; ++row, source += sourceStride, target += padded) {
    forEachVector(headSize, [&](int64_t j, int64_t n) { store(target + j, load(source + j, n) * scale, n); });
    for (int64_t j = headSize; j < padded; ++j)
      target[j] = 0;
  }
}

/// Writes rows of f32 that lie `padded` apart to rows of the working type.
template <typename T>
inline void unpackRows(int64_t count, int64_t headSize, const float *source, int64_t padded, T *target,
                       int64_t targetStride) {
  for (int64_t row = 0; row < count; ++row, source += padded, target += targetStride)
    forEachVector(headSize, [&](int64_t j, int64_t n) { store(target + j, load(source + j, n), n); });
}

/// scores[key, lane] = −inf where the key comes after the query, for a strip whose first query is number `query`, and
/// `count` keys from number `key` on.
inline void maskLaterKeys(int64_t count, int64_t key, int64_t query, float *scores, int64_t stride) {
  for (int64_t j = key > query ? 0 : query - key + 1; j < count; ++j)
    for (int64_t lane = 0; lane < strip; lane += lanes) {
      float *target = scores + j * stride + lane;
      VecInt later = numbersFrom(int32_t(query - key + lane)) < int32_t(j);
      store(target, later ? broadcast(-infinity) : load(target));
    }
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT

#endif // PLATEAU_RUNTIME_HOST_SIMD_ATTENTIONBLOCKS_H
