//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Data that move round a group: where they come from, and what goes wrong.

#include "kernels_support.h"
#include "ranks.h"
#include <set>

using namespace plateau::rt::test;

namespace {

constexpr plr_tag shiftTag = {"moe.shift", -1, PLR_VOCABULARY, PLR_FORWARD};

class Shift : public testing::TestWithParam<int> {};

} // namespace

// Rank r has 1000·r + i and gets what rank r − hops has: data move on to higher ranks.
TEST_P(Shift, BringsWhatLiesHopsBefore) {
  const int32_t ranks = GetParam();
  Ranks run(ranks);
  for (int64_t hops : {-5, -1, 0, 1, 2, 3, 4, 7})
    for (int64_t count : {0, 1, 1000}) {
      run.runWell([&](Rank &rank, int32_t number) {
        std::vector<int32_t> input(count), result(count, -1), expected(count);
        const int64_t source = ((number - hops) % ranks + ranks) % ranks;
        for (int64_t i = 0; i < count; ++i) {
          input[i] = static_cast<int32_t>(1000 * number + i);
          expected[i] = static_cast<int32_t>(1000 * source + i);
        }
        const std::vector<int32_t> before = input;
        plr_shift(rank.lane(PLR_COMM), &shiftTag, getWorld(rank, ranks), PLR_I32, hops, count, input.data(),
                  result.data());
        plr_synchronize(rank);
        EXPECT_EQ(result, expected) << "rank " << number << " by " << hops;
        EXPECT_EQ(input, before);
      });
    }
}

