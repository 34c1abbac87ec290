//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels.h"
#include "simd/variants.h"
#include <cstring>

namespace plateau::rt::host {

void logSoftmax(int64_t rows, int64_t columns, const float *input, float *result) {
  bestVariant().logSoftmax(rows, columns, input, result);
}

void logSoftmaxGrad(int64_t rows, int64_t columns, const float *cotangent, const float *output, float *result) {
  bestVariant().logSoftmaxGrad(rows, columns, cotangent, output, result);
}

void countLabels(int64_t rows, int32_t ignoreIndex, const int32_t *labels, float *result) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row)
    count += labels[row] != ignoreIndex;
  *result = static_cast<float>(count);
}

static Fault checkLabels(int64_t rows, int64_t columns, int32_t ignoreIndex, const int32_t *labels) {
  for (int64_t row = 0; row < rows; ++row)
    if (labels[row] != ignoreIndex && (labels[row] < 0 || labels[row] >= columns))
      return "row " + std::to_string(row) + " has label " + std::to_string(labels[row]) + ", but the vocabulary has " +
             std::to_string(columns) + " entries and the label that is ignored is " + std::to_string(ignoreIndex);
  return Fault();
}

Fault nll(int64_t rows, int64_t columns, int32_t ignoreIndex, const float *logProbs, const int32_t *labels,
          const float *count, float *result) {
  Fault fault = checkLabels(rows, columns, ignoreIndex, labels);
  if (!fault.empty())
    return fault;
  float total = 0;
  for (int64_t row = 0; row < rows; ++row)
    if (labels[row] != ignoreIndex)
      total -= logProbs[row * columns + labels[row]];
  *result = *count == 0 ? 0 : total / *count;
  return Fault();
}

Fault nllGrad(int64_t rows, int64_t columns, int32_t ignoreIndex, const float *cotangent, const int32_t *labels,
              const float *count, float *result) {
  Fault fault = checkLabels(rows, columns, ignoreIndex, labels);
  if (!fault.empty())
    return fault;
  float value = *count == 0 ? 0 : -*cotangent / *count;
  for (int64_t row = 0; row < rows; ++row) {
    std::memset(result + row * columns, 0, columns * sizeof(float));
    if (labels[row] != ignoreIndex)
      result[row * columns + labels[row]] = value;
  }
  return Fault();
}

} // namespace plateau::rt::host
