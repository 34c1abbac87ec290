//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "blocked_sum.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

template <typename T>
static void rmsNorm(int64_t rows, int64_t columns, float epsilon, const T *input, const T *weight, T *output,
                    float *inverse) {
  for (int64_t row = 0; row < rows; ++row, input += columns, output += columns) {
    float squares = blockedSum(columns, [&](int64_t j, int64_t count) {
      Vec x = load(input + j, count);
      return x * x;
    });
    float scale = 1.0f / __builtin_sqrtf(squares / float(columns) + epsilon);
    inverse[row] = scale;
    forEachVector(columns, [&](int64_t j, int64_t count) {
      store(output + j, load(input + j, count) * scale * load(weight + j, count), count);
    });
  }
}

/// workspace: three rows of f32, the weight's gradient over the rows of the block at hand, that of all blocks before,
/// and what the latter lost to rounding: the sum over a million rows is as good as that over a few.
template <typename T>
static void rmsNormGrad(int64_t rows, int64_t columns, const T *cotangent, const T *input, const T *weight,
                        const float *inverse, T *inputGrad, T *weightGrad, float *workspace) {
  constexpr int64_t block = 32;
  float *partial = workspace, *total = workspace + columns, *lost = workspace + 2 * columns;
  __builtin_memset(total, 0, 2 * columns * sizeof(float));
  for (int64_t begin = 0; begin < rows; begin += block) {
    int64_t end = begin + block < rows ? begin + block : rows;
    __builtin_memset(partial, 0, columns * sizeof(float));
    for (int64_t row = begin; row < end; ++row, cotangent += columns, input += columns, inputGrad += columns) {
      float scale = inverse[row];
      float dot = blockedSum(columns, [&](int64_t j, int64_t count) {
        Vec g = load(cotangent + j, count) * load(weight + j, count);
        return g * (load(input + j, count) * scale);
      });
      float mean = dot / float(columns);
      forEachVector(columns, [&](int64_t j, int64_t count) {
        Vec dy = load(cotangent + j, count), n = load(input + j, count) * scale;
        store(inputGrad + j, scale * (dy * load(weight + j, count) - n * mean), count);
        store(partial + j, load(partial + j, count) + dy * n, count);
      });
    }
    forEachVector(columns, [&](int64_t j, int64_t count) {
      Vec before = load(total + j, count), added = load(partial + j, count) - load(lost + j, count);
      Vec after = before + added;
      store(total + j, after, count);
      store(lost + j, (after - before) - added, count);
    });
  }
  forEachVector(columns, [&](int64_t j, int64_t count) { store(weightGrad + j, load(total + j, count), count); });
}

void rmsNorm(plr_type type, int64_t rows, int64_t columns, float epsilon, const void *input, const void *weight,
             void *output, float *inverse) {
  if (type == PLR_BF16)
    rmsNorm(rows, columns, epsilon, static_cast<const BF16 *>(input), static_cast<const BF16 *>(weight),
            static_cast<BF16 *>(output), inverse);
  else
    rmsNorm(rows, columns, epsilon, static_cast<const float *>(input), static_cast<const float *>(weight),
            static_cast<float *>(output), inverse);
}

void rmsNormGrad(plr_type type, int64_t rows, int64_t columns, const void *cotangent, const void *input,
                 const void *weight, const float *inverse, void *inputGrad, void *weightGrad, float *workspace) {
  if (type == PLR_BF16)
    rmsNormGrad(rows, columns, static_cast<const BF16 *>(cotangent), static_cast<const BF16 *>(input),
                static_cast<const BF16 *>(weight), inverse, static_cast<BF16 *>(inputGrad),
                static_cast<BF16 *>(weightGrad), workspace);
  else
    rmsNormGrad(rows, columns, static_cast<const float *>(cotangent), static_cast<const float *>(input),
                static_cast<const float *>(weight), inverse, static_cast<float *>(inputGrad),
                static_cast<float *>(weightGrad), workspace);
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
