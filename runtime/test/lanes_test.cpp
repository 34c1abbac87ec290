//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "rank.h"
#include <numeric>

using namespace plateau::rt::test;

TEST(Lanes, RunInOrder) {
  Rank rank;
  std::vector<intptr_t> numbers, expected(10000);
  std::iota(expected.begin(), expected.end(), 0);
  for (intptr_t i : expected)
    ASSERT_EQ(append(rank.lane(), numbers, i), PLR_OK);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(numbers, expected);
}

TEST(Lanes, HaveOneHandleEach) {
  Rank rank;
  for (plr_lane_kind i = 0; i < PLR_LANES; ++i) {
    EXPECT_EQ(rank.lane(i), rank.lane(i));
    for (plr_lane_kind j = 0; j < i; ++j)
      EXPECT_NE(rank.lane(i), rank.lane(j));
  }
}

TEST(Lanes, RunBesideEachOther) {
  Rank rank;
  Gate gate;
  gate.close(rank.lane(PLR_COMPUTE));
  std::vector<intptr_t> numbers;
  append(rank.lane(PLR_COMM), numbers, 1);
  std::atomic<bool> done{false};
  void *arguments[] = {&done};
  plr_launch(
      rank.lane(PLR_COMM), &lossTag, [](void **a) { *static_cast<std::atomic<bool> *>(a[0]) = true; }, arguments, 1);
  while (!done)
    std::this_thread::yield();
  EXPECT_EQ(numbers.size(), 1u);
  gate.release();
  EXPECT_EQ(plr_synchronize(rank), PLR_OK);
}

// Two lanes take turns, each step ordered by an event alone: without the waits the vector would be a race.
TEST(Lanes, EventsOrderThem) {
  Rank rank;
  std::vector<intptr_t> numbers, expected(2000);
  std::iota(expected.begin(), expected.end(), 0);
  plr_lane *lanes[] = {rank.lane(PLR_COMPUTE), rank.lane(PLR_H2D)};
  for (intptr_t i : expected) {
    ASSERT_EQ(append(lanes[i % 2], numbers, i), PLR_OK);
    plr_event *event = plr_record(lanes[i % 2]);
    ASSERT_NE(event, nullptr);
    ASSERT_EQ(plr_wait(lanes[(i + 1) % 2], event), PLR_OK);
  }
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  EXPECT_EQ(numbers, expected);
}

TEST(Lanes, AnEventCoversWhatCameBeforeItOnly) {
  Rank rank;
  Gate gate;
  std::vector<intptr_t> numbers;
  append(rank.lane(PLR_COMPUTE), numbers, 1);
  plr_event *event = plr_record(rank.lane(PLR_COMPUTE));
  gate.close(rank.lane(PLR_COMPUTE));
  // Were the gate part of the event, the second lane would never get to open it.
  plr_wait(rank.lane(PLR_COMM), event);
  append(rank.lane(PLR_COMM), numbers, 2);
  void *arguments[] = {&gate};
  plr_launch(rank.lane(PLR_COMM), &lossTag, [](void **a) { static_cast<Gate *>(a[0])->release(); }, arguments, 1);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  EXPECT_EQ(numbers, (std::vector<intptr_t>{1, 2}));
}

TEST(Lanes, WaitForThemselvesAndForIdleLanes) {
  Rank rank;
  std::vector<intptr_t> numbers;
  EXPECT_EQ(plr_wait(rank.lane(PLR_COMPUTE), plr_record(rank.lane(PLR_D2H))), PLR_OK);
  append(rank.lane(PLR_COMPUTE), numbers, 1);
  EXPECT_EQ(plr_wait(rank.lane(PLR_COMPUTE), plr_record(rank.lane(PLR_COMPUTE))), PLR_OK);
  append(rank.lane(PLR_COMPUTE), numbers, 2);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK);
  EXPECT_EQ(numbers, (std::vector<intptr_t>{1, 2}));
}

TEST(Lanes, EventsAreReusedAfterSynchronize) {
  Rank rank;
  plr_event *first = plr_record(rank.lane());
  plr_event *second = plr_record(rank.lane());
  EXPECT_NE(first, second);
  plr_synchronize(rank);
  EXPECT_EQ(plr_record(rank.lane(PLR_COMM)), first);
}

