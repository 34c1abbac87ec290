//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// How much scratch memory products need, before there is a context.
#include "host/gemm.h"
#include "host/pieces.h"
#include <array>
#include <initializer_list>

using namespace plateau::rt::host;

static bool isFlag(int32_t value) { return value == 0 || value == 1; }
static bool isType(plr_type type) { return type == PLR_F32 || type == PLR_BF16; }
/// None is negative, and a tensor of any two of them can be addressed.
static bool areSizes(std::initializer_list<int64_t> sizes) {
  int64_t bytes;
  for (int64_t a : sizes)
    for (int64_t b : sizes)
      if (a < 0 || __builtin_mul_overflow(a, b, &bytes) || __builtin_mul_overflow(bytes, int64_t(4), &bytes))
        return false;
  return true;
}
static bool areTypes(plr_gemm_kind kind, plr_type type, plr_type resultType) {
  return (kind == PLR_GEMM_ONEDNN || kind == PLR_GEMM_REFERENCE) && isType(type) && isType(resultType) &&
         (type == PLR_BF16 || resultType == PLR_F32);
}

/// The most of what it is asked about, −1 once the library has no such product.
class Most {
public:
  explicit Most(plr_gemm_kind kind) : kind(kind) {}

  /// The sizes of `shape` are positive.
  void add(const GemmShape &shape) {
    if (kind == PLR_GEMM_REFERENCE || bytes < 0)
      return;
    int64_t one = sizes.get(shape);
    bytes = one < 0 ? one : std::max(bytes, one);
  }
  int64_t get() const { return bytes; }

private:
  plr_gemm_kind kind;
  GemmScratchSizes sizes;
  int64_t bytes = 0;
};

static int64_t runSafely(int64_t (*body)(const GemmShape &, plr_gemm_kind, int64_t), const GemmShape &shape,
                         plr_gemm_kind kind, int64_t maxRows) noexcept {
  try {
    return body(shape, kind, maxRows);
  } catch (const std::exception &) {
    return -1;
  }
}

extern "C" int64_t plr_gemm_workspace_bytes(plr_gemm_kind kind, int32_t transpose_a, int32_t transpose_b,
                                            int32_t accumulate, plr_type type, plr_type result_type, int64_t m,
                                            int64_t n, int64_t k) {
  if (!areTypes(kind, type, result_type) || !isFlag(transpose_a) || !isFlag(transpose_b) || !isFlag(accumulate) ||
      !areSizes({m, n, k}))
    return -1;
  if (m == 0 || n == 0 || k == 0)
    return 0;
  GemmShape shape = {transpose_a != 0, transpose_b != 0, accumulate != 0, type, result_type, m, n, k};
  return runSafely(
      [](const GemmShape &shape, plr_gemm_kind kind, int64_t) {
        Most most(kind);
        most.add(shape);
        return most.get();
      },
      shape, kind, 0);
}

extern "C" int64_t plr_grouped_gemm_workspace_bytes(plr_gemm_kind kind, int32_t transpose_weights, plr_type type,
                                                    int64_t max_rows, int64_t n, int64_t k) {
  if (!areTypes(kind, type, type) || !isFlag(transpose_weights) || !areSizes({max_rows, n, k}))
    return -1;
  if (n == 0 || k == 0)
    return 0;
  GemmShape shape = {false, transpose_weights != 0, false, type, type, 0, n, k};
  return runSafely(
      [](const GemmShape &shape, plr_gemm_kind kind, int64_t maxRows) {
        Most most(kind);
        std::array<bool, Pieces::count> seen = {};
        Pieces::forEachSize(maxRows, [&](int64_t rows, bool) {
          GemmShape piece = shape;
          piece.m = rows;
          bool &known = seen[Pieces::number(rows)];
          if (!known)
            most.add(piece);
          known = true;
        });
        return most.get();
      },
      shape, kind, max_rows);
}

extern "C" int64_t plr_grouped_gemm_grad_workspace_bytes(plr_gemm_kind kind, int32_t accumulate, plr_type type,
                                                         plr_type result_type, int64_t max_rows, int64_t m, int64_t n) {
  if (!areTypes(kind, type, result_type) || !isFlag(accumulate) || !areSizes({max_rows, m, n}))
    return -1;
  if (m == 0 || n == 0 || kind == PLR_GEMM_REFERENCE)
    return 0;
  GemmShape shape = {true, false, accumulate != 0, type, result_type, m, n, 0};
  return runSafely(
      [](const GemmShape &shape, plr_gemm_kind kind, int64_t maxRows) {
        Most most(kind);
        std::array<std::array<bool, Pieces::count>, 2> seen = {};
        Pieces::forEachSize(maxRows, [&](int64_t rows, bool isFirst) {
          GemmShape piece = getSumPiece(shape, rows, isFirst);
          bool &known = seen[piece.accumulate][Pieces::number(rows)];
          if (!known)
            most.add(piece);
          known = true;
        });
        return most.get() < 0 ? most.get() : getSumBytes(shape) + most.get();
      },
      shape, kind, max_rows);
}
