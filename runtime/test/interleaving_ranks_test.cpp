//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Orders of tasks drawn from a seed, with several ranks: collectives on two lanes beside each other, and plans.
#include "plan_shape.h"
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
    const int64_t hostBytes = getPlanHostBytes(ranks, makeShape(4, 1, ranks)),
                  deviceBytes = plr_footprint_plan_device(4, 1), stagingBytes = plr_footprint_exchange(ranks, 4, 4, 0);
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
      fillPlan(rank.lane(PLR_COMM), &tag, world, 4, 1, ranks, ids, host, hostBytes, device, deviceBytes);
      plr_event *filled = plr_record(rank.lane(PLR_COMM));
      plr_wait(rank.lane(), filled);
      ASSERT_EQ(plr_fence(filled), PLR_OK) << rank.message();
      auto *plan = static_cast<plr_plan *>(host);
      plr_dispatch(rank.lane(), &tag, plan, 0, PLR_F32, 1, input, nullptr, rows, nullptr, staging, stagingBytes);
      plr_combine(rank.lane(), &tag, plan, 0, PLR_F32, 1, rows, nullptr, result, nullptr, staging, stagingBytes);
      plr_wait(rank.lane(PLR_COMM), plr_record(rank.lane()));
      ASSERT_EQ(plr_fence(plr_record(rank.lane(PLR_COMM))), PLR_OK) << rank.message();
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(result[i], input[i]);
    }
  });
}

// A pipeline: rows of the next iteration go out on one lane while those of this one are computed on the other; buffers
// take turns. Without one of the waits some order of tasks shows.
TEST_P(InterleavedRanks, OverlapIterations) {
  runSeeds([&](Rank &rank, int32_t number) {
    plr_group *world = getWorld(rank, ranks);
    plr_lane *comm = rank.lane(PLR_COMM), *compute = rank.lane();
    // 13 + number tokens of 2 slots, most of them to rank 0's experts, 4 chunks of 3 leaves, 12 rows at most.
    const int64_t tokens = 13 + number, experts = 2 * ranks, most = ranks * 4;
    plr_plan_shape shape = makeShape(tokens, 2, experts);
    shape.chunks = 4;
    shape.leaves = 4;
    shape.capacity = most;
    if (ranks > 1) {
      shape.helper_slots = 1;
      shape.alpha_numerator = 1;
    }
    std::vector<int32_t> ids(2 * tokens);
    std::vector<float> input(tokens), result(tokens, -1);
    for (int64_t i = 0; i < tokens; ++i) {
      ids[2 * i] = static_cast<int32_t>(i % 3 == 0 ? (i + number) % experts : 0);
      ids[2 * i + 1] = static_cast<int32_t>(i % 4 == 0 ? -1 : (5 * i + number) % experts);
      input[i] = static_cast<float>(100 * number + i);
    }
    const float own[2] = {static_cast<float>(4 * number + 2), static_cast<float>(4 * number + 4)}; // Expert e: 2 + 2e.
    float helpers[1] = {-1};
    const int64_t hostBytes = getPlanHostBytes(ranks, shape), deviceBytes = plr_footprint_plan_device(tokens, 2),
                  stagingBytes = plr_footprint_exchange(ranks, 2 * ((tokens + 3) / 4), 4, 0);
    void *host = plr_allocate(rank, PLR_HOST, hostBytes, &tag),
         *device = plr_allocate(rank, PLR_DEVICE, deviceBytes, &tag),
         *staging = plr_allocate(rank, PLR_DEVICE, stagingBytes, &tag);
    plr_plan_fill(comm, &tag, world, &shape, ids.data(), host, hostBytes, device, deviceBytes);
    ASSERT_EQ(plr_fence(plr_record(comm)), PLR_OK) << rank.message();
    auto *plan = static_cast<plr_plan *>(host);
    plr_migrate_experts(comm, &tag, plan, PLR_F32, 1, own, helpers);

    std::vector<float> rows(2 * most, -1), products(2 * most, -1);
    plr_event *sent = nullptr, *computed = nullptr;
    auto dispatch = [&](int64_t i) {
      plr_dispatch(comm, &tag, plan, i, PLR_F32, 1, input.data(), nullptr, &rows[i % 2 * most], nullptr, staging,
                   stagingBytes);
      sent = plr_record(comm);
    };
    dispatch(0);
    for (int64_t i = 0; i < 16; ++i) {
      plr_wait(compute, sent); // Behind it on the lane is the combine of two iterations ago.
      plr_event *before = computed;
      plr_grouped_gemm(compute, &tag, plan, i, 0, PLR_F32, 1, 1, &rows[i % 2 * most], own, helpers,
                       &products[i % 2 * most], nullptr, PLR_FROM_POOL);
      computed = plr_record(compute);
      if (before) { // The rows of the iteration before are used up, and its products are there.
        plr_wait(comm, before);
        plr_combine(comm, &tag, plan, i - 1, PLR_F32, 1, &products[(i - 1) % 2 * most], nullptr, result.data(), nullptr,
                    staging, stagingBytes);
      }
      if (i + 1 < 16)
        dispatch(i + 1);
    }
    plr_wait(comm, computed);
    plr_combine(comm, &tag, plan, 15, PLR_F32, 1, &products[most], nullptr, result.data(), nullptr, staging,
                stagingBytes);
    ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    for (int64_t i = 0; i < tokens; ++i) {
      float expected = 0;
      for (int64_t slot : {0, 1})
        if (int32_t id = ids[2 * i + slot]; id >= 0)
          expected += input[i] * static_cast<float>(2 + 2 * id);
      EXPECT_EQ(result[i], expected) << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, InterleavedRanks, testing::Values(1, 2, 4), testing::PrintToStringParamName());
