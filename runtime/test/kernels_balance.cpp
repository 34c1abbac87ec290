//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "kernels_support.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

std::vector<double> getScores(plr_score kind, const std::vector<double> &logits) {
  std::vector<double> scores;
  double sum = 0;
  for (double logit : logits)
    sum += scores.emplace_back(kind == PLR_SIGMOID ? 1 / (1 + std::exp(-logit)) : std::exp(logit));
  for (double &score : scores)
    score /= sum;
  return scores;
}

/// The loss as papers have it: coefficient · E · Σ f · P, for tokens in one run, of all `tokens` of which they are
/// some.
double balanceByDefinition(plr_score kind, double coefficient, int64_t topK, const std::vector<double> &logits,
                           const std::vector<int64_t> &counts) {
  size_t experts = counts.size();
  double routes = 0;
  for (int64_t count : counts)
    routes += static_cast<double>(count);
  if (routes == 0)
    return 0;
  double tokens = routes / static_cast<double>(topK);
  std::vector<double> mean(experts);
  for (size_t begin = 0; begin < logits.size(); begin += experts) {
    std::vector<double> scores = getScores(kind, {logits.begin() + begin, logits.begin() + begin + experts});
    for (size_t e = 0; e < experts; ++e)
      mean[e] += scores[e] / tokens;
  }
  double sum = 0;
  for (size_t e = 0; e < experts; ++e)
    sum += static_cast<double>(counts[e]) / routes * mean[e];
  return coefficient * static_cast<double>(experts) * sum;
}

double balanceOfSequences(const plr_balance &b, const std::vector<double> &logits, const std::vector<int32_t> &ids) {
  double sum = 0;
  for (size_t begin = 0; begin < ids.size() / b.top_k; begin += b.sequence) {
    std::vector<int64_t> counts(b.experts);
    for (size_t i = begin * b.top_k; i < (begin + b.sequence) * b.top_k; ++i)
      if (ids[i] != -1)
        ++counts[ids[i]];
    sum += balanceByDefinition(b.score, b.coefficient, b.top_k,
                               {logits.begin() + begin * b.experts, logits.begin() + (begin + b.sequence) * b.experts},
                               counts);
  }
  return sum / static_cast<double>(b.sequences);
}

double zByDefinition(int64_t experts, double coefficient, int64_t tokens, const std::vector<double> &logits) {
  double sum = 0;
  for (size_t begin = 0; begin < logits.size(); begin += experts) {
    double total = 0;
    for (int64_t e = 0; e < experts; ++e)
      total += std::exp(logits[begin + e]);
    sum += std::pow(std::log(total), 2);
  }
  return coefficient * sum / static_cast<double>(tokens);
}

std::vector<int32_t> randomIds(int64_t count, int64_t experts, int32_t least, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int32_t> uniform(least, static_cast<int32_t>(experts) - 1);
  std::vector<int32_t> ids(count);
  for (int32_t &id : ids)
    id = uniform(generator);
  return ids;
}

constexpr plr_score allScores[] = {PLR_SOFTMAX, PLR_TOP_K_SOFTMAX, PLR_SIGMOID};

/// One number on poisoned memory.
struct Scalar {
  Tensor tensor = Tensor(PLR_F32, 1);
  float *data() { return tensor.floats(); }
  double get() const {
    EXPECT_TRUE(tensor.endIsIntact());
    return tensor[0];
  }
};

TEST(Balance, CountsOfAllRanks) {
  for (plr_score score : allScores)
    for (int64_t tokens : {0, 1, 5})
      for (int64_t experts : {1, 3, 8}) {
        SCOPED_TRACE(testing::Message() << tokens << " tokens, " << experts << " experts, score " << score);
        plr_balance balance = {experts, 2, 0, 0, score, 0.25f};
        Tensor logits = randomTensor(PLR_F32, tokens * experts, 1, 2), gradient(PLR_F32, tokens * experts);
        std::vector<int32_t> counts(experts);
        for (int64_t e = 0; e < experts; ++e)
          counts[e] = static_cast<int32_t>(e * e % 5 + e);
        counts[0] += 3;
        Scalar loss;
        float cotangent = -3;
        ASSERT_EQ(host::balanceLoss(balance, tokens, logits.floats(), counts.data(), nullptr, loss.data()), "");
        ASSERT_EQ(host::balanceLossGrad(balance, tokens, &cotangent, logits.floats(), counts.data(), nullptr,
                                        gradient.floats()),
                  "");
        std::vector<double> values = logits.values();
        std::vector<int64_t> wide(counts.begin(), counts.end());
        auto function = [&] { return balanceByDefinition(score, 0.25, 2, values, wide); };
        EXPECT_NEAR(loss.get(), function(), 1e-6 * std::max(1.0, function()));
        std::vector<double> expected = differences([&] { return -3 * function(); }, values);
        expectClose(PLR_F32, gradient, expected, 1e-6, "gradient");
      }
}

