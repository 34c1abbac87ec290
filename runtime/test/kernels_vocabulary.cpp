//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "kernels_support.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

constexpr int32_t ignored = -100;

std::vector<double> logSoftmax(int64_t columns, const std::vector<double> &input) {
  std::vector<double> result(input.size());
  for (size_t begin = 0; begin < input.size(); begin += columns) {
    double top = *std::max_element(input.begin() + begin, input.begin() + begin + columns), total = 0;
    for (int64_t j = 0; j < columns; ++j)
      total += std::exp(input[begin + j] - top);
    for (int64_t j = 0; j < columns; ++j)
      result[begin + j] = input[begin + j] - top - std::log(total);
  }
  return result;
}

double nll(int64_t columns, const std::vector<double> &logProbs, const std::vector<int32_t> &labels) {
  double total = 0, count = 0;
  for (size_t row = 0; row < labels.size(); ++row)
    if (labels[row] != ignored) {
      total -= logProbs[row * columns + labels[row]];
      ++count;
    }
  return count ? total / count : 0;
}

class Vocabulary : public KernelTest {
protected:
  /// Loss and gradient of the logits by way of all the ops.
  float run(int64_t columns, Tensor &logits, const std::vector<int32_t> &labels, Tensor &gradient) {
    int64_t rows = static_cast<int64_t>(labels.size());
    Tensor logProbs(PLR_F32, logits.size()), picked(PLR_F32, logits.size());
    float count = NAN, loss = NAN, one = 1;
    variant->logSoftmax(rows, columns, logits.floats(), logProbs.floats());
    host::countLabels(rows, ignored, labels.data(), &count);
    EXPECT_EQ(host::nll(rows, columns, ignored, logProbs.floats(), labels.data(), &count, &loss), "");
    EXPECT_EQ(host::nllGrad(rows, columns, ignored, &one, labels.data(), &count, picked.floats()), "");
    variant->logSoftmaxGrad(rows, columns, picked.floats(), logProbs.floats(), gradient.floats());
    EXPECT_TRUE(logProbs.endIsIntact() && picked.endIsIntact() && gradient.endIsIntact());
    return loss;
  }
};

TEST_P(Vocabulary, AgreesWithTheEquations) {
  for (int64_t columns : {1, 2, 3, 15, 16, 17, 64, 100, 1003, 16384})
    for (int64_t rows : {0, 1, 5}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << columns);
      Tensor logits = randomTensor(PLR_F32, rows * columns, 1, 4), result(PLR_F32, rows * columns);
      variant->logSoftmax(rows, columns, logits.floats(), result.floats());
      expectClose(PLR_F32, result, logSoftmax(columns, logits.values()), 1e-7, "log-softmax");
      Tensor cotangent = randomTensor(PLR_F32, rows * columns, 2), gradient(PLR_F32, rows * columns);
      variant->logSoftmaxGrad(rows, columns, cotangent.floats(), result.floats(), gradient.floats());
      std::vector<double> expected(rows * columns);
      for (int64_t row = 0; row < rows; ++row) {
        double total = 0;
        for (int64_t j = 0; j < columns; ++j)
          total += cotangent[row * columns + j];
        for (int64_t j = 0; j < columns; ++j)
          expected[row * columns + j] = cotangent[row * columns + j] - std::exp(result[row * columns + j]) * total;
      }
      expectClose(PLR_F32, gradient, expected, 1e-6, "gradient");
    }
}

TEST_P(Vocabulary, GradientIsThatOfTheLoss) {
  const int64_t columns = 7;
  std::vector<int32_t> labels = {3, ignored, 0, 6, 6};
  Tensor logits = randomTensor(PLR_F32, 5 * columns, 1, 2), gradient(PLR_F32, 5 * columns);
  float loss = run(columns, logits, labels, gradient);
  std::vector<double> values = logits.values();
  auto function = [&] { return nll(columns, logSoftmax(columns, values), labels); };
  EXPECT_NEAR(loss, function(), 1e-6);
  expectClose(PLR_F32, gradient, differences(function, values), 1e-6, "gradient");
}

TEST_P(Vocabulary, MaskedEntries) {
  Tensor logits = tensorOf({-infinity, 0, 0}), gradient(PLR_F32, 3);
  EXPECT_NEAR(run(3, logits, {1}, gradient), std::log(2.0), 1e-7);
  EXPECT_EQ(gradient[0], 0);
  EXPECT_NEAR(gradient[1], -0.5, 1e-7);
  EXPECT_NEAR(gradient[2], 0.5, 1e-7);
  Tensor logProbs(PLR_F32, 3);
  variant->logSoftmax(1, 3, logits.floats(), logProbs.floats());
  EXPECT_EQ(logProbs[0], -infinity);
}

