//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "variants.h"
#include "vocabulary.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

// A row is taken in blocks that stay in the first cache between the search for the largest logit and the exponentials.
// Between blocks the sum is kept in double. A row that meets a NaN gets a sum that is NaN, and keeps it.
void foldLogits(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, int64_t existing, int64_t base,
                const float *logits, const float *bias, const int32_t *labels, float *state) {
  const Shape shape(vocabulary, bias);
  const bool isPlain = shape.isPlain(), isSmooth = vocabulary.label_smoothing != 0;
  float buffer[sumBlock];
  for (int64_t row = 0; row < rows; ++row, logits += columns, state += isSmooth ? 4 : 3) {
    double total = state[1], plainSum = 0;
    float top = total == 0 ? -infinity : state[0];
    for (int64_t begin = 0; begin < existing; begin += sumBlock) {
      const int64_t length = existing - begin < sumBlock ? existing - begin : sumBlock;
      const float *block = logits + begin;
      if (!isPlain) {
        forEachVector(
            length, [&](int64_t j, int64_t count) { store(buffer + j, shape.apply(logits, begin + j, count), count); });
        block = buffer;
      }
      float highest = findLargest(length, block);
      if (highest > top) {
        // In double: rows whose logits rise from tile to tile multiply many such factors.
        if (total != 0)
          total *= __builtin_exp(double(top) - double(highest));
        top = highest;
      }
      // Where all logits so far are −inf the exponentials are 0, whatever is subtracted, but never −inf − −inf.
      const float origin = top == -infinity ? 0 : top;
      total += sumInBlocks(
          length, [&](int64_t j, int64_t count) { return exponential(load(block + j, count, -infinity) - origin); });
      if (isSmooth)
        plainSum += sumInBlocks(length, [&](int64_t j, int64_t count) { return load(block + j, count); });
    }
    if (total != 0) {
      state[0] = top;
      state[1] = float(total);
    }
    const int64_t own = labels[row] - base;
    if (own >= 0 && own < existing)
      state[2] = shape.apply(logits, own, 1)[0];
    if (isSmooth)
      state[3] = float(state[3] + plainSum);
  }
}

namespace {

/// The derivative of one row.
struct RowGrad {
  float lse;
  float factor; ///< Of the probabilities.
  float spread; ///< Taken off everywhere: label smoothing.
  float own;    ///< Taken off at the label.

  template <bool isCapped>
  Vec at(const Shape &shape, const float *row, int64_t j, int64_t count, float own) const {
    Vec slope, value = shape.apply<isCapped>(row, j, count, slope);
    Vec grad = (exponential(value - lse) * factor - spread - own) * slope;
    return value == -infinity ? Vec{} : grad;
  }
  /// exp(−inf − lse) · factor is 0, and no number that is not finite comes up elsewhere either.
  bool isFinite() const { return lse - lse == 0 && factor - factor == 0; }
};

} // namespace

/// What fills the columns of a row that exist, in the order of what they cost.
enum class Kind { Plain, General, Capped };

template <Kind kind, typename T>
static void logitsGrad(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, int64_t existing, int64_t base,
                       const float *logits, const float *bias, const int32_t *labels, const float *lse,
                       const float *cotangents, T *result) {
  const Shape shape(vocabulary, bias);
  const float smoothing = vocabulary.label_smoothing, zLoss = vocabulary.z_loss;
  for (int64_t row = 0; row < rows; ++row, logits += columns, result += columns) {
    const float cotangent = cotangents[row];
    if (labels[row] == vocabulary.ignore_index || cotangent == 0) {
      __builtin_memset(result, 0, columns * sizeof(T));
      continue;
    }
    const RowGrad grad = {lse[row], zLoss == 0 ? cotangent : cotangent * (1 + 2 * zLoss * lse[row]),
                          cotangent * (smoothing / float(vocabulary.size)), cotangent * (1 - smoothing)};
    constexpr bool isCapped = kind == Kind::Capped;
    // Before the logits are overwritten.
    const int64_t own = labels[row] - base;
    const bool isHere = own >= 0 && own < existing;
    const Vec ownGrad = isHere ? grad.at<isCapped>(shape, logits, own, 1, grad.own) : Vec{};
    if (kind == Kind::Plain && grad.isFinite())
      forEachVector(existing, [&](int64_t j, int64_t count) {
        store(result + j, exponential(load(logits + j, count) - grad.lse) * grad.factor, count);
      });
    else
      forEachVector(existing, [&](int64_t j, int64_t count) {
        store(result + j, grad.at<isCapped>(shape, logits, j, count, 0), count);
      });
    if (isHere)
      store(result + own, ownGrad, 1);
    __builtin_memset(result + existing, 0, (columns - existing) * sizeof(T));
  }
}

template <typename T>
static void logitsGrad(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, int64_t existing, int64_t base,
                       const float *logits, const float *bias, const int32_t *labels, const float *lse,
                       const float *cotangents, T *result) {
  auto run = vocabulary.softcap != 0                   ? logitsGrad<Kind::Capped, T>
             : bias || vocabulary.label_smoothing != 0 ? logitsGrad<Kind::General, T>
                                                       : logitsGrad<Kind::Plain, T>;
  run(vocabulary, rows, columns, existing, base, logits, bias, labels, lse, cotangents, result);
}

void logitsGrad(const plr_vocabulary &vocabulary, plr_type resultType, int64_t rows, int64_t columns, int64_t existing,
                int64_t base, const float *logits, const float *bias, const int32_t *labels, const float *lse,
                const float *cotangents, void *result) {
  if (resultType == PLR_BF16)
    logitsGrad(vocabulary, rows, columns, existing, base, logits, bias, labels, lse, cotangents,
               static_cast<BF16 *>(result));
  else
    logitsGrad(vocabulary, rows, columns, existing, base, logits, bias, labels, lse, cotangents,
               static_cast<float *>(result));
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
