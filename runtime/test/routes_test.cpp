//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The routes of tokens: tables, addresses, and what plans refuse.

#include "host/routes.h"
#include "kernels_support.h"
#include "ranks.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {
constexpr plr_tag planTag = {"moe.plan", 4, PLR_ROUTING, PLR_FORWARD};

void expectText(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}
} // namespace

// Tokens 0 1 2 with two slots each, experts 0 1 2: expert 0 gets routes 1 and 4, expert 1 none, expert 2 routes 0,
// 2, 3.
TEST(Routes, LieByExpertThenTokenThenSlot) {
  const int32_t ids[] = {2, 0, 2, 2, 0, -1};
  int64_t counts[3] = {-7, -7, -7};
  EXPECT_EQ(host::countRoutes(3, 2, 3, ids, counts), "");
  EXPECT_EQ(std::vector<int64_t>(counts, counts + 3), (std::vector<int64_t>{2, 0, 3}));
  int32_t places[6] = {};
  int64_t next[3];
  host::placeRoutes(6, 3, ids, counts, places, next);
  EXPECT_EQ(std::vector<int32_t>(places, places + 6), (std::vector<int32_t>{2, 0, 3, 4, 1, -1}));
}

// Source 0 sends 1 row to expert 0 and 2 to expert 1, source 1 sends 3 and 1. Expert 0 has rows 0 and 1 2 3, expert 1
// has 4 5 and 6.
TEST(Routes, ArriveBySourceAndLieByExpert) {
  const int64_t counts[] = {1, 2, 3, 1};
  int32_t places[7] = {};
  int64_t next[4];
  host::placeArrivals(2, 2, counts, places, next);
  EXPECT_EQ(std::vector<int32_t>(places, places + 7), (std::vector<int32_t>{0, 4, 5, 1, 2, 3, 6}));
}

// Tokens x top_k x columns is 2^31 and one row more: 2049 rows of 2^20 numbers. Only the pages of the last row, and of
// its token, are touched.
TEST(Routes, AddressesHave64Bits) {
  constexpr int64_t columns = int64_t(1) << 20, routes = 2049, last = routes - 1;
  SparseFloats tokens(routes * columns), rows(routes * columns);
  ASSERT_TRUE(tokens.data() && rows.data()) << "this machine refuses so much address space";
  std::vector<int32_t> places(routes, -1);
  places[last] = last;
  tokens.data()[last * columns] = 3;
  tokens.data()[last * columns + columns - 1] = 5;
  host::scatterRows(routes, 1, columns * 4, places.data(), tokens.data(), rows.data());
  EXPECT_EQ(rows.data()[last * columns], 3);
  EXPECT_EQ(rows.data()[last * columns + columns - 1], 5);
  // One token of many slots: its sum is the last row.
  std::vector<float> sum(columns, -1);
  host::sumSlots(PLR_F32, 1, routes, columns, places.data(), rows.data(), sum.data());
  EXPECT_EQ(sum[0], 3);
  EXPECT_EQ(sum[columns - 1], 5);
  std::vector<int32_t> first = {static_cast<int32_t>(last)};
  host::gatherRows(1, columns * 4, first.data(), rows.data(), sum.data());
  EXPECT_EQ(sum[columns - 1], 5);
}

TEST(BadIds, FailOnAllRanksBeforeDataMoves) {
  for (int32_t id : {-2, 6, INT32_MAX, INT32_MIN}) {
    Ranks run(3, 600);
    run.run([&](Rank &rank, int32_t number) {
      std::vector<int32_t> ids = {0, 1, 2, 3, -1, 5, 5, 4};
      if (number == 1)
        ids[5] = id;
      EXPECT_EQ(plr_plan_create(rank.lane(), &planTag, getWorld(rank, 3), 4, 2, 6, ids.data()), nullptr);
      EXPECT_EQ(plr_context_error(rank, nullptr), number == 1 ? PLR_BAD_DATA : PLR_COMMUNICATION);
      std::string bad = "lane compute: plr_plan_create of moe.plan (layer 4, routing, forward): token 2 has expert " +
                        std::to_string(id) + " in slot 1, but there are experts 0 ... 5, and -1 for none";
      expectText(rank.message(), number == 1 ? "rank 1: " + bad : "rank 1 failed: " + bad);
      EXPECT_EQ(rank.report().live_bytes, 0);
    });
  }
}

