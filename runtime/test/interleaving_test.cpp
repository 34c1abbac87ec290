//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Orders of tasks drawn from a seed: all that lanes and waits allow, and no others.
#include "rank.h"
#include <map>
#include <random>
#include <set>

using namespace plateau::rt::test;

namespace {

plr_config makeConfig(uint64_t seed) {
  plr_config config = plateau::rt::test::makeConfig();
  config.schedule_seed = seed;
  return config;
}

using Numbers = std::vector<intptr_t>;

/// A program of tasks 0, 1, … on several lanes, with waits between them, and what must come before what.
struct Program {
  static constexpr int count = 60, lanes = 4;
  /// lane[i] is that of task i; waits[i] the tasks whose events its lane waits for before it.
  std::vector<int> lane;
  std::vector<std::vector<int>> waits;

  explicit Program(uint32_t seed) : lane(count), waits(count) {
    std::mt19937 generator(seed);
    for (int i = 0; i < count; ++i) {
      lane[i] = static_cast<int>(generator() % lanes);
      for (int j = 0; i > 0 && j < 2; ++j)
        if (generator() % 3 == 0)
          waits[i].push_back(static_cast<int>(generator() % static_cast<uint32_t>(i)));
    }
  }
  Numbers run(uint64_t seed) const {
    Rank rank(makeConfig(seed));
    Numbers order;
    std::vector<plr_event *> events;
    for (int i = 0; i < count; ++i) {
      for (int other : waits[i])
        plr_wait(rank.lane(lane[i]), events[other]);
      append(rank.lane(lane[i]), order, i); // Tasks run one at a time: no two of them append at once.
      events.push_back(plr_record(rank.lane(lane[i])));
    }
    EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    return order;
  }
  void expectLegal(const Numbers &order) const {
    ASSERT_EQ(order.size(), static_cast<size_t>(count));
    std::vector<size_t> place(count);
    for (size_t i = 0; i < order.size(); ++i)
      place[order[i]] = i;
    for (int i = 0; i < count; ++i) {
      for (int other : waits[i])
        EXPECT_LT(place[other], place[i]);
      for (int other = 0; other < i; ++other)
        EXPECT_TRUE(lane[other] != lane[i] || place[other] < place[i]) << other << " and " << i;
    }
  }
};

} // namespace

TEST(Interleaving, KeepsLanesAndWaits) {
  for (uint32_t program = 0; program < 10; ++program)
    for (uint64_t seed = 1; seed <= 20; ++seed)
      Program(program).expectLegal(Program(program).run(seed));
}

TEST(Interleaving, ComesFromTheSeed) {
  Program program(3);
  std::set<Numbers> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Numbers order = program.run(seed);
    EXPECT_EQ(order, program.run(seed)) << seed;
    orders.insert(order);
  }
  EXPECT_GE(orders.size(), 19u);
}

TEST(Interleaving, LetsUnorderedTasksComeEitherWay) {
  std::set<Numbers> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rank rank(makeConfig(seed));
    Numbers order;
    append(rank.lane(PLR_COMPUTE), order, 1);
    append(rank.lane(PLR_COMM), order, 2);
    plr_synchronize(rank);
    orders.insert(order);
  }
  EXPECT_EQ(orders, (std::set<Numbers>{{1, 2}, {2, 1}}));
}

// A lane may get far ahead of another, and the tasks of both may mix.
TEST(Interleaving, LetsALaneGetAhead) {
  int ahead = 0, behind = 0, mixed = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rank rank(makeConfig(seed));
    Numbers order;
    for (int i = 0; i < 5; ++i) {
      append(rank.lane(PLR_COMPUTE), order, 1);
      append(rank.lane(PLR_COMM), order, 2);
    }
    plr_synchronize(rank);
    ahead += order == Numbers{1, 1, 1, 1, 1, 2, 2, 2, 2, 2};
    behind += order == Numbers{2, 2, 2, 2, 2, 1, 1, 1, 1, 1};
    mixed += order == Numbers{1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
  }
  EXPECT_GE(ahead, 3);
  EXPECT_GE(behind, 3);
  EXPECT_GE(mixed, 3);
}

/// A value is written on one lane and read on another; what the reader sees under each of 20 seeds.
static std::set<float> readBesideAWrite(bool waits) {
  std::set<float> seen;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rank rank(makeConfig(seed));
    float from = 1, value = 0, result = -1;
    plr_copy(rank.lane(PLR_COMM), &denseTag, &value, &from, 4);
    if (waits)
      plr_wait(rank.lane(PLR_COMPUTE), plr_record(rank.lane(PLR_COMM)));
    plr_copy(rank.lane(PLR_COMPUTE), &denseTag, &result, &value, 4);
    plr_synchronize(rank);
    seen.insert(result);
  }
  return seen;
}

TEST(Interleaving, ShowsAMissingWait) {
  EXPECT_EQ(readBesideAWrite(true), (std::set<float>{1}));
  EXPECT_EQ(readBesideAWrite(false), (std::set<float>{0, 1}));
}

// The calling thread may be ahead of the lanes or not; only a fence says where they are.
TEST(Interleaving, ShowsAMissingFence) {
  std::set<float> seen, fenced;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rank rank(makeConfig(seed));
    float from = 1, value = 0;
    plr_copy(rank.lane(), &denseTag, &value, &from, 4);
    seen.insert(value);
    plr_fence(plr_record(rank.lane()));
    fenced.insert(value);
  }
  EXPECT_EQ(seen, (std::set<float>{0, 1}));
  EXPECT_EQ(fenced, (std::set<float>{1}));
}

// A chain of waits over all lanes, against the order in which they are looked at; and more tasks than a queue holds.
TEST(Interleaving, DoesNotStandStill) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Rank rank(makeConfig(seed));
    Numbers order;
    for (int i = 0; i < 5000; ++i) {
      plr_lane *lane = rank.lane((4 * i) % PLR_LANES), *next = rank.lane((4 * i + 4) % PLR_LANES);
      append(lane, order, i);
      plr_wait(next, plr_record(lane));
      append(rank.lane(i % 2), order, -1);
    }
    ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    intptr_t next = 0;
    for (intptr_t number : order)
      if (number >= 0) {
        ASSERT_EQ(number, next++);
      }
    EXPECT_EQ(order.size(), 10000u);
  }
}

TEST(Interleaving, FailuresAndInterruptsEndIt) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Rank rank(makeConfig(seed));
    Numbers order;
    const int32_t id = 9;
    float table[4] = {}, row[1];
    for (int i = 0; i < 10; ++i)
      append(rank.lane(PLR_COMM), order, i);
    plr_embedding(rank.lane(), &lossTag, PLR_F32, 1, 1, 4, table, &id, row);
    plr_wait(rank.lane(PLR_COMM), plr_record(rank.lane()));
    append(rank.lane(PLR_COMM), order, 10);
    EXPECT_EQ(plr_synchronize(rank), PLR_BAD_DATA);
    EXPECT_LE(order.size(), 10u);
    Rank other(makeConfig(seed));
    append(other.lane(), order, 1);
    plr_interrupt(other);
    append(other.lane(), order, 2);
    EXPECT_EQ(plr_synchronize(other), PLR_INTERRUPTED);
  }
}
