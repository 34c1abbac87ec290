//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// The loss over whole rows with its options; without them it is in kernels_vocabulary.cpp.
#include "host/kernels.h"
#include "kernels_loss.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

// The equations are those that the tests compare with: their derivatives are differences of their values.
TEST(ExactLoss, GradientIsThatOfTheLoss) {
  for (const LossCase &options : lossCases) {
    SCOPED_TRACE(options.name);
    ExactRows rows(options.at(7), 1, 9, options.hasBias);
    std::vector<double> logits = rows.logits.values(), bias;
    if (options.hasBias)
      bias = rows.bias.values();
    auto loss = [&] { return ExactRow(rows.vocabulary, logits, bias, rows.labels[0]).loss(); };
    std::vector<double> expected = differences(loss, logits), gradient = rows.at(0).gradient(1);
    for (size_t j = 0; j < expected.size(); ++j)
      EXPECT_NEAR(gradient[j], expected[j], 1e-8) << j;
  }
}

class LossOptions : public KernelTest {
protected:
  /// By way of all the ops, everything poisoned before.
  void run(ExactRows &rows, Tensor &losses, Tensor &lse, Tensor &gradient) {
    const int64_t count = rows.size(), columns = rows.columns;
    Tensor logProbs(PLR_F32, count * columns), picked(PLR_F32, count * columns), lseGrad(PLR_F32, count);
    variant->logSoftmax(rows.vocabulary, count, columns, rows.logits.floats(), rows.getBias(), logProbs.floats(),
                        lse.floats());
    for (int64_t i = 0; i < count * columns; ++i)
      EXPECT_EQ(logProbs[i] == -infinity, i % columns >= rows.vocabulary.size) << i;
    EXPECT_EQ(host::nll(rows.vocabulary, count, columns, logProbs.floats(), lse.floats(), rows.labels.data(),
                        losses.floats()),
              "");
    host::nllGrad(rows.vocabulary, count, columns, rows.cotangents.floats(), lse.floats(), rows.labels.data(),
                  picked.floats(), lseGrad.floats());
    for (int64_t i = 0; i < count * columns; ++i)
      if (i % columns >= rows.vocabulary.size || rows.labels[i / columns] == ignored) {
        EXPECT_EQ(picked[i], 0) << i;
      }
    variant->logSoftmaxGrad(rows.vocabulary, count, columns, picked.floats(), lseGrad.floats(), logProbs.floats(),
                            lse.floats(), gradient.floats());
    EXPECT_TRUE(logProbs.endIsIntact() && picked.endIsIntact() && lseGrad.endIsIntact());
  }
};

TEST_P(LossOptions, AgreeWithTheEquations) {
  for (const LossCase &options : lossCases)
    for (int64_t columns : {1, 2, 5, 16, 17, 100, 1003, 5000})
      for (int64_t padding : {0, 1, 40})
        for (int64_t count : {0, 1, 6}) {
          SCOPED_TRACE(testing::Message()
                       << options.name << ": " << count << " rows of " << columns << " and " << padding);
          ExactRows rows(options.at(columns), count, columns + padding, options.hasBias);
          Tensor losses(PLR_F32, count), lse(PLR_F32, count), gradient(PLR_F32, count * rows.columns);
          run(rows, losses, lse, gradient);
          expectWithin(PLR_F32, lse, rows.lses(), 1e-6, "lse");
          expectWithin(PLR_F32, losses, rows.losses(), 1e-6, "losses");
          expectWithin(PLR_F32, gradient, rows.gradient(), 2e-6, "gradient");
          for (int64_t i = 0; i < gradient.size(); ++i)
            if (i % rows.columns >= columns || rows.labels[i / rows.columns] == ignored) {
              EXPECT_EQ(gradient[i], 0) << i;
            }
        }
}

// Padding behind the columns changes no bit of them.
TEST_P(LossOptions, PaddingChangesNothing) {
  const int64_t columns = 1003, wide = 1100;
  plr_vocabulary vocabulary = makeVocabulary(columns);
  ExactRows rows(vocabulary, 1, wide, false);
  Tensor narrow = rows.logits.slice(0, columns), result(PLR_F32, columns), padded(PLR_F32, wide), lse(PLR_F32, 2);
  variant->logSoftmax(vocabulary, 1, columns, narrow.floats(), nullptr, result.floats(), lse.floats());
  variant->logSoftmax(vocabulary, 1, wide, rows.logits.floats(), nullptr, padded.floats(), lse.floats() + 1);
  EXPECT_TRUE(padded.slice(0, columns).sameBits(result));
  EXPECT_EQ(lse[0], lse[1]);
}

// The logits are masked after the cap: capped first, each of four would count the same.
TEST_P(LossOptions, MaskComesAfterTheCap) {
  plr_vocabulary vocabulary = makeVocabulary(3);
  vocabulary.softcap = 1;
  Tensor logits = tensorOf({-1e30, -1e30, -1e30, -1e30}), logProbs(PLR_F32, 4), lse(PLR_F32, 1);
  variant->logSoftmax(vocabulary, 1, 4, logits.floats(), nullptr, logProbs.floats(), lse.floats());
  EXPECT_NEAR(logProbs[2], -1.098612, 1e-6);
  EXPECT_NEAR(lse[0], 1.098612 - 1, 1e-6);
  EXPECT_EQ(logProbs[3], -infinity);
}

