//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "simd.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

template <typename T>
static void rotary(int64_t rows, int64_t heads, int64_t half, bool inverse, const T *input, const float *cos,
                   const float *sin, T *result) {
  Vec sign = broadcast(inverse ? -1.0f : 1.0f);
  for (int64_t row = 0; row < rows; ++row, cos += half, sin += half)
    for (int64_t head = 0; head < heads; ++head, input += 2 * half, result += 2 * half)
      forEachVector(half, [&](int64_t j, int64_t count) {
        Vec a = load(input + j, count), b = load(input + half + j, count);
        Vec c = load(cos + j, count), s = sign * load(sin + j, count);
        store(result + j, a * c - b * s, count);
        store(result + half + j, b * c + a * s, count);
      });
}

void rotary(plr_type type, int64_t rows, int64_t heads, int64_t half, bool inverse, const void *input, const float *cos,
            const float *sin, void *result) {
  if (type == PLR_BF16)
    rotary(rows, heads, half, inverse, static_cast<const BF16 *>(input), cos, sin, static_cast<BF16 *>(result));
  else
    rotary(rows, heads, half, inverse, static_cast<const float *>(input), cos, sin, static_cast<float *>(result));
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
