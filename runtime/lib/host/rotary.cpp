//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels.h"
#include "simd/variants.h"
#include <cmath>

namespace plateau::rt::host {

void rotaryTable(int64_t rows, int64_t half, double theta, const int32_t *positions, float *cos, float *sin) {
  // Frequencies outside, so that a power is taken once for each; a column of the table is strided, which the sines
  // dwarf.
  for (int64_t j = 0; j < half; ++j) {
    float frequency = static_cast<float>(std::pow(theta, -static_cast<double>(j) / static_cast<double>(half)));
    for (int64_t row = 0; row < rows; ++row) {
      float phase = static_cast<float>(positions[row]) * frequency;
      cos[row * half + j] = static_cast<float>(std::cos(static_cast<double>(phase)));
      sin[row * half + j] = static_cast<float>(std::sin(static_cast<double>(phase)));
    }
  }
}

void rotary(plr_type type, int64_t rows, int64_t heads, int64_t half, bool inverse, const void *input, const float *cos,
            const float *sin, void *result) {
  bestVariant().rotary(type, rows, heads, half, inverse, input, cos, sin, result);
}

} // namespace plateau::rt::host
