//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "simd.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

template <typename T>
static void embeddingSum(int64_t columns, int64_t count, const int32_t *rows, const T *cotangent, T *result,
                         float *__restrict workspace) {
  __builtin_memset(workspace, 0, columns * sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    const T *row = cotangent + rows[i] * columns;
    forEachVector(columns,
                  [&](int64_t j, int64_t n) { store(workspace + j, load(workspace + j, n) + load(row + j, n), n); });
  }
  forEachVector(columns, [&](int64_t j, int64_t n) { store(result + j, load(workspace + j, n), n); });
}

void embeddingSum(plr_type type, int64_t columns, int64_t count, const int32_t *rows, const void *cotangent,
                  void *result, float *workspace) {
  if (type == PLR_BF16)
    embeddingSum(columns, count, rows, static_cast<const BF16 *>(cotangent), static_cast<BF16 *>(result), workspace);
  else
    embeddingSum(columns, count, rows, static_cast<const float *>(cotangent), static_cast<float *>(result), workspace);
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