TEST(Balance, Sequences) {
  for (plr_score score : allScores)
    for (auto [sequence, count] : {std::pair<int64_t, int64_t>(1, 1), {3, 0}, {1, 4}, {5, 3}}) {
      SCOPED_TRACE(testing::Message() << count << " sequences of " << sequence << ", score " << score);
      const int64_t experts = 4, topK = 3, tokens = sequence * count;
      plr_balance balance = {experts, topK, sequence, 7, score, 0.5f};
      Tensor logits = randomTensor(PLR_F32, tokens * experts, 3, 2), gradient(PLR_F32, tokens * experts);
      std::vector<int32_t> ids = randomIds(tokens * topK, experts, -1, 5);
      Scalar loss;
      float cotangent = 2;
      ASSERT_EQ(host::balanceLoss(balance, tokens, logits.floats(), nullptr, ids.data(), loss.data()), "");
      ASSERT_EQ(
          host::balanceLossGrad(balance, tokens, &cotangent, logits.floats(), nullptr, ids.data(), gradient.floats()),
          "");
      std::vector<double> values = logits.values();
      auto function = [&] { return balanceOfSequences(balance, values, ids); };
      EXPECT_NEAR(loss.get(), function(), 1e-6);
      expectClose(PLR_F32, gradient, differences([&] { return 2 * function(); }, values), 1e-6, "gradient");
    }
}

// However tokens are divided over ranks, the shares add up, and each token has its gradient.
TEST(Balance, SharesAddUp) {
  const int64_t experts = 6, tokens = 10, own = 3;
  plr_balance balance = {experts, 2, 0, 0, PLR_SOFTMAX, 1};
  Tensor logits = randomTensor(PLR_F32, tokens * experts, 1, 2), gradient(PLR_F32, tokens * experts);
  Tensor rest(PLR_F32, (tokens - own) * experts);
  std::vector<int32_t> counts = {9, 1, 2, 0, 5, 3};
  Scalar all, first, second;
  float one = 1;
  host::balanceLoss(balance, tokens, logits.floats(), counts.data(), nullptr, all.data());
  host::balanceLoss(balance, own, logits.floats(), counts.data(), nullptr, first.data());
  host::balanceLoss(balance, tokens - own, logits.floats() + own * experts, counts.data(), nullptr, second.data());
  EXPECT_NEAR(first.get() + second.get(), all.get(), 1e-6);
  host::balanceLossGrad(balance, tokens, &one, logits.floats(), counts.data(), nullptr, gradient.floats());
  host::balanceLossGrad(balance, tokens - own, &one, logits.floats() + own * experts, counts.data(), nullptr,
                        rest.floats());
  EXPECT_TRUE(rest.sameBits(gradient.slice(own * experts, (tokens - own) * experts)));
}

TEST(Balance, EvenCountsGiveTheCoefficient) {
  for (plr_score score : allScores) {
    plr_balance balance = {4, 2, 0, 0, score, 0.125f};
    Tensor logits = randomTensor(PLR_F32, 6 * 4, 1, 3);
    std::vector<int32_t> counts = {3, 3, 3, 3};
    Scalar loss;
    host::balanceLoss(balance, 6, logits.floats(), counts.data(), nullptr, loss.data());
    EXPECT_NEAR(loss.get(), 0.125, 1e-7);
  }
}

TEST(Balance, NoRoutes) {
  plr_balance balance = {3, 2, 2, 1, PLR_SOFTMAX, 1};
  Tensor logits = randomTensor(PLR_F32, 6, 1), gradient(PLR_F32, 6);
  std::vector<int32_t> counts(3), ids(4, -1);
  float one = 1;
  for (bool hasCounts : {true, false}) {
    Scalar loss;
    const int32_t *c = hasCounts ? counts.data() : nullptr, *i = hasCounts ? nullptr : ids.data();
    ASSERT_EQ(host::balanceLoss(balance, 2, logits.floats(), c, i, loss.data()), "");
    EXPECT_EQ(loss.get(), 0);
    ASSERT_EQ(host::balanceLossGrad(balance, 2, &one, logits.floats(), c, i, gradient.floats()), "");
    expectClose(PLR_F32, gradient, std::vector<double>(6), 0, "gradient");
  }
}

TEST(Balance, LargeCountsAndLogits) {
  plr_balance balance = {2, 1, 0, 0, PLR_SOFTMAX, 1};
  Tensor logits = tensorOf({1e4, -1e4}), gradient(PLR_F32, 2);
  std::vector<int32_t> counts = {INT32_MAX, INT32_MAX};
  Scalar loss;
  host::balanceLoss(balance, 1, logits.floats(), counts.data(), nullptr, loss.data());
  EXPECT_NEAR(loss.get() * 2.0 * INT32_MAX, 1, 1e-6); // One token of as many as there are routes.
  // Sigmoids that are 0 have no mean to divide by.
  balance.score = PLR_SIGMOID;
  Tensor low = tensorOf({-1e4, -1e4});
  host::balanceLoss(balance, 1, low.floats(), counts.data(), nullptr, loss.data());
  EXPECT_EQ(loss.get(), 0);
}

