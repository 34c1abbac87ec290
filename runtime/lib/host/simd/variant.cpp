//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "simd.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

#define PLATEAU_RT_STRING(name) #name
#define PLATEAU_RT_NAME(name) PLATEAU_RT_STRING(name)
const Variant variant = {PLATEAU_RT_NAME(PLATEAU_RT_VARIANT),
                         embeddingSum,
                         rmsNorm,
                         rmsNormGrad,
                         rotary,
                         attention,
                         attentionGrad,
                         logSoftmax,
                         logSoftmaxGrad,
                         sumOfRow,
                         foldLogits,
                         logitsGrad,
                         sumOfSquares,
                         adamw,
                         swiglu,
                         swigluGrad,
                         scaleRows,
                         rowDot,
                         columnSums,
                         roundSums,
                         exponentials,
                         hyperbolicTangents};

void exponentials(int64_t count, const float *values, float *result) {
  forEachVector(count, [&](int64_t i, int64_t n) { store(result + i, exponential(load(values + i, n)), n); });
}

void hyperbolicTangents(int64_t count, const float *values, float *result) {
  forEachVector(count, [&](int64_t i, int64_t n) { store(result + i, hyperbolicTangent(load(values + i, n)), n); });
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
