//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// The calls that even out experts: each reaches its kernel with its arguments in the right places, and refuses what no
// correct program asks for. What the kernels compute is tested with the kernels.
#include "rank.h"
#include <cmath>

using namespace plateau::rt::test;

namespace {
constexpr plr_tag lossOfRouter = {"moe.balance_loss balance", 4, PLR_ROUTING, PLR_FORWARD};
constexpr plr_tag updateTag = {"moe.update_bias", 4, PLR_OPTIMIZER, PLR_OPTIMIZER_PHASE};

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
} // namespace

// Scores 1/4 and 3/4 of one token, of the 2 that have 4 routes, 1 to 3: 0.5 · 2 · 2 / 16 · (1 · 1/4 + 3 · 3/4).
TEST(BalanceCalls, BalanceLoss) {
  Rank rank;
  Floats logits = {0, std::log(3.0f)}, gradient(2, -1), cotangent = {2};
  Ints counts = {1, 3}, ids = {0, 1};
  float loss = -1, ofSequence = -1;
  plr_balance balance = {2, 2, 0, 0, PLR_SOFTMAX, 0.5f};
  plr_balance_loss(rank.lane(), &lossOfRouter, &balance, 1, logits.data(), counts.data(), nullptr, &loss);
  plr_balance_loss_grad(rank.lane(), &lossOfRouter, &balance, 1, cotangent.data(), logits.data(), counts.data(),
                        nullptr, gradient.data());
  balance.sequence = 1;
  balance.sequences = 8;
  plr_balance_loss(rank.lane(), &lossOfRouter, &balance, 1, logits.data(), nullptr, ids.data(), &ofSequence);
  balance = {}; // The calls have copied it.
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_NEAR(loss, 0.3125, 1e-6);
  // 2 · 1/8 · s (c - mean), where the mean is 2.5.
  EXPECT_NEAR(gradient[0], -0.09375, 1e-6);
  EXPECT_NEAR(gradient[1], 0.09375, 1e-6);
  EXPECT_NEAR(ofSequence, 0.0625, 1e-6);
}

TEST(BalanceCalls, BalanceLossNamesWhatIsWrong) {
  Floats numbers(8);
  Ints ids = {0, 1, 2, 7}, counts = {1, -1, 0, 0};
  plr_balance balance = {4, 2, 2, 1, PLR_SOFTMAX, 1};
  std::string message = failWith(PLR_BAD_DATA, [&](plr_lane *lane) {
    plr_balance_loss(lane, &lossOfRouter, &balance, 2, numbers.data(), nullptr, ids.data(), numbers.data());
  });
  EXPECT_CONTAINS(message, "plr_balance_loss of moe.balance_loss balance (layer 4, routing, forward): "
                           "token 1 has expert 7 in slot 1");
  message = failWith(PLR_BAD_DATA, [&](plr_lane *lane) {
    plr_balance_loss_grad(lane, &lossOfRouter, &balance, 2, numbers.data(), numbers.data(), counts.data(), nullptr,
                          numbers.data());
  });
  EXPECT_CONTAINS(message, "plr_balance_loss_grad of moe.balance_loss balance (layer 4, routing, forward): "
                           "expert 1 has count -1");
}

