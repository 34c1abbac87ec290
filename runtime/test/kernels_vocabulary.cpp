//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "kernels_loss.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

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
    plr_vocabulary vocabulary = makeVocabulary(columns);
    Tensor logProbs(PLR_F32, logits.size()), picked(PLR_F32, logits.size()), lse(PLR_F32, rows);
    Tensor losses(PLR_F32, rows), cotangents(PLR_F32, rows);
    float count = NAN, loss = NAN, one = 1;
    variant->logSoftmax(vocabulary, rows, columns, logits.floats(), nullptr, logProbs.floats(), lse.floats());
    host::countLabels(rows, ignored, labels.data(), &count);
    EXPECT_EQ(host::nll(vocabulary, rows, columns, logProbs.floats(), nullptr, labels.data(), losses.floats()), "");
    host::meanLoss(rows, losses.floats(), nullptr, &count, &loss);
    host::meanLossGrad(rows, &one, nullptr, &count, cotangents.floats());
    host::nllGrad(vocabulary, rows, columns, cotangents.floats(), nullptr, labels.data(), picked.floats(), nullptr);
    variant->logSoftmaxGrad(vocabulary, rows, columns, picked.floats(), nullptr, logProbs.floats(), nullptr,
                            gradient.floats());
    EXPECT_TRUE(logProbs.endIsIntact() && picked.endIsIntact() && gradient.endIsIntact());
    EXPECT_TRUE(lse.endIsIntact() && losses.endIsIntact() && cotangents.endIsIntact());
    return loss;
  }
};

TEST_P(Vocabulary, AgreesWithTheEquations) {
  for (int64_t columns : {1, 2, 3, 15, 16, 17, 64, 100, 1003, 16384})
    for (int64_t rows : {0, 1, 5}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << columns);
      Tensor logits = randomTensor(PLR_F32, rows * columns, 1, 4), result(PLR_F32, rows * columns);
      plr_vocabulary vocabulary = makeVocabulary(columns);
      Tensor lse(PLR_F32, rows);
      variant->logSoftmax(vocabulary, rows, columns, logits.floats(), nullptr, result.floats(), lse.floats());
      expectClose(PLR_F32, result, logSoftmax(columns, logits.values()), 1e-7, "log-softmax");
      Tensor cotangent = randomTensor(PLR_F32, rows * columns, 2), gradient(PLR_F32, rows * columns);
      variant->logSoftmaxGrad(vocabulary, rows, columns, cotangent.floats(), nullptr, result.floats(), nullptr,
                              gradient.floats());
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
  Tensor logProbs(PLR_F32, 3), lse(PLR_F32, 1);
  variant->logSoftmax(makeVocabulary(3), 1, 3, logits.floats(), nullptr, logProbs.floats(), lse.floats());
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
  Tensor logits = randomTensor(PLR_F32, 3 * 50, 1), result(PLR_F32, 150), lse(PLR_F32, 3);
  logits.set(50 + 49, NAN);
  variant->logSoftmax(makeVocabulary(50), 3, 50, logits.floats(), nullptr, result.floats(), lse.floats());
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
  float count, first, rest, all, losses[4];
  host::countLabels(4, ignored, labels, &count);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(host::nll(makeVocabulary(2), 4, 2, logProbs.floats(), nullptr, labels, losses), "");
  host::meanLoss(1, losses, nullptr, &count, &first);
  host::meanLoss(3, losses + 1, nullptr, &count, &rest);
  host::meanLoss(4, losses, nullptr, &count, &all);
  EXPECT_EQ(first + rest, 1.25f);
  EXPECT_EQ(all, 1.25f);
}

TEST(Labels, GradientIsWrittenOverPoison) {
  Tensor result(PLR_F32, 6);
  const int32_t labels[] = {2, ignored};
  float count = 4, cotangent = 3, cotangents[2];
  host::meanLossGrad(2, &cotangent, nullptr, &count, cotangents);
  host::nllGrad(makeVocabulary(3), 2, 3, cotangents, nullptr, labels, result.floats(), nullptr);
  const double expected[] = {0, 0, -0.75, 0, 0, 0};
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(result[i], expected[i]);
}

TEST(Labels, OutOfRange) {
  float data[6] = {}, losses[2];
  const int32_t above[] = {0, 1000}, negative[] = {-1, 0};
  const char *message = "row 1 has label 1000, but the vocabulary has 3 entries and the label that is ignored is -100";
  EXPECT_EQ(host::nll(makeVocabulary(3), 2, 3, data, nullptr, above, losses), message);
  EXPECT_EQ(host::nll(makeVocabulary(3), 2, 3, data, nullptr, negative, losses),
            "row 0 has label -1, but the vocabulary has 3 entries and the label that is ignored is -100");
}

TEST(Labels, OffsetsBeyond32Bits) {
  const int64_t rows = 1048576, columns = 201088;
  SparseFloats logProbs(rows * columns);
  ASSERT_TRUE(logProbs.data()) << "this machine gives out no address space of " << rows * columns * 4 << " bytes";
  std::vector<int32_t> labels(rows, ignored);
  labels[rows - 1] = columns - 1;
  labels[10680] = 7;
  logProbs.data()[rows * columns - 1] = -3;
  logProbs.data()[10680 * columns + 7] = -5;
  Tensor losses(PLR_F32, rows);
  EXPECT_EQ(host::nll(makeVocabulary(columns), rows, columns, logProbs.data(), nullptr, labels.data(), losses.floats()),
            "");
  EXPECT_EQ(losses[rows - 1], 3);
  EXPECT_EQ(losses[10680], 5);
  EXPECT_EQ(losses[0], 0);
}

} // namespace
