//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// The calls of a vocabulary loss by tiles, and of tables that lie in shards: arguments in their places, refusals, and
// what is enqueued. What the kernels compute is tested with the kernels.
#include "rank.h"
#include <cmath>
#include <limits>

using namespace plateau::rt::test;

namespace {
using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

/// A loss of the logits 0 … 7 in two tiles of four, with bias 1 in the second, and its gradient as bf16 and f32.
struct TileCase {
  plr_vocabulary options = {8, -100, 0, 0, 0};
  int64_t rows = 1, columns = 4, column = 4;
  plr_type resultType = PLR_F32;
  Ints first = {0}, labels = {6};
  Floats low = {0, 1, 2, 3}, high = {4, 5, 6, 7}, bias = Floats(4, 1), state = Floats(3), merged = Floats(3),
         losses = Floats(1), lse = Floats(1), cotangents = {2}, result = Floats(4), sums = Floats(4, 10);

  plr_status fold(plr_lane *lane) {
    return plr_fold_logits(lane, &lossTag, &options, rows, columns, column, first.data(), high.data(), bias.data(),
                           labels.data(), state.data());
  }
  plr_status grad(plr_lane *lane) {
    return plr_logits_grad(lane, &lossTag, &options, resultType, rows, columns, column, first.data(), high.data(),
                           bias.data(), labels.data(), lse.data(), cotangents.data(), result.data());
  }
  plr_status finish(plr_lane *lane) {
    return plr_finish_losses(lane, &lossTag, &options, rows, merged.data(), labels.data(), losses.data(), lse.data());
  }
};
} // namespace

TEST(LossCalls, ByTiles) {
  plr_config config = makeConfig();
  config.trace = 1;
  Rank rank(config);
  TileCase c;
  plr_lane *lane = rank.lane();
  plr_fold_logits(lane, &lossTag, &c.options, 1, 4, 0, c.first.data(), c.low.data(), nullptr, c.labels.data(),
                  c.state.data());
  c.fold(lane);
  plr_merge_states(lane, &lossTag, &c.options, 1, 1, c.state.data(), c.merged.data());
  c.finish(lane);
  c.grad(lane);
  plr_column_sums(lane, &lossTag, PLR_F32, 1, 4, c.result.data(), c.sums.data());
  c.options = {}; // The calls have copied it.
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  const double logits[] = {0, 1, 2, 3, 5, 6, 7, 8};
  double total = 0;
  for (double logit : logits)
    total += std::exp(logit);
  EXPECT_NEAR(c.lse[0], std::log(total), 1e-6);
  EXPECT_NEAR(c.losses[0], std::log(total) - 7, 1e-6);
  for (int j = 0; j < 4; ++j) {
    double gradient = 2 * (std::exp(logits[4 + j]) / total - (j == 2 ? 1 : 0));
    EXPECT_NEAR(c.result[j], gradient, 1e-6);
    EXPECT_NEAR(c.sums[j], 10 + gradient, 1e-6);
  }
  const char *calls[] = {"plr_fold_logits",   "plr_fold_logits", "plr_merge_states",
                         "plr_finish_losses", "plr_logits_grad", "plr_column_sums"};
  plr_span spans[6];
  ASSERT_EQ(plr_trace(rank, 0, spans, 6), 6);
  for (int i = 0; i < 6; ++i) {
    EXPECT_STREQ(spans[i].call, calls[i]);
    EXPECT_GE(spans[i].end_ns, spans[i].start_ns);
  }
}

TEST(LossCalls, FinishNamesRowAndLabel) {
  TileCase c;
  c.labels = {8};
  EXPECT_CONTAINS(failWith(PLR_BAD_DATA, [&](plr_lane *lane) { c.finish(lane); }),
                  "plr_finish_losses of moe.nll (vocabulary, forward): row 0 has label 8, but the vocabulary has 8 "
                  "entries and the label that is ignored is -100");
}

