//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "vocabulary.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

static int64_t countExisting(const plr_vocabulary &vocabulary, int64_t columns) {
  return vocabulary.size < columns ? vocabulary.size : columns;
}

// A NaN in a row is passed over by the maximum and then makes the sum, and so the whole row, NaN.
void logSoftmax(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *input, const float *bias,
                float *result, float *lse) {
  const int64_t existing = countExisting(vocabulary, columns);
  const Shape shape(vocabulary, bias);
  for (int64_t row = 0; row < rows; ++row, input += columns, result += columns) {
    // Logits that are not left as they are lie in the result until they are needed a last time.
    const float *logits = input;
    if (!shape.isPlain()) {
      forEachVector(existing,
                    [&](int64_t j, int64_t count) { store(result + j, shape.apply(input, j, count), count); });
      logits = result;
    }
    float top = findLargest(existing, logits);
    // The exponentials keep the processor busy, not the memory: it fetches the next row meanwhile.
    const float *next = row + 1 < rows ? input + columns : input;
    double total = sumInBlocks(existing, [&](int64_t j, int64_t count) {
      __builtin_prefetch(next + j);
      return exponential(load(logits + j, count, -infinity) - top);
    });
    double exactLog = __builtin_log(total);
    float logTotal = float(exactLog);
    forEachVector(existing, [&](int64_t j, int64_t count) {
      store(result + j, (load(logits + j, count) - top) - logTotal, count);
    });
    for (int64_t j = existing; j < columns; ++j)
      result[j] = -infinity;
    lse[row] = float(double(top) + exactLog);
  }
}

void logSoftmaxGrad(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *cotangent,
                    const float *lseCotangent, const float *output, const float *lse, float *result) {
  const int64_t existing = countExisting(vocabulary, columns);
  const float inverse = vocabulary.softcap == 0 ? 0 : 1 / vocabulary.softcap;
  for (int64_t row = 0; row < rows; ++row, cotangent += columns, output += columns, result += columns) {
    double exactTotal = sumInBlocks(existing, [&](int64_t j, int64_t count) { return load(cotangent + j, count); });
    float total = float(lseCotangent ? exactTotal - lseCotangent[row] : exactTotal);
    if (inverse == 0)
      forEachVector(existing, [&](int64_t j, int64_t count) {
        store(result + j, load(cotangent + j, count) - exponential(load(output + j, count)) * total, count);
      });
    else
      forEachVector(existing, [&](int64_t j, int64_t count) {
        Vec logProb = load(output + j, count);
        Vec part = (logProb + lse[row]) * inverse; // Of the cap.
        Vec slope = maximum(Vec{}, (1.0f - part) * (1.0f + part));
        store(result + j, (load(cotangent + j, count) - exponential(logProb) * total) * slope, count);
      });
    __builtin_memset(result + existing, 0, (columns - existing) * sizeof(float));
  }
}

double sumOfRow(int64_t columns, const float *row) {
  return sumInBlocks(columns, [&](int64_t j, int64_t count) { return load(row + j, count); });
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