TEST(Balance, NaNShows) {
  plr_balance balance = {2, 1, 0, 0, PLR_SOFTMAX, 1};
  Tensor logits = tensorOf({0, NAN});
  std::vector<int32_t> counts = {1, 0};
  Scalar loss;
  host::balanceLoss(balance, 1, logits.floats(), counts.data(), nullptr, loss.data());
  EXPECT_TRUE(std::isnan(loss.get()));
  host::zLoss(1, 2, 1, 1, logits.floats(), loss.data());
  EXPECT_TRUE(std::isnan(loss.get()));
}

TEST(Balance, BadIntegersAreNamed) {
  plr_balance balance = {3, 2, 1, 2, PLR_SOFTMAX, 1};
  Tensor logits = randomTensor(PLR_F32, 6, 1), gradient(PLR_F32, 6);
  float one = 1, loss;
  std::vector<int32_t> counts = {1, 2, -4};
  const char *negative = "expert 2 has count -4, which is negative";
  EXPECT_EQ(host::balanceLoss(balance, 2, logits.floats(), counts.data(), nullptr, &loss), negative);
  EXPECT_EQ(host::balanceLossGrad(balance, 2, &one, logits.floats(), counts.data(), nullptr, gradient.floats()),
            negative);
  for (int32_t bad : {-2, 3}) {
    std::vector<int32_t> ids = {0, 1, -1, bad};
    std::string text = "token 1 has expert " + std::to_string(bad) + " in slot 1, but there are 3 experts";
    for (const std::string &fault :
         {host::balanceLoss(balance, 2, logits.floats(), nullptr, ids.data(), &loss),
          host::balanceLossGrad(balance, 2, &one, logits.floats(), nullptr, ids.data(), gradient.floats())})
      EXPECT_EQ(fault.find(text), 0u) << fault;
  }
}

TEST(ZLoss, AgreesWithTheDefinition) {
  for (int64_t rows : {0, 1, 7})
    for (int64_t experts : {1, 2, 9}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << experts);
      Tensor logits = randomTensor(PLR_F32, rows * experts, 2, 2), gradient(PLR_F32, rows * experts);
      Scalar loss;
      float cotangent = 1.5;
      host::zLoss(rows, experts, 14, 0.5f, logits.floats(), loss.data());
      host::zLossGrad(rows, experts, 14, 0.5f, &cotangent, logits.floats(), gradient.floats());
      std::vector<double> values = logits.values();
      auto function = [&] { return zByDefinition(experts, 0.5, 14, values); };
      EXPECT_NEAR(loss.get(), function(), 1e-6);
      expectClose(PLR_F32, gradient, differences([&] { return 1.5 * function(); }, values), 1e-6, "gradient");
    }
}

TEST(ZLoss, LargeLogits) {
  Tensor logits = tensorOf({1000, 1000, -1000, -1000}), gradient(PLR_F32, 4);
  Scalar loss;
  float one = 1;
  host::zLoss(2, 2, 2, 1, logits.floats(), loss.data());
  double up = 1000 + std::log(2.0), down = -1000 + std::log(2.0);
  EXPECT_NEAR(loss.get(), (up * up + down * down) / 2, 0.1);
  host::zLossGrad(2, 2, 2, 1, &one, logits.floats(), gradient.floats());
  expectClose(PLR_F32, gradient, {up / 2, up / 2, down / 2, down / 2}, 1e-6, "gradient");
}

TEST(UpdateBias, MovesAgainstTheLoads) {
  Tensor bias = tensorOf({0.5, 0.5, 0.5, 0.5});
  std::vector<int32_t> counts = {7, 2, 3, 0}; // 3 on average
  float factor = 0.125;
  host::updateBias(4, 0.25f, counts.data(), &factor, bias.floats());
  EXPECT_EQ(bias.values(), (std::vector<double>{0.25, 0.75, 0.5, 0.75}));
  EXPECT_TRUE(bias.endIsIntact());
}

// 2^31 - 1 routes to each of two experts and one less to the third: no sum in 32 bits, no mean in floating point.
TEST(UpdateBias, CountsWholeNumbers) {
  Tensor bias = tensorOf({0, 0, 0});
  std::vector<int32_t> counts = {INT32_MAX, INT32_MAX, INT32_MAX - 1};
  float factor = 1;
  host::updateBias(3, 1, counts.data(), &factor, bias.floats());
  EXPECT_EQ(bias.values(), (std::vector<double>{-1, -1, 1}));
}

TEST(UpdateBias, ASkippedStepMovesNothing) {
  for (float factor : {NAN, INFINITY}) {
    Tensor bias = tensorOf({1, 2});
    std::vector<int32_t> counts = {5, 0};
    host::updateBias(2, 0.5f, counts.data(), &factor, bias.floats());
    EXPECT_EQ(bias.values(), (std::vector<double>{1, 2}));
  }
}

} // namespace
