//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The routes of tokens: tables, addresses, and what plans refuse.

#include "common/contribution.h"
#include "host/routes.h"
#include "kernels_support.h"
#include "plan_shape.h"
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
  const plr_plan_shape shape = makeShape(3, 2, 3);
  host::Piece pieces[6];
  int32_t firstPiece[3], bins[3], places[6] = {}, next[3] = {0, 2, 2};
  const host::Assignment assignment = {pieces, firstPiece, nullptr};
  host::assignToOwners(1, shape, assignment);
  int64_t positions[3] = {};
  host::chooseBins(shape, 1, ids, assignment, positions, places, bins);
  EXPECT_EQ(std::vector<int32_t>(bins, bins + 3), (std::vector<int32_t>{2, 0, 3}));
  EXPECT_EQ(std::vector<int32_t>(places, places + 6), (std::vector<int32_t>{2, 0, 2, 2, 0, -1}));
  const int32_t iterationOf[] = {0};
  host::placeRoutes(shape, 3, iterationOf, next, places);
  EXPECT_EQ(std::vector<int32_t>(places, places + 6), (std::vector<int32_t>{2, 0, 3, 4, 1, -1}));
  EXPECT_EQ(std::vector<int32_t>(next, next + 3), (std::vector<int32_t>{2, 2, 5}));
}

// 5 tokens of one slot to expert 0, whose list begins with 2 rows of another rank. 4 of its rows go to its own rank 0,
// the others to helper slot 0 of rank 1, which is slot 1 there and bin 3. There are 2 leaves: tokens 0 2 4 and 1 3.
TEST(Routes, FollowThePiecesOfAnExpert) {
  plr_plan_shape shape = makeShape(5, 1, 2);
  shape.helper_slots = 1;
  shape.chunks = 2;
  const int32_t ids[] = {0, 0, 0, 0, 0};
  host::Piece pieces[] = {{4, 0, 0}, {7, 1, 1}};
  int32_t firstPiece[] = {0, 0}, places[5], counts[8], iterationOf[] = {0, 1};
  int64_t positions[] = {2, 0};
  host::chooseBins(shape, 2, ids, {pieces, firstPiece, nullptr}, positions, places, counts);
  EXPECT_EQ(std::vector<int32_t>(places, places + 5), (std::vector<int32_t>{0, 0, 3, 3, 3}));
  EXPECT_EQ(std::vector<int32_t>(counts, counts + 8), (std::vector<int32_t>{1, 0, 0, 2, 1, 0, 0, 1}));
  int32_t next[] = {0, 1, 1, 1, 0, 1, 1, 1};
  host::placeRoutes(shape, 4, iterationOf, next, places);
  EXPECT_EQ(std::vector<int32_t>(places, places + 5), (std::vector<int32_t>{0, 0, 1, 1, 2}));
}

TEST(Routes, AnIterationHasTheTokensOfItsLeaves) {
  std::vector<int64_t> tokens;
  auto append = [&](int64_t token) { tokens.push_back(token); };
  host::TokenSet{20, 6, 1, 3, 2}.forEach(append); // Leaves 1 and 4 of 6.
  EXPECT_EQ(tokens, (std::vector<int64_t>{1, 7, 13, 19, 4, 10, 16}));
  tokens.clear();
  host::TokenSet{4, 6, 5, 3, 1}.forEach(append);
  EXPECT_TRUE(tokens.empty());
}