// With padding, a bias, and what of the arguments may be null.
TEST(LossCalls, OverWholeRows) {
  Rank rank;
  plr_lane *lane = rank.lane();
  const plr_vocabulary options = {2, -100, 0.5f, 0.25f, 0};
  Floats input = {1, 2, 50}, bias = {1, 0, 50}, logProbs(3), lse(1), losses(1), loss(1), one = {1}, weight = {0.5f},
         cotangent(1), grad(3), lseGrad(1), result(3), biasGrad(3, 9);
  Ints label = {0};
  plr_log_softmax(lane, &lossTag, &options, 1, 3, input.data(), bias.data(), logProbs.data(), lse.data());
  plr_nll(lane, &lossTag, &options, 1, 3, logProbs.data(), lse.data(), label.data(), losses.data());
  plr_mean_loss(lane, &lossTag, 1, losses.data(), weight.data(), one.data(), loss.data());
  plr_mean_loss_grad(lane, &lossTag, 1, one.data(), weight.data(), one.data(), cotangent.data());
  plr_nll_grad(lane, &lossTag, &options, 1, 3, cotangent.data(), lse.data(), label.data(), grad.data(), lseGrad.data());
  plr_log_softmax_grad(lane, &lossTag, &options, 1, 3, grad.data(), lseGrad.data(), logProbs.data(), nullptr,
                       result.data(), biasGrad.data());
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  // Two logits of 2: either loss is log 2, and lse 2 + log 2.
  const double logTwo = std::log(2.0), all = 2 + logTwo;
  EXPECT_NEAR(lse[0], all, 1e-6);
  EXPECT_EQ(logProbs[2], -std::numeric_limits<float>::infinity());
  EXPECT_NEAR(losses[0], logTwo + 0.25 * all * all, 1e-6);
  EXPECT_NEAR(loss[0], losses[0] / 2, 1e-6);
  EXPECT_EQ(cotangent[0], 0.5f);
  const double share = 0.5 * 0.5 * (1 + 2 * 0.25 * all);
  const double expected[] = {share - 0.5 * 0.75, share - 0.5 * 0.25, 0};
  for (int j = 0; j < 3; ++j) {
    EXPECT_NEAR(result[j], expected[j], 1e-6);
    EXPECT_EQ(biasGrad[j], result[j]);
  }
}

TEST(LossCalls, RefuseOptions) {
  auto refuse = [](auto change, const char *text) {
    TileCase c;
    change(c);
    std::string messages[] = {
        failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) { c.fold(lane); }),
        failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) { c.grad(lane); }),
        failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) { c.finish(lane); }),
        failWith(PLR_INVALID_ARGUMENT,
                 [&](plr_lane *lane) {
                   plr_merge_states(lane, &lossTag, &c.options, 1, 1, c.state.data(), c.merged.data());
                 }),
        failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) {
          plr_log_softmax(lane, &lossTag, &c.options, 1, 4, c.low.data(), nullptr, c.result.data(), c.lse.data());
        })};
    for (const std::string &message : messages)
      EXPECT_CONTAINS(message, text);
  };
  refuse([](TileCase &c) { c.options.size = 0; }, "size is 0, but must be at least 1");
  refuse([](TileCase &c) { c.options.size = int64_t(1) << 31; }, "size is 2147483648, but labels have 32 bits");
  refuse([](TileCase &c) { c.options.label_smoothing = 1; },
         "label_smoothing is 1.000000, but must be at least 0 and less than 1");
  refuse([](TileCase &c) { c.options.label_smoothing = NAN; }, "label_smoothing is nan");
  refuse([](TileCase &c) { c.options.z_loss = -1; }, "z_loss is -1.000000, but must be at least 0 and finite");
  refuse([](TileCase &c) { c.options.z_loss = INFINITY; }, "z_loss is inf");
  refuse([](TileCase &c) { c.options.softcap = -2; }, "softcap is -2.000000, but must be at least 0 and finite");
  refuse([](TileCase &c) { c.options.softcap = NAN; }, "softcap is nan");
}

TEST(LossCalls, RefuseTiles) {
  auto refuse = [](auto change, const char *text) {
    TileCase c;
    change(c);
    EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) { c.fold(lane); }), text);
    EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) { c.grad(lane); }), text);
  };
  refuse([](TileCase &c) { c.rows = -1; }, "rows is -1");
  refuse([](TileCase &c) { c.columns = 0; }, "columns is 0, but must be at least 1");
  refuse([](TileCase &c) { c.column = -4; }, "column is -4");
  refuse([](TileCase &c) { c.column = int64_t(1) << 31; }, "column is 2147483648, but numbers of columns have 32 bits");
  refuse([](TileCase &c) { c.rows = c.columns = int64_t(1) << 31; }, "logits has more bytes than 64 bits can count");
  TileCase c;
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_fold_logits(lane, &lossTag, nullptr, 1, 4, 0, c.first.data(), c.low.data(), nullptr,
                                             c.labels.data(), c.state.data());
                           }),
                  "the vocabulary is null");
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_fold_logits(lane, &lossTag, &c.options, 1, 4, 0, nullptr, c.low.data(), nullptr,
                                             c.labels.data(), c.state.data());
                           }),
                  "first is null");
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_logits_grad(lane, &lossTag, &c.options, PLR_BF16, 1, 4, 0, c.first.data(),
                                             c.low.data(), nullptr, c.labels.data(), c.lse.data(), c.cotangents.data(),
                                             c.low.data());
                           }),
                  "result is logits, but bf16: it needs a tile of its own");
  c.resultType = PLR_I32;
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) { c.grad(lane); }), "result_type is 2");
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_merge_states(lane, &lossTag, &c.options, 0, 1, c.state.data(), c.merged.data());
                           }),
                  "parts is 0, but must be at least 1");
}

