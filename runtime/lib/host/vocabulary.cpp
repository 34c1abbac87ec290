//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels.h"
#include "simd/variants.h"
#include <cstring>

namespace plateau::rt::host {

void logSoftmax(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *input, const float *bias,
                float *result, float *lse) {
  bestVariant().logSoftmax(vocabulary, rows, columns, input, bias, result, lse);
}

void logSoftmaxGrad(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *cotangent,
                    const float *lseCotangent, const float *output, const float *lse, float *result, float *biasGrad) {
  bestVariant().logSoftmaxGrad(vocabulary, rows, columns, cotangent, lseCotangent, output, lse, result);
  if (!biasGrad)
    return;
  std::memset(biasGrad, 0, columns * sizeof(float));
  columnSums(PLR_F32, rows, columns, result, biasGrad);
}

void countLabels(int64_t rows, int32_t ignoreIndex, const int32_t *labels, float *result) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row)
    count += labels[row] != ignoreIndex;
  *result = static_cast<float>(count);
}

static bool isInVocabulary(const plr_vocabulary &vocabulary, int32_t label) {
  return label >= 0 && label < vocabulary.size;
}

Fault checkLabels(const plr_vocabulary &vocabulary, int64_t rows, const int32_t *labels) {
  for (int64_t row = 0; row < rows; ++row)
    if (labels[row] != vocabulary.ignore_index && !isInVocabulary(vocabulary, labels[row]))
      return "row " + std::to_string(row) + " has label " + std::to_string(labels[row]) + ", but the vocabulary has " +
             std::to_string(vocabulary.size) + " entries and the label that is ignored is " +
             std::to_string(vocabulary.ignore_index);
  return Fault();
}

Fault nll(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *logProbs, const float *lse,
          const int32_t *labels, float *losses) {
  Fault fault = checkLabels(vocabulary, rows, labels);
  if (!fault.empty())
    return fault;
  const Variant &variant = bestVariant();
  const double smoothing = vocabulary.label_smoothing, zLoss = vocabulary.z_loss;
  for (int64_t row = 0; row < rows; ++row, logProbs += columns) {
    losses[row] = 0;
    if (labels[row] == vocabulary.ignore_index)
      continue;
    double loss = -static_cast<double>(logProbs[labels[row]]);
    if (smoothing != 0) {
      double mean = variant.sumOfRow(vocabulary.size, logProbs) / static_cast<double>(vocabulary.size);
      loss = (1 - smoothing) * loss - smoothing * mean;
    }
    if (zLoss != 0)
      loss += zLoss * lse[row] * lse[row];
    losses[row] = static_cast<float>(loss);
  }
  return Fault();
}

void nllGrad(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *cotangents, const float *lse,
             const int32_t *labels, float *logProbsGrad, float *lseGrad) {
  const float smoothing = vocabulary.label_smoothing, zLoss = vocabulary.z_loss;
  for (int64_t row = 0; row < rows; ++row, logProbsGrad += columns) {
    const float cotangent = cotangents[row];
    const bool counts = labels[row] != vocabulary.ignore_index && cotangent != 0;
    std::memset(logProbsGrad, 0, columns * sizeof(float));
    if (lseGrad)
      lseGrad[row] = counts && zLoss != 0 ? 2 * zLoss * lse[row] * cotangent : 0;
    if (!counts)
      continue;
    if (smoothing != 0) {
      const float spread = cotangent * (smoothing / static_cast<float>(vocabulary.size));
      for (int64_t j = 0; j < vocabulary.size; ++j)
        logProbsGrad[j] = -spread;
    }
    if (isInVocabulary(vocabulary, labels[row]))
      logProbsGrad[labels[row]] -= (1 - smoothing) * cotangent;
  }
}

void meanLoss(int64_t rows, const float *losses, const float *weights, const float *count, float *result) {
  float total = 0;
  for (int64_t row = 0; row < rows; ++row)
    total += weights ? weights[row] * losses[row] : losses[row];
  *result = *count == 0 ? 0 : total / *count;
}

void meanLossGrad(int64_t rows, const float *cotangent, const float *weights, const float *count, float *result) {
  for (int64_t row = 0; row < rows; ++row)
    result[row] = *count == 0 ? 0 : (weights ? *cotangent * weights[row] : *cotangent) / *count;
}

} // namespace plateau::rt::host