// Rank r sends r + 1 units of piece 0 and 3 of piece 1 to each rank. Sent, they lie by rank; received, by piece.
TEST(Routes, ArriveInOnePieceEach) {
  const int32_t sendEnds[] = {2, 5, 7, 10}, receiveEnds[] = {1, 3, 6, 9};
  ExchangeSide sends, receives;
  sends.ends.narrow = sendEnds;
  receives.ends.narrow = receiveEnds;
  receives.isBlockMajor = true;
  auto piece = [](const ExchangeSide &side, int64_t rank, int64_t block) {
    ByteRange range = getPiece(side, side.getNumber(rank, 2, block, 2), 4);
    return std::make_pair(range.begin, range.bytes);
  };
  using Range = std::pair<int64_t, int64_t>;
  EXPECT_EQ(piece(sends, 0, 0), Range(0, 8));
  EXPECT_EQ(piece(sends, 1, 0), Range(20, 8));
  EXPECT_EQ(piece(sends, 1, 1), Range(28, 12));
  EXPECT_EQ(piece(receives, 0, 0), Range(0, 4));
  EXPECT_EQ(piece(receives, 1, 0), Range(4, 8));
  EXPECT_EQ(piece(receives, 0, 1), Range(12, 12));
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
  host::scatterRows(host::TokenSet::all(routes), 1, columns * 4, places.data(), tokens.data(), rows.data());
  EXPECT_EQ(rows.data()[last * columns], 3);
  EXPECT_EQ(rows.data()[last * columns + columns - 1], 5);
  // One token of many slots: its sum is the last row.
  std::vector<float> sum(columns, -1);
  host::sumSlots(PLR_F32, host::TokenSet::all(1), routes, columns, places.data(), rows.data(), sum.data());
  EXPECT_EQ(sum[0], 3);
  EXPECT_EQ(sum[columns - 1], 5);
  // Pieces of exchanges: the last row, of 4 MiB.
  const int32_t ends[] = {static_cast<int32_t>(last), static_cast<int32_t>(routes)};
  ExchangeSide side;
  side.ends.narrow = ends;
  EXPECT_EQ(getPiece(side, 1, columns * 4).begin, last * columns * 4);
  EXPECT_EQ(getPiece(side, 1, columns * 4).bytes, columns * 4);
}

