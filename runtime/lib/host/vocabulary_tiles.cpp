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

namespace {
/// The columns of a tile that exist.
struct Tile {
  int64_t base;     ///< The global number of the first.
  int64_t existing; ///< From there on.

  Tile(const plr_vocabulary &vocabulary, int64_t columns, int64_t column, int32_t first)
      : base(first + column), existing(std::clamp<int64_t>(vocabulary.size - base, 0, columns)) {}
};

/// Of all columns that were folded into a row.
struct State {
  double top, total; ///< log Σ exp(y) is top + log total.
  double own;        ///< y[label].
  double sum;        ///< Σ y.

  static int64_t getWidth(const plr_vocabulary &vocabulary) { return vocabulary.label_smoothing == 0 ? 3 : 4; }
  State(const plr_vocabulary &vocabulary, const float *numbers)
      : top(numbers[0]), total(numbers[1]), own(numbers[2]),
        sum(vocabulary.label_smoothing == 0 ? 0 : static_cast<double>(numbers[3])) {}
};
} // namespace

void foldLogits(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, int64_t column, const int32_t *first,
                const float *logits, const float *bias, const int32_t *labels, float *state) {
  Tile tile(vocabulary, columns, column, *first);
  bestVariant().foldLogits(vocabulary, rows, columns, tile.existing, tile.base, logits, bias, labels, state);
}

void mergeStates(const plr_vocabulary &vocabulary, int64_t parts, int64_t rows, const float *states, float *result) {
  const int64_t width = State::getWidth(vocabulary);
  for (int64_t row = 0; row < rows; ++row, states += width, result += width) {
    double top = -std::numeric_limits<double>::infinity(), total = 0, own = 0, sum = 0;
    bool isEmpty = true;
    for (int64_t part = 0; part < parts; ++part) {
      State state(vocabulary, states + part * rows * width);
      // No more than one part has a label's column, and a part of padding alone has neither.
      own += state.own;
      sum += state.sum;
      if (state.total == 0)
        continue;
      isEmpty = false;
      top = std::max(top, state.top);
    }
    for (int64_t part = 0; part < parts; ++part)
      if (State state(vocabulary, states + part * rows * width); state.total != 0)
        total += std::exp(state.top - top) * state.total;
    result[0] = isEmpty ? 0 : static_cast<float>(top);
    result[1] = static_cast<float>(total);
    result[2] = static_cast<float>(own);
    if (width == 4)
      result[3] = static_cast<float>(sum);
  }
}

Fault finishLosses(const plr_vocabulary &vocabulary, int64_t rows, const float *state, const int32_t *labels,
                   float *losses, float *lse) {
  Fault fault = checkLabels(vocabulary, rows, labels);
  if (!fault.empty())
    return fault;
  const double smoothing = vocabulary.label_smoothing, zLoss = vocabulary.z_loss;
  for (int64_t row = 0; row < rows; ++row, state += State::getWidth(vocabulary)) {
    State all(vocabulary, state);
    const double logSum = all.total == 0 ? -std::numeric_limits<double>::infinity() : all.top + std::log(all.total);
    lse[row] = static_cast<float>(logSum);
    losses[row] = 0;
    if (labels[row] == vocabulary.ignore_index)
      continue;
    double loss = logSum - all.own;
    if (smoothing != 0)
      loss = (1 - smoothing) * loss + smoothing * (logSum - all.sum / static_cast<double>(vocabulary.size));
    if (zLoss != 0)
      loss += zLoss * logSum * logSum;
    losses[row] = static_cast<float>(loss);
  }
  return Fault();
}

void logitsGrad(const plr_vocabulary &vocabulary, plr_type resultType, int64_t rows, int64_t columns, int64_t column,
                const int32_t *first, const float *logits, const float *bias, const int32_t *labels, const float *lse,
                const float *cotangents, void *result) {
  Tile tile(vocabulary, columns, column, *first);
  bestVariant().logitsGrad(vocabulary, resultType, rows, columns, tile.existing, tile.base, logits, bias, labels, lse,
                           cotangents, result);
}

void columnSums(plr_type type, int64_t rows, int64_t columns, const void *input, float *sums) {
  bestVariant().columnSums(type, rows, columns, input, sums);
}

} // namespace plateau::rt::host