/// A call on a rank of its own that no correct program makes.
template <typename Call>
static void expectMisuse(const Call &call, const char *text) {
  Rank rank;
  call(rank, getWorld(rank, 1));
  EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT) << text;
  expectText(rank.message(), text);
}

TEST(PlanMisuse, IsNamed) {
  static const int32_t ids[4] = {0, 1, 2, 0};
  auto create = [](plr_group *group, int64_t tokens, int64_t topK, int64_t experts, const int32_t *ids) {
    return [=](Rank &rank, plr_group *world) {
      EXPECT_EQ(plr_plan_create(rank.lane(), &planTag, group ? group : world, tokens, topK, experts, ids), nullptr);
    };
  };
  expectMisuse(create(nullptr, -1, 1, 3, ids), "tokens is -1");
  expectMisuse(create(nullptr, 1, 0, 3, ids), "top_k is 0, but must be at least 1");
  expectMisuse(create(nullptr, 1, 1, 0, ids), "experts is 0, but must be at least 1");
  expectMisuse(create(nullptr, 1, 1, 3, nullptr), "ids is null");
  expectMisuse(create(nullptr, int64_t(1) << 30, 4, 3, ids),
               "tokens is 1073741824 and top_k 4, but the rows that a rank sends must fit 32 bits");
  expectMisuse(create(nullptr, 1, 1, int64_t(1) << 31, ids), "experts is 2147483648, but must fit 32 bits");
  expectMisuse([](Rank &rank, plr_group *) { plr_plan_create(rank.lane(), &planTag, nullptr, 1, 1, 3, ids); },
               "the group is null");
  Ranks run(2);
  EXPECT_EQ(plr_plan_create(run[0].lane(), &planTag, getWorld(run[0], 2), 1, 1, 3, ids), nullptr);
  expectText(run[0].message(), "experts is 3, which cannot be divided equally among the 2 ranks of the group");
}

TEST(PlanMisuse, OfItsUsersIsNamed) {
  static const int32_t ids[2] = {0, 1};
  static float data[8];
  auto use = [](auto body) {
    return
        [=](Rank &rank, plr_group *world) { body(rank, plr_plan_create(rank.lane(), &planTag, world, 2, 1, 2, ids)); };
  };
  auto dispatch = [](Rank &rank, plr_plan *plan, int type, int64_t columns, float *input, float *rows) {
    plr_dispatch(rank.lane(), &planTag, plan, type, columns, input, nullptr, rows, nullptr, nullptr, PLR_FROM_POOL);
  };
  expectMisuse(use([=](Rank &r, plr_plan *) { dispatch(r, nullptr, 0, 2, data, data + 4); }), "the plan is null");
  expectMisuse(use([=](Rank &r, plr_plan *p) { dispatch(r, p, 2, 2, data, data + 4); }), "type is 2");
  expectMisuse(use([=](Rank &r, plr_plan *p) { dispatch(r, p, 0, -2, data, data + 4); }), "columns is -2");
  expectMisuse(use([=](Rank &r, plr_plan *p) { dispatch(r, p, 0, 2, nullptr, data + 4); }), "input is null");
  expectMisuse(use([=](Rank &r, plr_plan *p) { dispatch(r, p, 0, 2, data, nullptr); }), "rows is null");
  expectMisuse(use([=](Rank &r, plr_plan *p) {
                 plr_combine(r.lane(), &planTag, p, 0, 2, data, nullptr, nullptr, nullptr, nullptr, PLR_FROM_POOL);
               }),
               "result is null");
  expectMisuse(use([=](Rank &r, plr_plan *p) {
                 plr_combine(r.lane(), &planTag, p, 0, 2, nullptr, nullptr, nullptr, data, nullptr, PLR_FROM_POOL);
               }),
               "row_values is null");
  expectMisuse(use([=](Rank &r, plr_plan *p) {
                 plr_plan_release(p);
                 dispatch(r, p, 0, 2, data, data + 4);
               }),
               "the plan was released");
  expectMisuse(use([=](Rank &, plr_plan *p) {
                 plr_plan_release(p);
                 plr_plan_release(p);
               }),
               "plr_plan_release: the plan was released before");
  plr_plan_release(nullptr);
  EXPECT_EQ(plr_plan_rows(nullptr), 0);
}