TEST(BadIds, FailOnAllRanksBeforeDataMoves) {
  for (int32_t id : {-2, 6, INT32_MAX, INT32_MIN}) {
    Ranks run(3, 600);
    run.run([&](Rank &rank, int32_t number) {
      std::vector<int32_t> ids = {0, 1, 2, 3, -1, 5, 5, 4};
      if (number == 1)
        ids[5] = id;
      EXPECT_EQ(createPlan(rank.lane(), &planTag, getWorld(rank, 3), 4, 2, 6, ids.data()), nullptr);
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
      EXPECT_EQ(createPlan(rank.lane(), &planTag, group ? group : world, tokens, topK, experts, ids), nullptr);
    };
  };
  expectMisuse(create(nullptr, -1, 1, 3, ids), "tokens is -1");
  expectMisuse(create(nullptr, 1, 0, 3, ids), "top_k is 0, but must be at least 1");
  expectMisuse(create(nullptr, 1, 1, 0, ids), "experts is 0, but must be at least 1");
  expectMisuse(create(nullptr, 1, 1, 3, nullptr), "ids is null");
  expectMisuse(create(nullptr, int64_t(1) << 30, 4, 3, ids),
               "tokens is 1073741824 and top_k 4, but the rows that a rank sends must fit 32 bits");
  expectMisuse(create(nullptr, 1, 1, int64_t(1) << 31, ids), "experts is 2147483648, but must fit 32 bits");
  expectMisuse([](Rank &rank, plr_group *) { createPlan(rank.lane(), &planTag, nullptr, 1, 1, 3, ids); },
               "the group is null");
  Ranks run(2);
  EXPECT_EQ(createPlan(run[0].lane(), &planTag, getWorld(run[0], 2), 1, 1, 3, ids), nullptr);
  expectText(run[0].message(), "experts is 3, which cannot be divided equally among the 2 ranks of the group");
}

TEST(PlanMisuse, OfItsUsersIsNamed) {
  static const int32_t ids[2] = {0, 1};
  static float data[8];
  auto use = [](auto body) {
    return [=](Rank &rank, plr_group *world) { body(rank, createPlan(rank.lane(), &planTag, world, 2, 1, 2, ids)); };
  };
  auto dispatch = [](Rank &rank, plr_plan *plan, int type, int64_t columns, float *input, float *rows) {
    plr_dispatch(rank.lane(), &planTag, plan, 0, type, columns, input, nullptr, rows, nullptr, nullptr, PLR_FROM_POOL);
  };
  expectMisuse(use([=](Rank &r, plr_plan *) { dispatch(r, nullptr, 0, 2, data, data + 4); }), "the plan is null");
  expectMisuse(use([=](Rank &r, plr_plan *p) { dispatch(r, p, 2, 2, data, data + 4); }), "type is 2");
  expectMisuse(use([=](Rank &r, plr_plan *p) { dispatch(r, p, 0, -2, data, data + 4); }), "columns is -2");
  expectMisuse(use([=](Rank &r, plr_plan *p) { dispatch(r, p, 0, 2, nullptr, data + 4); }), "input is null");
  expectMisuse(use([=](Rank &r, plr_plan *p) { dispatch(r, p, 0, 2, data, nullptr); }), "rows is null");
  expectMisuse(use([=](Rank &r, plr_plan *p) {
                 plr_combine(r.lane(), &planTag, p, 0, 0, 2, data, nullptr, nullptr, nullptr, nullptr, PLR_FROM_POOL);
               }),
               "result is null");
  expectMisuse(use([=](Rank &r, plr_plan *p) {
                 plr_combine(r.lane(), &planTag, p, 0, 0, 2, nullptr, nullptr, nullptr, data, nullptr, PLR_FROM_POOL);
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
  EXPECT_EQ(plr_plan_rows(nullptr, 0), 0);
}

// The table is part of the device's memory, under the plan's component; staging lives as long as the call.
TEST(PlanMemory, IsCounted) {
  Ranks run(2);
  run.runWell([&](Rank &rank, int32_t number) {
    // 40 routes, all to expert 0: 160 bytes of places, in lines 192.
    std::vector<int32_t> ids(40, 0);
    plr_plan *plan = createPlan(rank.lane(), &planTag, getWorld(rank, 2), 20, 2, 2, ids.data());
    EXPECT_EQ(plr_plan_rows(plan, 0), number == 0 ? 80 : 0);
    EXPECT_EQ(rank.report().live_bytes, 192);
    EXPECT_EQ(rank.report().component_peak_bytes[PLR_ROUTING], 192);
    // 40 rows of 3 numbers are sent: 480 bytes are 512 in lines. Those that arrive go to their places.
    std::vector<float> input(60, 1), rows(240);
    plr_dispatch(rank.lane(), &planTag, plan, 0, PLR_F32, 3, input.data(), nullptr, rows.data(), nullptr, nullptr,
                 PLR_FROM_POOL);
    EXPECT_EQ(rank.report().live_bytes, 192);
    EXPECT_EQ(rank.report().peak_bytes, 192 + 512);
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
    EXPECT_EQ(createPlan(rank.lane(), &planTag, getWorld(rank, 2), static_cast<int64_t>(ids.size()), 1, 2, ids.data()),
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
    plr_plan *plan = createPlan(rank.lane(), &planTag, getWorld(rank, 2), 2, 1, 2, ids);
    // Rank 0's first rows lie in staging until rank 1 comes to fetch them. Meanwhile its other lane would write there.
    if (number == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    float inputs[2][2] = {{1.0f + number, 3}, {5.0f + number, 7}}, results[2][2] = {};
    for (int i = 0; i < 2; ++i)
      plr_dispatch(rank.lane(i == 0 ? PLR_COMPUTE : PLR_COMM), &planTag, plan, 0, PLR_F32, 1, inputs[i], nullptr,
                   results[i], nullptr, nullptr, PLR_FROM_POOL);
    plr_plan_release(plan);
    plr_synchronize(rank);
    EXPECT_EQ(results[0][0], 2 - number);
    EXPECT_EQ(results[0][1], 3);
    EXPECT_EQ(results[1][0], 6 - number);
    EXPECT_EQ(results[1][1], 7);
  });
}