TEST(BalanceCalls, BalancesAreChecked) {
  Floats numbers(64);
  Ints ids(64);
  auto refuse = [&](plr_balance balance, int64_t tokens, bool hasCounts, bool hasIds, const std::string &part) {
    const int32_t *c = hasCounts ? ids.data() : nullptr, *i = hasIds ? ids.data() : nullptr;
    float *n = numbers.data();
    EXPECT_CONTAINS(
        failWith(PLR_INVALID_ARGUMENT,
                 [&](plr_lane *lane) { plr_balance_loss(lane, &lossOfRouter, &balance, tokens, n, c, i, n); }),
        part);
    EXPECT_CONTAINS(
        failWith(PLR_INVALID_ARGUMENT,
                 [&](plr_lane *lane) { plr_balance_loss_grad(lane, &lossOfRouter, &balance, tokens, n, n, c, i, n); }),
        part);
  };
  refuse({0, 2, 0, 0, 0, 1}, 4, true, false, "experts is 0, but must be at least 1");
  refuse({4, 0, 0, 0, 0, 1}, 4, true, false, "top_k is 0, but must be at least 1");
  refuse({4, 2, 0, 0, 3, 1}, 4, true, false, "score is 3, but must be 0 (softmax), 1 (top-k softmax) or 2 (sigmoid)");
  refuse({4, 2, 0, 0, 0, -1}, 4, true, false, "coefficient is -1.000000, but must be finite and not negative");
  refuse({4, 2, 0, 0, 0, NAN}, 4, true, false, "coefficient is nan");
  refuse({4, 2, 0, 0, 0, 1}, -1, true, false, "tokens is -1, but must be at least 0");
  refuse({4, 2, 0, 0, 0, 1}, 4, true, true, "there must be counts or ids, and not both");
  refuse({4, 2, 2, 2, 0, 1}, 4, false, false, "there must be counts or ids, and not both");
  refuse({4, 2, 0, 2, 0, 1}, 4, false, true, "sequence is 0, but must be at least 1");
  refuse({4, 2, 3, 2, 0, 1}, 4, false, true, "sequence is 3, but must divide tokens, 4");
  refuse({4, 2, 2, 0, 0, 1}, 4, false, true, "sequences is 0, but must be at least 1");
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_balance_loss(lane, &lossOfRouter, nullptr, 1, numbers.data(), ids.data(), nullptr,
                                              numbers.data());
                           }),
                  "the balance is null");
  plr_balance balance = {4, 2, 0, 0, 0, 1};
  auto loss = [&](const float *logits, float *result) {
    return failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) {
      plr_balance_loss(lane, &lossOfRouter, &balance, 1, logits, ids.data(), nullptr, result);
    });
  };
  EXPECT_CONTAINS(loss(nullptr, numbers.data()), "logits is null");
  EXPECT_CONTAINS(loss(numbers.data(), nullptr), "result is null");
}

// log(1 + 3) squared, over 2 tokens: its derivative by each logit is log 4 times the softmax.
TEST(BalanceCalls, ZLoss) {
  Rank rank;
  Floats logits = {0, std::log(3.0f)}, gradient(2, -1), cotangent = {3};
  float loss = -1;
  plr_z_loss(rank.lane(), &lossOfRouter, 1, 2, 2, 0.5f, logits.data(), &loss);
  plr_z_loss_grad(rank.lane(), &lossOfRouter, 1, 2, 2, 0.5f, cotangent.data(), logits.data(), gradient.data());
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  double z = std::log(4.0);
  EXPECT_NEAR(loss, 0.25 * z * z, 1e-6);
  EXPECT_NEAR(gradient[0], 3 * 0.5 * z * 0.25, 1e-6);
  EXPECT_NEAR(gradient[1], 3 * 0.5 * z * 0.75, 1e-6);
}

TEST(BalanceCalls, ZLossIsChecked) {
  Floats numbers(8);
  auto refuse = [&](int64_t rows, int64_t experts, int64_t tokens, float coefficient, const std::string &part) {
    EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                             [&](plr_lane *lane) {
                               plr_z_loss(lane, &lossOfRouter, rows, experts, tokens, coefficient, numbers.data(),
                                          numbers.data());
                             }),
                    part);
    EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                             [&](plr_lane *lane) {
                               plr_z_loss_grad(lane, &lossOfRouter, rows, experts, tokens, coefficient, numbers.data(),
                                               numbers.data(), numbers.data());
                             }),
                    part);
  };
  refuse(-1, 2, 2, 1, "rows is -1, but must be at least 0");
  refuse(1, 0, 2, 1, "experts is 0, but must be at least 1");
  refuse(1, 2, 0, 1, "tokens is 0, but must be at least 1");
  refuse(1, 2, 2, INFINITY, "coefficient is inf, but must be finite and not negative");
}

TEST(BalanceCalls, UpdateBias) {
  Rank rank;
  Floats bias = {1, 2, 3}, factor = {1};
  Ints counts = {5, 1, 3};
  plr_update_bias(rank.lane(), &updateTag, 3, 0.5f, counts.data(), factor.data(), bias.data());
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(bias, (Floats{0.5, 2.5, 3}));
}

TEST(BalanceCalls, UpdateBiasIsChecked) {
  Floats numbers(2);
  Ints counts(2);
  auto refuse = [&](int64_t experts, float rate, int32_t *c, float *bias, const std::string &part) {
    EXPECT_CONTAINS(
        failWith(PLR_INVALID_ARGUMENT,
                 [&](plr_lane *lane) { plr_update_bias(lane, &updateTag, experts, rate, c, numbers.data(), bias); }),
        part);
  };
  refuse(-1, 1, counts.data(), numbers.data(), "experts is -1, but must be at least 0");
  refuse(2, -1, counts.data(), numbers.data(), "rate is -1.000000, but must be finite and not negative");
  refuse(2, 1, nullptr, numbers.data(), "counts is null");
  refuse(2, 1, counts.data(), nullptr, "bias is null");
}
