//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/gemm.h"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

using namespace plateau::rt::host;

// Blocks of operands are widened to f32 and laid out for the inner loop, which keeps a tile of sums in registers. Every
// element still is one chain of products and sums over ascending k, so neither blocks nor instruction sets show in its
// bits. This file is compiled without contraction into fused operations.

namespace {
constexpr int64_t blockRows = 64, blockColumns = 64, blockDepth = 256;

/// Sums, and packed operands with k outermost, padded with zeros up to full blocks.
struct Panels {
  alignas(64) float sums[blockRows * blockColumns];
  alignas(64) float a[blockDepth * blockRows];
  alignas(64) float b[blockDepth * blockColumns];
};
} // namespace

static float load(plr_type type, const void *data, int64_t index) {
  if (type == PLR_F32)
    return static_cast<const float *>(data)[index];
  uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t *>(data)[index]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static void store(plr_type type, void *data, int64_t index, float value) {
  if (type == PLR_F32) {
    static_cast<float *>(data)[index] = value;
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  // To the nearest, ties to even; a NaN stays one.
  bits = std::isnan(value) ? bits | 0x00400000u : bits + 0x7FFFu + (bits >> 16 & 1u);
  static_cast<uint16_t *>(data)[index] = static_cast<uint16_t>(bits >> 16);
}

/// packed[k][i] = source(first + i, firstDepth + k), where source(i, k) lies at i * stride + k * depthStride.
static void pack(float *packed, int64_t width, plr_type type, const void *source, int64_t first, int64_t count,
                 int64_t stride, int64_t firstDepth, int64_t depth, int64_t depthStride) {
  for (int64_t k = 0; k < depth; ++k) {
    float *row = packed + k * width;
    int64_t origin = first * stride + (firstDepth + k) * depthStride;
    for (int64_t i = 0; i < count; ++i)
      row[i] = load(type, source, origin + i * stride);
    std::fill(row + count, row + width, 0.0f);
  }
}

/// One tile of sums: `Rows` rows of `Vectors` vectors of `Width` floats.
template <int Rows, int Vectors, int Width>
static inline __attribute__((always_inline)) void addTile(float *sums, const float *a, const float *b, int64_t depth) {
  typedef float Vector __attribute__((vector_size(Width * sizeof(float))));
  Vector tile[Rows][Vectors];
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Vectors; ++j)
      std::memcpy(&tile[i][j], sums + i * blockColumns + j * Width, sizeof(Vector));
  for (int64_t k = 0; k < depth; ++k) {
    Vector columns[Vectors];
    for (int j = 0; j < Vectors; ++j)
      std::memcpy(&columns[j], b + k * blockColumns + j * Width, sizeof(Vector));
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Vectors; ++j)
        tile[i][j] += a[k * blockRows + i] * columns[j];
  }
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Vectors; ++j)
      std::memcpy(sums + i * blockColumns + j * Width, &tile[i][j], sizeof(Vector));
}

template <int Rows, int Vectors, int Width>
static inline __attribute__((always_inline)) void addBlock(Panels &panels, int64_t rows, int64_t columns,
                                                           int64_t depth) {
  for (int64_t j = 0; j < columns; j += Vectors * Width)
    for (int64_t i = 0; i < rows; i += Rows)
      addTile<Rows, Vectors, Width>(panels.sums + i * blockColumns + j, panels.a + i, panels.b + j, depth);
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void addBlockAvx512(Panels &panels, int64_t rows, int64_t columns,
                                                              int64_t depth) {
  addBlock<8, 2, 16>(panels, rows, columns, depth);
}

__attribute__((target("avx2"))) static void addBlockAvx2(Panels &panels, int64_t rows, int64_t columns, int64_t depth) {
  addBlock<4, 2, 8>(panels, rows, columns, depth);
}
#endif

static void addBlockPlain(Panels &panels, int64_t rows, int64_t columns, int64_t depth) {
  addBlock<4, 2, 4>(panels, rows, columns, depth);
}

using AddBlock = void (*)(Panels &, int64_t, int64_t, int64_t);

static AddBlock chooseAddBlock() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return addBlockAvx512;
  if (__builtin_cpu_supports("avx2"))
    return addBlockAvx2;
#endif
  return addBlockPlain;
}

void plateau::rt::host::referenceGemm(const GemmShape &shape, const void *a, const void *b, void *c) {
  static const AddBlock add = chooseAddBlock();
  const int64_t rowStride = shape.transposeA ? 1 : shape.k, rowDepthStride = shape.transposeA ? shape.m : 1;
  const int64_t columnStride = shape.transposeB ? shape.k : 1, columnDepthStride = shape.transposeB ? 1 : shape.n;
  Panels panels;
  for (int64_t i = 0; i < shape.m; i += blockRows) {
    int64_t rows = std::min(blockRows, shape.m - i);
    for (int64_t j = 0; j < shape.n; j += blockColumns) {
      int64_t columns = std::min(blockColumns, shape.n - j);
      std::fill(std::begin(panels.sums), std::end(panels.sums), 0.0f);
      for (int64_t k = 0; k < shape.k; k += blockDepth) {
        int64_t depth = std::min(blockDepth, shape.k - k);
        pack(panels.a, blockRows, shape.type, a, i, rows, rowStride, k, depth, rowDepthStride);
        pack(panels.b, blockColumns, shape.type, b, j, columns, columnStride, k, depth, columnDepthStride);
        add(panels, rows, columns, depth);
      }
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          int64_t index = (i + row) * shape.n + j + column;
          float sum = panels.sums[row * blockColumns + column];
          store(shape.resultType, c, index, shape.accumulate ? load(shape.resultType, c, index) + sum : sum);
        }
    }
  }
}
