//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Orders of tasks drawn from a seed, with several ranks: collectives on two lanes beside each other, and plans.
#include "plateau/runtime_footprint.h"
#include "ranks.h"
#include <cmath>

using namespace plateau::rt::test;

namespace {

constexpr plr_tag tag = {"moe.all_reduce", 1, PLR_DENSE, PLR_FORWARD};

class InterleavedRanks : public testing::TestWithParam<int> {
protected:
  int32_t ranks = GetParam();
  /// `body` is a function of a rank and its number. Each rank draws from a seed of its own.
  template <typename Body>
  void runSeeds(const Body &body) {
    for (uint64_t seed = 1; seed <= 25; ++seed) {
      Transport transport(ranks);
      std::vector<std::unique_ptr<Rank>> contexts;
      plr_config config = makeConfig();
      config.ranks = ranks;
      config.transport = transport;
      for (config.rank = 0; config.rank < ranks; ++config.rank) {
        config.schedule_seed = seed * 1000 + static_cast<uint64_t>(config.rank);
        contexts.push_back(std::make_unique<Rank>(config));
      }
      std::vector<std::thread> threads;
      for (int32_t number = 0; number < ranks; ++number)
        threads.emplace_back([&, number] {
          body(*contexts[number], number);
          EXPECT_EQ(plr_synchronize(*contexts[number]), PLR_OK) << contexts[number]->message();
        });
      for (std::thread &thread : threads)
        thread.join();
    }
  }
};

} // namespace

// Sums on two lanes that know nothing of each other: the ranks come to them in different orders.
TEST_P(InterleavedRanks, MeetOnTwoLanesAtOnce) {
  runSeeds([&](Rank &rank, int32_t number) {
    plr_group *world = getWorld(rank, ranks);
    constexpr int count = 12;
    float inputs[2][count], results[2][count];
    for (int i = 0; i < count; ++i)
      for (int lane = 0; lane < 2; ++lane) {
        inputs[lane][i] = static_cast<float>(100 * lane + i + number);
        plr_all_reduce(rank.lane(lane), &tag, world, PLR_F32, 1, &inputs[lane][i], &results[lane][i]);
      }
    plr_synchronize(rank);
    for (int i = 0; i < count; ++i)
      for (int lane = 0; lane < 2; ++lane)
        EXPECT_EQ(results[lane][i], static_cast<float>(ranks * (100 * lane + i) + ranks * (ranks - 1) / 2));
  });
}

// A chain through both lanes: each sum is of the one before.
TEST_P(InterleavedRanks, KeepWaitsBetweenCollectives) {
  runSeeds([&](Rank &rank, int32_t) {
    plr_group *world = getWorld(rank, ranks);
    float value = 1, next = 0;
    for (int i = 0; i < 6; ++i) {
      plr_lane *lane = rank.lane(i % 2), *other = rank.lane((i + 1) % 2);
      plr_all_reduce(lane, &tag, world, PLR_F32, 1, i % 2 ? &next : &value, i % 2 ? &value : &next);
      plr_wait(other, plr_record(lane));
    }
    plr_synchronize(rank);
    EXPECT_EQ(value, std::pow(static_cast<float>(ranks), 6.0f));
  });
}

// Plans on one lane, rows on the other, with a fence between.
TEST_P(InterleavedRanks, FillAndUsePlans) {
  runSeeds([&](Rank &rank, int32_t number) {
    plr_group *world = getWorld(rank, ranks);
    const int64_t hostBytes = plr_footprint_plan_host(ranks, ranks),
                  deviceBytes = plr_footprint_plan_device(ranks, 4, 1),
                  stagingBytes = plr_footprint_exchange(ranks, 4, 4 * ranks, 4, 0);
    void *host = plr_allocate(rank, PLR_HOST, hostBytes, &tag),
         *device = plr_allocate(rank, PLR_DEVICE, deviceBytes, &tag),
         *staging = plr_allocate(rank, PLR_DEVICE, stagingBytes, &tag);
    for (int round = 0; round < 3; ++round) {
      // Token i of each rank goes to rank (i + round) % ranks and comes back.
      int32_t ids[4];
      float input[4], result[4] = {}, rows[4 * 8];
      for (int i = 0; i < 4; ++i) {
        ids[i] = (i + round) % ranks;
        input[i] = static_cast<float>(10 * number + i);
      }
      plr_plan_fill(rank.lane(PLR_COMM), &tag, world, 4, 1, ranks, ids, host, hostBytes, device, deviceBytes);
      plr_event *filled = plr_record(rank.lane(PLR_COMM));
      plr_wait(rank.lane(), filled);
      ASSERT_EQ(plr_fence(filled), PLR_OK) << rank.message();
      auto *plan = static_cast<plr_plan *>(host);
      plr_dispatch(rank.lane(), &tag, plan, PLR_F32, 1, input, nullptr, rows, nullptr, staging, stagingBytes);
      plr_combine(rank.lane(), &tag, plan, PLR_F32, 1, rows, nullptr, result, nullptr, staging, stagingBytes);
      plr_wait(rank.lane(PLR_COMM), plr_record(rank.lane()));
      ASSERT_EQ(plr_fence(plr_record(rank.lane(PLR_COMM))), PLR_OK) << rank.message();
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(result[i], input[i]);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, InterleavedRanks, testing::Values(1, 2, 4), testing::PrintToStringParamName());
