//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The pieces that products over many rows are put together from.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_PIECES_H
#define PLATEAU_RUNTIME_HOST_PIECES_H

#include "host/gemm.h"
#include "plateau/runtime_footprint.h"
#include <algorithm>
#include <cstdint>

namespace plateau::rt::host {

/// The library's products have static sizes, and the rows of an expert differ from step to step. So products over many
/// rows are put together from pieces of few sizes, each of which is made once. Where rows are the result's, their bits
/// do not depend on the piece.
///
/// The sizes: every one up to 64, where the cost of one more piece shows; multiples of 16; and 256 at most.
class Pieces {
public:
  static constexpr int64_t largest = 256, grid = 16, exact = 64;
  static constexpr int64_t count = exact + (largest - exact) / grid;

  /// Rows of the next piece when `rows` > 0 are left.
  static int64_t next(int64_t rows) { return rows <= exact ? rows : std::min(rows, largest) / grid * grid; }
  /// Of the sizes, from 0 on.
  static int64_t number(int64_t rows) { return rows <= exact ? rows - 1 : exact + (rows - exact) / grid - 1; }

  /// body(first, rows) for the pieces of the rows begin ... end − 1.
  template <typename Body>
  static void forEach(int64_t begin, int64_t end, const Body &body) {
    while (begin < end) {
      int64_t rows = next(end - begin);
      body(begin, rows);
      begin += rows;
    }
  }

  /// body(rows, isFirst) for each piece that some number of rows from 1 to `most` has; pieces may come again. More rows
  /// than two of the largest pieces have no others: behind the first piece they are cut like fewer rows.
  template <typename Body>
  static void forEachSize(int64_t most, const Body &body) {
    for (int64_t rows = 1; rows <= std::min(most, 2 * largest); ++rows)
      forEach(0, rows, [&](int64_t first, int64_t size) { body(size, first == 0); });
  }
};

/// The product of a piece of `rows` rows in a sum over the rows of an expert, whose shape is `shape` but for k. The
/// pieces add up in f32: in the result itself, or in scratch memory when the result is bf16.
inline GemmShape getSumPiece(const GemmShape &shape, int64_t rows, bool isFirst) {
  GemmShape piece = shape;
  const bool overwrites = shape.resultType == PLR_BF16 || !shape.accumulate;
  piece.resultType = PLR_F32;
  piece.k = rows;
  piece.accumulate = !isFirst || !overwrites;
  return piece;
}

/// Scratch bytes of that sum.
inline int64_t getSumBytes(const GemmShape &shape) {
  return shape.resultType == PLR_BF16 ? plr_footprint_lines(shape.m * shape.n * 4) : 0;
}

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_PIECES_H