TEST(LossCalls, RefuseRowsThatAreTooShort) {
  const plr_vocabulary options = {5, -100, 0, 0.5f, 1};
  Floats numbers(8);
  Ints labels = {0};
  auto refuse = [&](auto call, const char *text) { EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT, call), text); };
  float *p = numbers.data();
  refuse([&](plr_lane *lane) { plr_log_softmax(lane, &lossTag, &options, 1, 4, p, nullptr, p, p); },
         "size is 5, but a row has 4 columns");
  refuse([&](plr_lane *lane) { plr_nll(lane, &lossTag, &options, 1, 4, p, p, labels.data(), p); },
         "size is 5, but a row has 4 columns");
  refuse([&](plr_lane *lane) { plr_nll_grad(lane, &lossTag, &options, 1, 4, p, p, labels.data(), p, p); },
         "size is 5, but a row has 4 columns");
  // Needed for the z-loss, and for the cap.
  refuse([&](plr_lane *lane) { plr_nll(lane, &lossTag, &options, 1, 5, p, nullptr, labels.data(), p); }, "lse is null");
  refuse([&](plr_lane *lane) { plr_nll_grad(lane, &lossTag, &options, 1, 5, p, p, labels.data(), p, nullptr); },
         "lse_grad is null");
  refuse(
      [&](plr_lane *lane) { plr_log_softmax_grad(lane, &lossTag, &options, 1, 5, p, nullptr, p, nullptr, p, nullptr); },
      "lse is null");
}

TEST(LossCalls, ShardStart) {
  Rank rank;
  Ints starts(6, -1);
  const int64_t hops[] = {0, 1, 2, 3, -1, INT64_MIN};
  for (int i = 0; i < 6; ++i)
    plr_shard_start(rank.lane(), &lossTag, 1, 4, hops[i], 1000, &starts[i]);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(starts, (Ints{1000, 0, 3000, 2000, 2000, 1000}));
  auto refuse = [](int64_t place, int64_t ranks, int64_t rows, const char *text) {
    int32_t start;
    EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                             [&](plr_lane *lane) { plr_shard_start(lane, &lossTag, place, ranks, 0, rows, &start); }),
                    text);
  };
  refuse(0, 0, 4, "ranks is 0");
  refuse(4, 4, 4, "place is 4, but must be at least 0 and less than ranks, 4");
  refuse(-1, 4, 4, "place is -1");
  refuse(0, 3, 1 << 30, "the last of 3 shards of 1073741824 rows begins behind row 2147483647");
  refuse(0, 4, -1, "shard_rows is -1");
}

TEST(LossCalls, EmbeddingShards) {
  Rank rank;
  // Rows 2 and 3 of four; the second shard.
  Floats shard = {5, 6, 7, 8}, result(8, -1), cotangent = {1, 2, 10, 20, 100, 200, 1000, 2000}, sums = {0.5f, 0, 0, 0};
  Ints first = {2}, ids = {3, 0, 2, 3};
  plr_embedding_shard(rank.lane(), &lossTag, PLR_F32, 4, 2, 2, 4, first.data(), shard.data(), ids.data(),
                      result.data());
  plr_embedding_shard_grad(rank.lane(), &lossTag, PLR_F32, 4, 2, 2, first.data(), cotangent.data(), ids.data(),
                           sums.data());
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(result, (Floats{7, 8, 0, 0, 5, 6, 7, 8}));
  EXPECT_EQ(sums, (Floats{100.5f, 200, 1001, 2002}));
  ids[2] = 4;
  EXPECT_CONTAINS(failWith(PLR_BAD_DATA,
                           [&](plr_lane *lane) {
                             plr_embedding_shard(lane, &lossTag, PLR_F32, 4, 2, 2, 4, first.data(), shard.data(),
                                                 ids.data(), result.data());
                           }),
                  "row 2 has token id 4, but the table has 4 rows");
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_embedding_shard(lane, &lossTag, PLR_F32, 4, 2, 2, 4, nullptr, shard.data(), ids.data(),
                                                 result.data());
                           }),
                  "first is null");
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_embedding_shard_grad(lane, &lossTag, PLR_F64, 4, 2, 2, first.data(), cotangent.data(),
                                                      ids.data(), sums.data());
                           }),
                  "type is 3");
}

// A context that prepares checks arguments and writes nothing.
TEST(LossCalls, PrepareWritesNothing) {
  Rank rank;
  plr_prepare(rank, 1);
  TileCase c;
  c.fold(rank.lane());
  c.grad(rank.lane());
  c.finish(rank.lane());
  int32_t start = -1;
  plr_shard_start(rank.lane(), &lossTag, 1, 2, 0, 5, &start);
  float input = 3, moved = -1;
  const int64_t one = 1;
  plr_shift(rank.lane(), &lossTag, plr_get_group(rank, &one, 1, 1), PLR_F32, 1, 1, &input, &moved);
  EXPECT_EQ(plr_prepare(rank, 0), PLR_OK) << rank.message();
  EXPECT_EQ(c.state, Floats(3));
  EXPECT_EQ(c.result, Floats(4));
  EXPECT_EQ(c.losses, Floats(1));
  EXPECT_EQ(start, -1);
  EXPECT_EQ(moved, -1);
}
