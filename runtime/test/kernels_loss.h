//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A vocabulary loss in float64, straight from its equations: what the tests of its kernels compare with.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_TEST_KERNELS_LOSS_H
#define PLATEAU_RUNTIME_TEST_KERNELS_LOSS_H

#include "kernels_support.h"

namespace plateau::rt::test {

constexpr int32_t ignored = -100;

/// A loss without options.
inline plr_vocabulary makeVocabulary(int64_t size) { return {size, ignored, 0, 0, 0}; }

/// Options of a loss, each alone and all together.
struct LossCase {
  const char *name;
  float smoothing, zLoss, softcap;
  bool hasBias;
  plr_vocabulary at(int64_t size) const { return {size, ignored, smoothing, zLoss, softcap}; }
};
constexpr LossCase lossCases[] = {
    {"plain", 0, 0, 0, false},        {"bias", 0, 0, 0, true},        {"softcap", 0, 0, 3, false},
    {"smoothing", 0.1f, 0, 0, false}, {"z-loss", 0, 0.01f, 0, false}, {"bias and softcap", 0, 0, 3, true},
    {"all", 0.2f, 0.003f, 5, true},
};

/// |actual − expected| ≤ bound, plus a unit in the last place of the type for each element. Losses and gradients are
/// differences of numbers that are as large as lse and the cotangents, and these are rounded.
inline void expectWithin(plr_type type, const Tensor &actual, const std::vector<double> &expected, double bound,
                         const char *what) {
  ASSERT_EQ(actual.size(), static_cast<int64_t>(expected.size())) << what;
  EXPECT_TRUE(actual.endIsIntact()) << what;
  const double unit = type == PLR_BF16 ? 0x1p-8 : 0x1p-23;
  for (int64_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], bound + unit * std::abs(expected[i])) << what << ": element " << i;
}

/// One row of it.
class ExactRow {
public:
  ExactRow(const plr_vocabulary &vocabulary, const std::vector<double> &logits, const std::vector<double> &bias,
           int32_t label)
      : vocabulary(vocabulary), label(label), values(logits) {
    for (size_t j = 0; j < values.size(); ++j) {
      values[j] += bias.empty() ? 0 : bias[j];
      if (vocabulary.softcap != 0)
        values[j] = vocabulary.softcap * std::tanh(values[j] / vocabulary.softcap);
      if (static_cast<int64_t>(j) >= vocabulary.size)
        values[j] = -infinity;
      top = std::max(top, values[j]);
    }
    for (double value : values)
      total += value == -infinity ? 0 : std::exp(value - top);
    lse = top + std::log(total);
  }
  double loss() const {
    if (label == vocabulary.ignore_index)
      return 0;
    const double epsilon = vocabulary.label_smoothing;
    double loss = (1 - epsilon) * (lse - values[label]) + vocabulary.z_loss * lse * lse;
    if (epsilon != 0)
      loss += epsilon * (lse - sum() / static_cast<double>(vocabulary.size));
    return loss;
  }
  /// Of the columns that exist.
  double sum() const {
    double sum = 0;
    for (int64_t j = 0; j < vocabulary.size; ++j)
      sum += values[j];
    return sum;
  }
  /// The derivative of cotangent · loss by the raw logits.
  std::vector<double> gradient(double cotangent) const {
    std::vector<double> result(values.size());
    const double epsilon = vocabulary.label_smoothing;
    if (label == vocabulary.ignore_index)
      return result;
    for (size_t j = 0; j < values.size(); ++j) {
      if (values[j] == -infinity)
        continue;
      double slope = vocabulary.softcap == 0 ? 1 : 1 - std::pow(values[j] / vocabulary.softcap, 2);
      double share = std::exp(values[j] - lse) * (1 + 2 * vocabulary.z_loss * lse) -
                     epsilon / static_cast<double>(vocabulary.size);
      result[j] = cotangent * slope * (share - (static_cast<int32_t>(j) == label ? 1 - epsilon : 0));
    }
    return result;
  }

  const plr_vocabulary vocabulary;
  const int32_t label;
  std::vector<double> values; ///< With bias, cap and mask.
  double top = -infinity, total = 0, lse;
};

/// Rows of logits, some of them ignored, with cotangents of their losses and what should come of them.
struct ExactRows {
  /// Of `columns` columns, the first `vocabulary.size` of which exist.
  ExactRows(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, bool hasBias, double scale = 2)
      : vocabulary(vocabulary), columns(columns), logits(randomTensor(PLR_F32, rows * columns, 1, scale)),
        bias(randomTensor(PLR_F32, columns, 2)), cotangents(randomTensor(PLR_F32, rows, 3)), hasBias(hasBias) {
    for (int64_t row = 0; row < rows; ++row)
      labels.push_back(row % 5 == 3 ? ignored : static_cast<int32_t>((row * 7919 + columns) % vocabulary.size));
  }
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  float *getBias() { return hasBias ? bias.floats() : nullptr; }
  ExactRow at(int64_t row) const {
    return {vocabulary, logits.slice(row * columns, columns).values(), hasBias ? bias.values() : std::vector<double>(),
            labels[row]};
  }
  std::vector<double> losses() const {
    return forRows([](const ExactRow &row, int64_t) { return std::vector<double>{row.loss()}; });
  }
  std::vector<double> lses() const {
    return forRows([](const ExactRow &row, int64_t) { return std::vector<double>{row.lse}; });
  }
  std::vector<double> gradient() const {
    return forRows([&](const ExactRow &row, int64_t number) { return row.gradient(cotangents[number]); });
  }

  const plr_vocabulary vocabulary;
  const int64_t columns;
  Tensor logits, bias, cotangents;
  const bool hasBias;
  std::vector<int32_t> labels;

private:
  template <typename Function>
  std::vector<double> forRows(const Function &function) const {
    std::vector<double> result;
    for (int64_t row = 0; row < size(); ++row) {
      std::vector<double> part = function(at(row), row);
      result.insert(result.end(), part.begin(), part.end());
    }
    return result;
  }
};

} // namespace plateau::rt::test

#endif // PLATEAU_RUNTIME_TEST_KERNELS_LOSS_H