TEST_P(Vocabulary, EqualVeryNegativeLogits) {
  Tensor logits = tensorOf({-1e30, -1e30, -1e30}), gradient(PLR_F32, 3);
  EXPECT_NEAR(run(3, logits, {2}, gradient), 1.098612, 1e-6);
}

TEST_P(Vocabulary, LargeLogitsStayFinite) {
  Tensor logits = tensorOf({0, 1, 2, 3, 4, 5, 6, 7}), gradient(PLR_F32, 8);
  EXPECT_NEAR(run(8, logits, {3}, gradient), 4.458340, 1e-6);
  Tensor large = tensorOf({0, 1000, 2000, 3000, 4000, 5000, 6000, 7000});
  EXPECT_EQ(run(8, large, {3}, gradient), 4000);
  for (int64_t j = 0; j < 8; ++j)
    EXPECT_EQ(gradient[j], j == 3 ? -1 : j == 7 ? 1 : 0);
}

TEST_P(Vocabulary, OneEntryIsCertain) {
  Tensor logits = tensorOf({1e30, -5}), gradient(PLR_F32, 2);
  EXPECT_EQ(run(1, logits, {0, 0}, gradient), 0);
  EXPECT_EQ(gradient[0], 0);
  EXPECT_EQ(gradient[1], 0);
}

TEST_P(Vocabulary, NaNStaysInItsRow) {
  Tensor logits = randomTensor(PLR_F32, 3 * 50, 1), result(PLR_F32, 150);
  logits.set(50 + 49, NAN);
  variant->logSoftmax(3, 50, logits.floats(), result.floats());
  for (int64_t i = 0; i < 150; ++i)
    EXPECT_EQ(std::isnan(result[i]), i / 50 == 1) << i;
}

TEST_P(Vocabulary, NothingCounts) {
  Tensor logits = randomTensor(PLR_F32, 20, 1), gradient(PLR_F32, 20);
  EXPECT_EQ(run(10, logits, {ignored, ignored}, gradient), 0);
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_EQ(gradient[i], 0);
}

PLATEAU_KERNEL_TEST_F32(Vocabulary);

// One token of loss 2 and three of mean 1 are 1.25 together, however they are split.
TEST(Labels, MeanIsOverAllTokens) {
  Tensor logProbs = tensorOf({-2, 0, -0.5, 0, -1, 0, -1.5, 0});
  const int32_t labels[] = {0, 0, 0, 0};
  float count, first, rest, all;
  host::countLabels(4, ignored, labels, &count);
  EXPECT_EQ(count, 4);
  host::nll(1, 2, ignored, logProbs.floats(), labels, &count, &first);
  host::nll(3, 2, ignored, logProbs.floats() + 2, labels, &count, &rest);
  host::nll(4, 2, ignored, logProbs.floats(), labels, &count, &all);
  EXPECT_EQ(first + rest, 1.25f);
  EXPECT_EQ(all, 1.25f);
}

TEST(Labels, GradientIsWrittenOverPoison) {
  Tensor result(PLR_F32, 6);
  const int32_t labels[] = {2, ignored};
  float count = 4, cotangent = 3;
  EXPECT_EQ(host::nllGrad(2, 3, ignored, &cotangent, labels, &count, result.floats()), "");
  const double expected[] = {0, 0, -0.75, 0, 0, 0};
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(result[i], expected[i]);
}

TEST(Labels, OutOfRange) {
  float data[6] = {}, count = 2, result;
  const int32_t above[] = {0, 1000}, negative[] = {-1, 0};
  const char *message = "row 1 has label 1000, but the vocabulary has 3 entries and the label that is ignored is -100";
  EXPECT_EQ(host::nll(2, 3, ignored, data, above, &count, &result), message);
  EXPECT_EQ(host::nllGrad(2, 3, ignored, &count, above, &count, data), message);
  EXPECT_EQ(host::nll(2, 3, ignored, data, negative, &count, &result),
            "row 0 has label -1, but the vocabulary has 3 entries and the label that is ignored is -100");
}

TEST(Labels, OffsetsBeyond32Bits) {
  const int64_t rows = 1048576, columns = 201088;
  SparseFloats logProbs(rows * columns);
  if (!logProbs.data())
    GTEST_SKIP() << "this machine gives out no address space of " << rows * columns * 4 << " bytes";
  std::vector<int32_t> labels(rows, ignored);
  labels[rows - 1] = columns - 1;
  labels[10680] = 7;
  logProbs.data()[rows * columns - 1] = -3;
  logProbs.data()[10680 * columns + 7] = -5;
  float count = 2, loss = NAN;
  EXPECT_EQ(host::nll(rows, columns, ignored, logProbs.data(), labels.data(), &count, &loss), "");
  EXPECT_EQ(loss, 4);
}

} // namespace
