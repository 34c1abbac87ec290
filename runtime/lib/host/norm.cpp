//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels.h"
#include "simd/variants.h"

namespace plateau::rt::host {

void rmsNorm(plr_type type, int64_t rows, int64_t columns, float epsilon, const void *input, const void *weight,
             void *output, float *inverse) {
  bestVariant().rmsNorm(type, rows, columns, epsilon, input, weight, output, inverse);
}

void rmsNormGrad(plr_type type, int64_t rows, int64_t columns, const void *cotangent, const void *input,
                 const void *weight, const float *inverse, void *inputGrad, void *weightGrad, void *workspace) {
  bestVariant().rmsNormGrad(type, rows, columns, cotangent, input, weight, inverse, inputGrad, weightGrad,
                            static_cast<float *>(workspace));
}

} // namespace plateau::rt::host
