//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels.h"
#include "simd/variants.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace plateau::rt::host {

void sumSquares(plr_type type, int64_t segments, const int64_t *ranges, const void *gradients, double *result) {
  constexpr int64_t block = 4096;
  const Variant &variant = bestVariant();
  const char *bytes = static_cast<const char *>(gradients);
  int64_t size = type == PLR_BF16 ? 2 : 4;
  double total = 0;
  for (int64_t segment = 0; segment < segments; ++segment) {
    int64_t offset = ranges[2 * segment], length = ranges[2 * segment + 1];
    for (int64_t begin = 0; begin < length; begin += block)
      total += variant.sumOfSquares(type, std::min(block, length - begin), bytes + (offset + begin) * size);
  }
  *result = total;
}

void gradNorm(int64_t count, const double *const *squares, float *norm) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i)
    total += *squares[i];
  *norm = static_cast<float>(std::sqrt(total));
}

void clipFactor(float maxNorm, const float *norm, float *factor) {
  if (!std::isfinite(*norm))
    *factor = std::numeric_limits<float>::quiet_NaN();
  else if (*norm == 0 || std::isinf(maxNorm))
    *factor = 1;
  else
    *factor = std::min(1.0f, maxNorm / *norm);
}

void adamw(plr_type type, plr_type gradientType, int64_t segments, const int64_t *ranges, double beta1, double beta2,
           double epsilon, double weightDecay, void *parameters, const void *gradients, float *first, float *second,
           float *master, const float *factor, const float *learningRate, const int32_t *step) {
  if (!std::isfinite(*factor))
    return;
  double rate = *learningRate, t = *step;
  AdamWNumbers numbers;
  numbers.factor = *factor;
  numbers.beta1 = static_cast<float>(beta1);
  numbers.rest1 = static_cast<float>(1 - beta1);
  numbers.beta2 = static_cast<float>(beta2);
  numbers.rest2 = static_cast<float>(1 - beta2);
  numbers.rate = static_cast<float>(rate / (1 - std::pow(beta1, t)));
  numbers.correction = static_cast<float>(std::sqrt(1 - std::pow(beta2, t)));
  numbers.epsilon = static_cast<float>(epsilon);

  const Variant &variant = bestVariant();
  int64_t size = type == PLR_BF16 ? 2 : 4, gradientSize = gradientType == PLR_BF16 ? 2 : 4;
  for (int64_t segment = 0; segment < segments; ++segment) {
    int64_t offset = ranges[3 * segment], length = ranges[3 * segment + 1];
    numbers.keep = ranges[3 * segment + 2] ? static_cast<float>(1 - rate * weightDecay) : 1.0f;
    variant.adamw(type, gradientType, length, numbers, static_cast<char *>(parameters) + offset * size,
                  static_cast<const char *>(gradients) + offset * gradientSize, first + offset, second + offset,
                  master ? master + offset : nullptr);
  }
}

} // namespace plateau::rt::host