// More tasks than the queue holds: the caller waits for room, behind a lane that waits for another one.
TEST(Lanes, AFullQueueHoldsTheCallerBack) {
  Rank rank;
  Gate gate;
  gate.close(rank.lane(PLR_COMM));
  plr_wait(rank.lane(PLR_COMPUTE), plr_record(rank.lane(PLR_COMM)));
  std::vector<intptr_t> numbers;
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.release();
  });
  for (intptr_t i = 0; i < 20000; ++i)
    append(rank.lane(), numbers, i);
  opener.join();
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  ASSERT_EQ(numbers.size(), 20000u);
  EXPECT_EQ(numbers.back(), 19999);
}

// Records of many sizes, so that some end at the end of the ring's storage and some would cross it.
TEST(Lanes, LaunchesCopyAnyNumberOfArguments) {
  Rank rank;
  intptr_t sum = 0, expected = 0;
  std::vector<void *> arguments;
  for (int64_t round = 0; round < 3000; ++round) {
    int64_t count = 2 + round * 37 % 900;
    arguments.assign(count, nullptr);
    arguments[0] = &sum;
    arguments[1] = reinterpret_cast<void *>(static_cast<intptr_t>(count));
    for (int64_t i = 2; i < count; ++i) {
      arguments[i] = reinterpret_cast<void *>(static_cast<intptr_t>(i * round));
      expected += i * round;
    }
    ASSERT_EQ(plr_launch(
                  rank.lane(), &lossTag,
                  [](void **a) {
                    for (intptr_t i = 2; i < reinterpret_cast<intptr_t>(a[1]); ++i)
                      *static_cast<intptr_t *>(a[0]) += reinterpret_cast<intptr_t>(a[i]);
                  },
                  arguments.data(), count),
              PLR_OK);
  }
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  EXPECT_EQ(sum, expected);
}

TEST(Lanes, LaunchesTakeUpToTheirMostArguments) {
  Rank rank;
  constexpr int64_t most = 4096;
  static std::atomic<int> runs;
  runs = 0;
  std::vector<void *> arguments(most + 1);
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(plr_launch(
                  rank.lane(), &lossTag, [](void **) { ++runs; }, arguments.data(), most),
              PLR_OK)
        << rank.message();
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  EXPECT_EQ(runs, 20);
  EXPECT_EQ(plr_launch(rank.lane(), &lossTag, [](void **) {}, arguments.data(), most + 1), PLR_INVALID_ARGUMENT);
  EXPECT_NE(rank.message().find("count is 4097, but a kernel takes at most 4096 arguments"), std::string::npos)
      << rank.message();
}

TEST(Lanes, CopyAndZero) {
  Rank rank;
  std::vector<int> source(1000, 7), destination(1000, 1);
  plr_copy(rank.lane(), &lossTag, destination.data(), source.data(), 4 * 1000);
  plr_zero(rank.lane(), &lossTag, destination.data() + 10, 4 * 5);
  plr_copy(rank.lane(), &lossTag, nullptr, nullptr, 0);
  plr_zero(rank.lane(), &lossTag, nullptr, 0);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(destination[i], i >= 10 && i < 15 ? 0 : 7);
}

TEST(Lanes, ContextsAreIndependent) {
  constexpr int ranks = 4;
  std::vector<std::thread> threads;
  std::vector<std::vector<intptr_t>> numbers(ranks);
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      plr_config config = makeConfig();
      config.rank = r;
      config.ranks = ranks;
      Rank rank(config);
      for (intptr_t i = 0; i < 500; ++i)
        append(rank.lane(), numbers[r], i);
      if (r == 1)
        plr_launch(rank.lane(), &lossTag, nullptr, nullptr, 0);
      EXPECT_EQ(plr_synchronize(rank), r == 1 ? PLR_INVALID_ARGUMENT : PLR_OK);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int r : {0, 2, 3})
    EXPECT_EQ(numbers[r].size(), 500u);
}

TEST(Lanes, DestroyWaitsForThem) {
  std::vector<intptr_t> numbers;
  {
    Rank rank;
    for (intptr_t i = 0; i < 1000; ++i)
      append(rank.lane(), numbers, i);
  }
  EXPECT_EQ(numbers.size(), 1000u);
}
