//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "simd.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

/// A gate and what its sigmoid needs. Far below zero silu and its derivative are nothing beside any other number; the
/// bound keeps e^−gate finite, so that no infinity meets a zero.
struct Gate {
  Vec value, inverse, sigmoid; ///< inverse = e^−value, sigmoid = 1 / (1 + inverse).
  explicit Gate(Vec gate)
      : value(maximum(broadcast(-80.0f), gate)), inverse(exponential(-value)), sigmoid(1.0f / (1.0f + inverse)) {}
};

template <typename T>
static void swiglu(int64_t rows, int64_t columns, const T *input, T *result) {
  for (int64_t row = 0; row < rows; ++row, input += 2 * columns, result += columns)
    forEachVector(columns, [&](int64_t j, int64_t count) {
      Gate gate(load(input + j, count));
      store(result + j, gate.value * gate.sigmoid * load(input + columns + j, count), count);
    });
}

template <typename T>
static void swigluGrad(int64_t rows, int64_t columns, const T *cotangent, const T *input, T *result) {
  for (int64_t row = 0; row < rows; ++row, cotangent += columns, input += 2 * columns, result += 2 * columns)
    forEachVector(columns, [&](int64_t j, int64_t count) {
      Gate gate(load(input + j, count));
      Vec dy = load(cotangent + j, count), up = load(input + columns + j, count);
      // silu' = s·(1 + g·(1 − s)), 1 − s = s·e^−g.
      Vec slope = gate.sigmoid * (1.0f + gate.value * (gate.inverse * gate.sigmoid));
      store(result + j, dy * slope * up, count);
      store(result + columns + j, dy * (gate.value * gate.sigmoid), count);
    });
}

void swiglu(plr_type type, int64_t rows, int64_t columns, const void *input, void *result) {
  if (type == PLR_BF16)
    swiglu(rows, columns, static_cast<const BF16 *>(input), static_cast<BF16 *>(result));
  else
    swiglu(rows, columns, static_cast<const float *>(input), static_cast<float *>(result));
}

void swigluGrad(plr_type type, int64_t rows, int64_t columns, const void *cotangent, const void *input, void *result) {
  if (type == PLR_BF16)
    swigluGrad(rows, columns, static_cast<const BF16 *>(cotangent), static_cast<const BF16 *>(input),
               static_cast<BF16 *>(result));
  else
    swigluGrad(rows, columns, static_cast<const float *>(cotangent), static_cast<const float *>(input),
               static_cast<float *>(result));
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