TEST_P(Shift, MovesEveryType) {
  const int32_t ranks = GetParam();
  Ranks run(ranks);
  const int64_t widths[] = {4, 2, 4, 8};
  for (plr_type type : {PLR_F32, PLR_BF16, PLR_I32, PLR_F64})
    run.runWell([&](Rank &rank, int32_t number) {
      const int64_t bytes = 37 * widths[type];
      std::vector<unsigned char> input(bytes, static_cast<unsigned char>(number)), result(bytes + 8, 0xee);
      plr_shift(rank.lane(), &shiftTag, getWorld(rank, ranks), type, 1, 37, input.data(), result.data());
      plr_synchronize(rank);
      for (int64_t i = 0; i < bytes + 8; ++i)
        ASSERT_EQ(result[i], i < bytes ? (number + ranks - 1) % ranks : 0xee) << "type " << type << " byte " << i;
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Shift, testing::Values(1, 2, 3, 4), testing::PrintToStringParamName());

// Two buffers in turn, as a ring of shards uses them: nobody's memory is written while another still reads it.
TEST(ShiftRing, TakesManyTurns) {
  const int32_t ranks = 3;
  Ranks run(ranks);
  run.runWell([&](Rank &rank, int32_t number) {
    std::vector<int32_t> buffers[2] = {std::vector<int32_t>(5000, number), std::vector<int32_t>(5000)};
    std::vector<int32_t> seen(200);
    plr_lane *lane = rank.lane(PLR_COMM);
    for (int turn = 0; turn < 200; ++turn) {
      plr_copy(lane, &shiftTag, &seen[turn], &buffers[turn % 2][4999], 4);
      plr_shift(lane, &shiftTag, getWorld(rank, ranks), PLR_I32, 1, 5000, buffers[turn % 2].data(),
                buffers[1 - turn % 2].data());
    }
    plr_synchronize(rank);
    for (int turn = 0; turn < 200; ++turn)
      ASSERT_EQ(seen[turn], ((number - turn) % ranks + ranks) % ranks) << turn;
  });
}

// Ranks 0 1 / 2 3: along the first axis 0 2 and 1 3.
TEST(ShiftRing, StaysInItsGroup) {
  Ranks run(4);
  run.runWell([&](Rank &rank, int32_t number) {
    const int64_t grid[] = {2, 2};
    int32_t value = number, first = -1, second = -1;
    plr_shift(rank.lane(), &shiftTag, plr_get_group(rank, grid, 2, 1), PLR_I32, 1, 1, &value, &first);
    plr_shift(rank.lane(), &shiftTag, plr_get_group(rank, grid, 2, 2), PLR_I32, -1, 1, &value, &second);
    plr_synchronize(rank);
    EXPECT_EQ(first, number ^ 2);
    EXPECT_EQ(second, number ^ 1);
  });
}

/// Both ranks of two shift; both fail before a result is written.
static void expectMismatch(std::array<plr_type, 2> types, std::array<int64_t, 2> hops, std::array<int64_t, 2> counts,
                           const char *first, const char *second) {
  Ranks run(2);
  run.run([&](Rank &rank, int32_t number) {
    double input[16] = {}, result = -1;
    std::vector<double> results(16, -1);
    plr_shift(rank.lane(PLR_COMM), &shiftTag, getWorld(rank, 2), types[number], hops[number], counts[number], input,
              results.data());
    EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
    EXPECT_CONTAINS(rank.message(), "the ranks of group [0, 1] disagree about their collective 1");
    EXPECT_CONTAINS(rank.message(), first);
    EXPECT_CONTAINS(rank.message(), second);
    EXPECT_EQ(results, std::vector<double>(16, result));
  });
}

TEST(ShiftMismatch, IsNamed) {
  expectMismatch({PLR_F32, PLR_F32}, {1, 2}, {8, 8},
                 "rank 0 with plr_shift of 8 f32 by 1 hop for moe.shift (vocabulary, forward)",
                 "rank 1 with plr_shift of 8 f32 by 2 hops for moe.shift (vocabulary, forward)");
  expectMismatch({PLR_F32, PLR_F32}, {1, 0}, {8, 8}, "rank 0 with plr_shift of 8 f32 by 1 hop for",
                 "rank 1 with plr_shift of 8 f32 for");
  expectMismatch({PLR_F32, PLR_F32}, {-1, -1}, {8, 7}, "rank 0 with plr_shift of 8 f32 by -1 hops for",
                 "rank 1 with plr_shift of 7 f32 by -1 hops for");
  expectMismatch({PLR_F32, PLR_BF16}, {1, 1}, {8, 8}, "rank 0 with plr_shift of 8 f32 by 1 hop for",
                 "rank 1 with plr_shift of 8 bf16 by 1 hop for");
}

TEST(ShiftMismatch, OfTheKind) {
  Ranks run(2);
  run.run([&](Rank &rank, int32_t number) {
    float input[2] = {}, result[4] = {};
    number == 0 ? plr_shift(rank.lane(), &shiftTag, getWorld(rank, 2), PLR_F32, 1, 2, input, result)
                : plr_all_gather(rank.lane(), &shiftTag, getWorld(rank, 2), PLR_F32, 2, input, result);
    EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
    EXPECT_CONTAINS(rank.message(), "the ranks do not make the same call");
  });
}

TEST(ShiftMisuse, IsNamed) {
  auto refuse = [](int32_t ranks, auto call) {
    Ranks run(ranks);
    alignas(64) double values[64] = {};
    call(run[0].lane(), getWorld(run[0], ranks), values);
    EXPECT_EQ(plr_context_error(run[0], nullptr), PLR_INVALID_ARGUMENT);
    return run[0].message();
  };
  for (int32_t ranks : {1, 2}) {
    EXPECT_CONTAINS(refuse(ranks, [](plr_lane *lane, plr_group *group,
                                     double *v) { plr_shift(lane, &shiftTag, group, PLR_F64, 1, 8, v, v); }),
                    "plr_shift of moe.shift (vocabulary, forward): input and result overlap");
    EXPECT_CONTAINS(refuse(ranks, [](plr_lane *lane, plr_group *group,
                                     double *v) { plr_shift(lane, &shiftTag, group, PLR_F64, 0, 8, v, v + 7); }),
                    "input and result overlap");
  }
  EXPECT_CONTAINS(refuse(2, [](plr_lane *lane, plr_group *,
                               double *v) { plr_shift(lane, &shiftTag, nullptr, PLR_F32, 1, 8, v, v + 32); }),
                  "the group is null");
  EXPECT_CONTAINS(refuse(2, [](plr_lane *lane, plr_group *group,
                               double *v) { plr_shift(lane, &shiftTag, group, PLR_F32, 1, -1, v, v + 32); }),
                  "count is -1");
  EXPECT_CONTAINS(refuse(2, [](plr_lane *lane, plr_group *group,
                               double *v) { plr_shift(lane, &shiftTag, group, 7, 1, 8, v, v + 32); }),
                  "type is 7");
  EXPECT_CONTAINS(refuse(2, [](plr_lane *lane, plr_group *group,
                               double *) { plr_shift(lane, &shiftTag, group, PLR_F32, 1, 8, nullptr, nullptr); }),
                  "input is null");
}

// Logits 0 … 7 in two shards, which the ranks pass round; each rank has the label 3 of a row.
TEST(ShiftRing, OfALossOverShards) {
  for (float smoothing : {0.0f, 0.1f})
    for (float scale : {1.0f, 1000.0f}) {
      const int64_t ranks = 2;
      Ranks run(ranks);
      run.runWell([&](Rank &rank, int32_t number) {
        const plr_vocabulary options = {8, -100, smoothing, 0, 0};
        plr_lane *lane = rank.lane();
        std::vector<float> shards[2] = {std::vector<float>(4), std::vector<float>(4)}, state(4), loss(1), lse(1);
        for (int i = 0; i < 4; ++i)
          shards[0][i] = scale * static_cast<float>(4 * number + i);
        const int32_t label = 3;
        std::vector<int32_t> starts(ranks, -1);
        for (int64_t hops = 0; hops < ranks; ++hops) {
          plr_shard_start(lane, &shiftTag, number, ranks, hops, 4, &starts[hops]);
          plr_fold_logits(lane, &shiftTag, &options, 1, 4, 0, &starts[hops], shards[hops].data(), nullptr, &label,
                          state.data());
          if (hops + 1 < ranks)
            plr_shift(lane, &shiftTag, getWorld(rank, ranks), PLR_F32, 1, 4, shards[0].data(), shards[1].data());
        }
        plr_finish_losses(lane, &shiftTag, &options, 1, state.data(), &label, loss.data(), lse.data());
        plr_synchronize(rank);
        EXPECT_EQ(starts, (std::vector<int32_t>{4 * number, 4 - 4 * number}));
        // lse is 7 + log(1.57870...), and 7000; the label's logit 3, the mean 3.5.
        const double expected = scale == 1 ? (smoothing == 0 ? 4.458340 : 4.408340) : (smoothing == 0 ? 4000 : 3950);
        EXPECT_NEAR(loss[0], expected, scale * 1e-6);
      });
    }
}
