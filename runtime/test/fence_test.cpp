//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// A fence: the calling thread waits for an event.
#include "rank.h"
#include <chrono>

using namespace plateau::rt::test;

static void writeLate(void **arguments) {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  *static_cast<int *>(arguments[0]) = 42;
}

TEST(Fence, ShowsWhatWasWrittenBeforeTheEvent) {
  Rank rank;
  int value = 0;
  void *arguments[] = {&value};
  plr_launch(rank.lane(), &lossTag, &writeLate, arguments, 1);
  EXPECT_EQ(plr_fence(plr_record(rank.lane())), PLR_OK) << rank.message();
  EXPECT_EQ(value, 42);
}

// Through another lane's wait as well.
TEST(Fence, ShowsWhatTheEventsLaneWaitedFor) {
  Rank rank;
  int value = 0;
  void *arguments[] = {&value};
  plr_launch(rank.lane(PLR_COMM), &lossTag, &writeLate, arguments, 1);
  plr_wait(rank.lane(), plr_record(rank.lane(PLR_COMM)));
  EXPECT_EQ(plr_fence(plr_record(rank.lane())), PLR_OK);
  EXPECT_EQ(value, 42);
}

TEST(Fence, DoesNotWaitForWhatComesAfterTheEvent) {
  Rank rank;
  Gate gate;
  std::vector<intptr_t> numbers;
  append(rank.lane(), numbers, 1);
  plr_event *event = plr_record(rank.lane());
  gate.close(rank.lane());
  EXPECT_EQ(plr_fence(event), PLR_OK);
  EXPECT_EQ(numbers.size(), 1u);
  gate.release();
  EXPECT_EQ(plr_synchronize(rank), PLR_OK);
}

TEST(Fence, IsCountedUntilThePeakIsReset) {
  Rank rank;
  EXPECT_EQ(plr_fence_count(rank), 0);
  for (int i = 0; i < 3; ++i)
    plr_fence(plr_record(rank.lane()));
  plr_synchronize(rank);
  EXPECT_EQ(plr_fence_count(rank), 3);
  plr_reset_peak(rank);
  EXPECT_EQ(plr_fence_count(rank), 0);
  plr_fence(plr_record(rank.lane(PLR_COMM)));
  EXPECT_EQ(plr_fence_count(rank), 1);
}

// What failed before the event leaves nothing to wait for.
TEST(Fence, ReturnsTheFailure) {
  Rank rank;
  Gate gate;
  gate.close(rank.lane());
  const int32_t id = 9;
  float table[4] = {}, row[1];
  plr_embedding(rank.lane(), &lossTag, PLR_F32, 1, 1, 4, table, &id, row);
  plr_event *event = plr_record(rank.lane());
  gate.release();
  EXPECT_EQ(plr_fence(event), PLR_BAD_DATA);
  EXPECT_CONTAINS(rank.message(), "plr_embedding");
  EXPECT_EQ(plr_fence(event), PLR_BAD_DATA);
}

TEST(Fence, ReturnsAnInterrupt) {
  Rank rank;
  Gate gate;
  gate.close(rank.lane());
  plr_event *event = plr_record(rank.lane());
  plr_interrupt(rank);
  gate.release();
  EXPECT_EQ(plr_fence(event), PLR_INTERRUPTED);
}

TEST(Fence, OfNothingIsMisuse) {
  EXPECT_EQ(plr_fence(nullptr), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(plr_fence_count(nullptr), 0);
}