// The tables are part of the device's memory, under the plan's component; staging lives as long as the call.
TEST(PlanMemory, IsCounted) {
  Ranks run(2);
  run.runWell([&](Rank &rank, int32_t number) {
    // 40 routes, all to expert 0: 160 bytes of send places, 64-byte lines 192. Rank 0 receives 80 rows: 320 bytes.
    std::vector<int32_t> ids(40, 0);
    plr_plan *plan = plr_plan_create(rank.lane(), &planTag, getWorld(rank, 2), 20, 2, 2, ids.data());
    int64_t tables = 192 + (number == 0 ? 320 : 0);
    EXPECT_EQ(rank.report().live_bytes, tables);
    EXPECT_EQ(rank.report().component_peak_bytes[PLR_ROUTING], tables);
    // 40 rows of 3 numbers are sent, 80 or 0 received: 480 bytes are 512 in lines, 960 are lines.
    std::vector<float> input(60, 1), rows(240);
    plr_dispatch(rank.lane(), &planTag, plan, PLR_F32, 3, input.data(), nullptr, rows.data(), nullptr, nullptr,
                 PLR_FROM_POOL);
    EXPECT_EQ(rank.report().live_bytes, tables);
    EXPECT_EQ(rank.report().peak_bytes, tables + 512 + (number == 0 ? 960 : 0));
    plr_plan_release(plan);
    EXPECT_EQ(rank.report().live_bytes, 0);
    plr_synchronize(rank);
  });
}

TEST(PlanMemory, MayRunOut) {
  plr_config config = makeConfig();
  config.device_bytes = 256;
  Ranks run(2, 600, config);
  run.run([&](Rank &rank, int32_t number) {
    // Rank 1 has no room for its send places; rank 0 hears of it.
    std::vector<int32_t> ids(number == 1 ? 80 : 4, 0);
    EXPECT_EQ(
        plr_plan_create(rank.lane(), &planTag, getWorld(rank, 2), static_cast<int64_t>(ids.size()), 1, 2, ids.data()),
        nullptr);
    EXPECT_EQ(plr_context_error(rank, nullptr), number == 1 ? PLR_OUT_OF_MEMORY : PLR_COMMUNICATION);
    expectText(rank.message(), "plr_plan_create: out of device memory for moe.plan (layer 4, routing, forward)");
  });
}

// Scratch memory is handed out again at once: calls on other lanes wait for its user, though no event says so.
TEST(PlanMemory, StagingIsNotSharedBetweenLanes) {
  Ranks run(2);
  run.runWell([&](Rank &rank, int32_t number) {
    const int32_t ids[2] = {1 - number, 1 - number};
    plr_plan *plan = plr_plan_create(rank.lane(), &planTag, getWorld(rank, 2), 2, 1, 2, ids);
    // Rank 0's first rows lie in staging until rank 1 comes to fetch them. Meanwhile its other lane would write there.
    if (number == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    float inputs[2][2] = {{1.0f + number, 3}, {5.0f + number, 7}}, results[2][2] = {};
    for (int i = 0; i < 2; ++i)
      plr_dispatch(rank.lane(i == 0 ? PLR_COMPUTE : PLR_COMM), &planTag, plan, PLR_F32, 1, inputs[i], nullptr,
                   results[i], nullptr, nullptr, PLR_FROM_POOL);
    plr_plan_release(plan);
    plr_synchronize(rank);
    EXPECT_EQ(results[0][0], 2 - number);
    EXPECT_EQ(results[0][1], 3);
    EXPECT_EQ(results[1][0], 6 - number);
    EXPECT_EQ(results[1][1], 7);
  });
}