TEST_P(LossOptions, SmoothingOfEightLogits) {
  plr_vocabulary vocabulary = makeVocabulary(8);
  vocabulary.label_smoothing = 0.1f;
  const int32_t label = 3;
  for (double scale : {1.0, 1000.0}) {
    Tensor logits(PLR_F32, 8), logProbs(PLR_F32, 8), lse(PLR_F32, 1), loss(PLR_F32, 1);
    for (int64_t j = 0; j < 8; ++j)
      logits.set(j, scale * static_cast<double>(j));
    variant->logSoftmax(vocabulary, 1, 8, logits.floats(), nullptr, logProbs.floats(), lse.floats());
    host::nll(vocabulary, 1, 8, logProbs.floats(), lse.floats(), &label, loss.floats());
    // 7000 − 0.9 · 3000 − 0.1 · 3500
    EXPECT_NEAR(loss[0], scale == 1 ? 4.408340 : 3950, scale * 1e-6);
  }
}

TEST_P(LossOptions, BiasGradIsTheSumOfTheRows) {
  for (int64_t count : {0, 1, 3, 4, 9})
    for (int64_t columns : {1, 16, 37}) {
      plr_vocabulary vocabulary = makeVocabulary(columns);
      Tensor cotangent = randomTensor(PLR_F32, count * columns, 1), output = randomTensor(PLR_F32, count * columns, 2);
      Tensor result(PLR_F32, count * columns), biasGrad(PLR_F32, columns);
      host::logSoftmaxGrad(vocabulary, count, columns, cotangent.floats(), nullptr, output.floats(), nullptr,
                           result.floats(), biasGrad.floats());
      EXPECT_TRUE(biasGrad.endIsIntact());
      for (int64_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (int64_t row = 0; row < count; ++row)
          sum += static_cast<float>(result[row * columns + j]);
        EXPECT_EQ(biasGrad[j], sum);
      }
    }
}

PLATEAU_KERNEL_TEST_F32(LossOptions);

TEST(MeanLoss, WeighsLosses) {
  const float losses[] = {1, 2, 0, 8}, weights[] = {1, 0.5f, 1, 0.25f}, count = 4, none = 0;
  float result = NAN, cotangent = 2;
  host::meanLoss(4, losses, weights, &count, &result);
  EXPECT_EQ(result, 1);
  host::meanLoss(4, losses, nullptr, &count, &result);
  EXPECT_EQ(result, 2.75f);
  host::meanLoss(0, nullptr, nullptr, &none, &result);
  EXPECT_EQ(result, 0);
  Tensor gradient(PLR_F32, 4);
  host::meanLossGrad(4, &cotangent, weights, &count, gradient.floats());
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(gradient[i], weights[i] / 2);
  host::meanLossGrad(4, &cotangent, nullptr, &count, gradient.floats());
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(gradient[i], 0.5);
  host::meanLossGrad(4, &cotangent, weights, &none, gradient.floats());
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(gradient[i], 0);
  EXPECT_TRUE(gradient.endIsIntact());
}

// Added one after the other in f32: 2^24 ones take no further one.
TEST(MeanLoss, SumsRowsInOrder) {
  const float losses[] = {16777216, 1, 1}, count = 1;
  float result;
  host::meanLoss(3, losses, nullptr, &count, &result);
  EXPECT_EQ(result, 16777216);
}

// Only the loss itself reports a label; its gradient leaves the row without one.
TEST(LossGrad, LabelsOutOfRangePickNothing) {
  plr_vocabulary vocabulary = makeVocabulary(3);
  const int32_t labels[] = {3, -1, INT32_MAX, INT32_MIN};
  const float cotangents[] = {1, 1, 1, 1};
  Tensor gradient(PLR_F32, 16);
  host::nllGrad(vocabulary, 4, 4, cotangents, nullptr, labels, gradient.floats(), nullptr);
  EXPECT_TRUE(gradient.endIsIntact());
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(gradient[i], 0);
}

// An lse that is not finite in a row that does not count makes no NaN.
TEST(LossGrad, RowsThatDoNotCount) {
  plr_vocabulary vocabulary = {2, ignored, 0, 0.5f, 0};
  const int32_t labels[] = {ignored, 1, 0};
  const float cotangents[] = {1, 0, 2}, lse[] = {NAN, INFINITY, 3};
  Tensor gradient(PLR_F32, 6), lseGrad(PLR_F32, 3);
  host::nllGrad(vocabulary, 3, 2, cotangents, lse, labels, gradient.floats(), lseGrad.floats());
  const double expected[] = {0, 0, 0, 0, -2, 0}, expectedLse[] = {0, 0, 6};
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(gradient[i], expected[i]);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(lseGrad[i], expectedLse[i]);
}

} // namespace
