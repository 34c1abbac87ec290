//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "simd.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

typedef float HalfVec __attribute__((vector_size(lanes / 2 * sizeof(float))));
typedef double VecDouble __attribute__((vector_size(lanes / 2 * sizeof(double))));

// The square of an f32 is exact in double and cannot overflow there.
template <typename T>
static double sumOfSquares(int64_t count, const T *values) {
  VecDouble low = {}, high = {};
  forEachVector(count, [&](int64_t i, int64_t n) {
    Vec value = load(values + i, n);
    HalfVec halves[2];
    __builtin_memcpy(halves, &value, sizeof(value));
    VecDouble a = __builtin_convertvector(halves[0], VecDouble), b = __builtin_convertvector(halves[1], VecDouble);
    low += a * a;
    high += b * b;
  });
  low += high;
  double total = 0;
  for (int i = 0; i < lanes / 2; ++i)
    total += low[i];
  return total;
}

double sumOfSquares(plr_type type, int64_t count, const void *values) {
  return type == PLR_BF16 ? sumOfSquares(count, static_cast<const BF16 *>(values))
                          : sumOfSquares(count, static_cast<const float *>(values));
}

/// `current` is the f32 value that is updated: the master where there is one, otherwise the parameter. `rounded`, when
/// not null, receives its rounding. Every operation is rounded by itself and is the same in each lane, so an element's
/// bits depend neither on its place nor on how a group is cut into pieces.
template <typename G>
static void adamw(int64_t count, const AdamWNumbers &numbers, float *current, BF16 *rounded, const G *gradients,
                  float *first, float *second) {
  AdamWNumbers k = numbers;
  forEachVector(count, [&](int64_t i, int64_t n) {
    Vec g = load(gradients + i, n) * k.factor;
    Vec p = load(current + i, n) * k.keep;
    Vec m = k.beta1 * load(first + i, n) + k.rest1 * g;
    Vec v = k.beta2 * load(second + i, n) + k.rest2 * g * g;
    p -= k.rate * m / (squareRoot(v) / k.correction + k.epsilon);
    store(first + i, m, n);
    store(second + i, v, n);
    store(current + i, p, n);
    if (rounded)
      store(rounded + i, p, n);
  });
}

void adamw(plr_type type, plr_type gradientType, int64_t count, const AdamWNumbers &numbers, void *parameters,
           const void *gradients, float *first, float *second, float *master) {
  float *current = type == PLR_BF16 ? master : static_cast<float *>(parameters);
  BF16 *rounded = type == PLR_BF16 ? static_cast<BF16 *>(parameters) : nullptr;
  if (gradientType == PLR_BF16)
    adamw(count, numbers, current, rounded, static_cast<const BF16 *>(gradients), first, second);
  else
    adamw(count, numbers, current, rounded, static_cast<const float *>(gradients), first, second);
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
