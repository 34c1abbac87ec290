//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Which bytes of an arena a run has written: what was found, and what calls declared.
#include "rank.h"
#include <cstring>

using namespace plateau::rt::test;

namespace {

constexpr plr_tag arenaTag = {"step", -1, PLR_EXTERNAL, PLR_FORWARD};
constexpr int64_t mebi = 1 << 20;

/// A rank with some memory of arguments and an arena of `bytes` behind them.
struct Measured {
  static constexpr int64_t argumentBytes = mebi;
  Rank rank;
  char *arguments, *arena;

  explicit Measured(int64_t bytes, int64_t limit = 16 * mebi)
      : rank([&] {
          plr_config config = makeConfig();
          config.device_bytes = limit;
          return config;
        }()),
        arguments(static_cast<char *>(plr_allocate(rank, PLR_DEVICE, argumentBytes, &arenaTag))),
        arena(static_cast<char *>(plr_arena(rank, PLR_DEVICE, bytes, &arenaTag))) {}

  /// Of the arena, as the arguments count in full.
  int64_t observe() { return plr_observed_bytes(rank, PLR_DEVICE) - argumentBytes; }
  void zero(int64_t offset, int64_t bytes) { plr_zero(rank.lane(), &denseTag, arena + offset, bytes); }
};

} // namespace

TEST(Measure, FindsTheHighestByteWritten) {
  for (int32_t seed : {1, -3, 77}) {
    Measured m(1000);
    EXPECT_EQ(plr_measure(m.rank, seed), PLR_OK);
    EXPECT_EQ(m.observe(), 0);
    m.zero(100, 1);
    EXPECT_EQ(m.observe(), 101);
    m.zero(333, 44);
    m.zero(3, 5);
    EXPECT_EQ(m.observe(), 377);
    m.zero(999, 1);
    EXPECT_EQ(m.observe(), 1000);
    EXPECT_EQ(plr_measure(m.rank, seed), PLR_OK); // From the start again.
    EXPECT_EQ(m.observe(), 0);
  }
}

// The arena of 1000 bytes is followed by free memory, of which a mebibyte is watched; that of 16 MiB by an eighth.
TEST(Measure, SeesWritesBehindTheArena) {
  for (int64_t bytes : {int64_t(1000), 16 * mebi}) {
    const int64_t margin = bytes == 1000 ? mebi : 2 * mebi;
    for (int64_t beyond : {int64_t(0), int64_t(23), margin - 1}) {
      Measured m(bytes, 64 * mebi);
      plr_measure(m.rank, 5);
      m.zero(bytes + beyond, 1);
      EXPECT_EQ(m.observe(), bytes + beyond + 1);
    }
    Measured m(bytes, 64 * mebi);
    plr_measure(m.rank, 5);
    m.zero(bytes + margin, 1);
    EXPECT_EQ(m.observe(), 0);
  }
}

// With the arena at the end of the space nothing behind it is touched.
TEST(Measure, StaysInTheSpace) {
  Measured m(3 * mebi, 4 * mebi);
  ASSERT_NE(m.arena, nullptr) << m.rank.message();
  plr_measure(m.rank, 9);
  m.zero(3 * mebi - 1, 1);
  EXPECT_EQ(m.observe(), 3 * mebi);
}

// Small blocks lie at the end of the space: they are not filled, and count as written.
TEST(Measure, LeavesAndCountsSmallBlocks) {
  Rank rank;
  auto *small = static_cast<char *>(plr_allocate(rank, PLR_DEVICE, 100, &arenaTag));
  std::memset(small, 3, 100);
  auto *arena = static_cast<char *>(plr_arena(rank, PLR_DEVICE, 640, &arenaTag));
  plr_measure(rank, 4);
  EXPECT_EQ(small[0], 3);
  EXPECT_EQ(small[99], 3);
  EXPECT_EQ(plr_observed_bytes(rank, PLR_DEVICE), 128);
  plr_zero(rank.lane(), &denseTag, arena, 640);
  EXPECT_EQ(plr_observed_bytes(rank, PLR_DEVICE), 128 + 640);
}

// A byte that agrees with one fill differs from the other.
TEST(Measure, OtherSeedsFillWithOtherBytes) {
  Measured m(1000);
  plr_measure(m.rank, 6);
  char byte = m.arena[0];
  for (int32_t seed = -100; seed < 140; ++seed) {
    if (seed == 0)
      continue;
    plr_measure(m.rank, seed);
    EXPECT_EQ(m.arena[500] == byte, seed == 6) << seed;
  }
}

// Data may equal the fill. Undeclared, they are not seen; what was handed out to a call counts in full.
TEST(Measure, DeclaredWritesCountWhateverTheData) {
  Measured m(1000);
  plr_measure(m.rank, 6);
  std::vector<char> same(200, m.arena[0]);
  plr_copy(m.rank.lane(), &denseTag, m.arena + 300, same.data(), 200);
  EXPECT_EQ(m.observe(), 0);
  plr_writes(m.rank.lane(), m.arena + 300, 200);
  plr_copy(m.rank.lane(), &denseTag, m.arena + 300, same.data(), 200);
  EXPECT_EQ(m.observe(), 500);
  EXPECT_EQ(std::memcmp(m.arena + 300, same.data(), 200), 0);
  // A call that leaves part of its result as it was.
  plr_writes(m.rank.lane(), m.arena + 600, 64);
  m.zero(600, 8);
  EXPECT_EQ(m.observe(), 664);
  EXPECT_NE(m.arena[663], m.arena[664]);
  EXPECT_NE(m.arena[663], 0);
}

// An operand that is updated in place keeps its data; what the call only writes does not.
TEST(Measure, DeclaredReadsAreKept) {
  Measured m(1000);
  plr_measure(m.rank, 2);
  m.zero(0, 1000);
  plr_lane *lane = m.rank.lane();
  plr_reads(lane, m.arena + 100, 50);
  plr_reads(lane, m.arena + 20, 10);
  plr_reads(lane, m.arena + 120, 60);
  plr_writes(lane, m.arena + 10, 200);
  m.zero(999, 1); // The call; the next one has not declared any reads.
  plr_writes(lane, m.arena + 300, 10);
  plr_synchronize(m.rank);
  for (int i = 0; i < 1000; ++i) {
    bool isKept = i < 10 || (i >= 20 && i < 30) || (i >= 100 && i < 180) || (i >= 210 && i < 300) || i >= 310;
    ASSERT_EQ(m.arena[i] == 0, isKept) << i;
  }
  plr_reads(lane, m.arena, 1000);
  m.zero(999, 1);
  plr_writes(lane, m.arena, 10);
  plr_synchronize(m.rank);
  EXPECT_NE(m.arena[0], 0);
}

// The fill is a task of the lane, in order.
TEST(Measure, FillsWhenTheLaneComesToIt) {
  Measured m(1000);
  plr_measure(m.rank, 2);
  Gate gate;
  gate.close(m.rank.lane());
  char before = m.arena[0];
  plr_writes(m.rank.lane(), m.arena, 64);
  EXPECT_EQ(m.arena[0], before);
  gate.release();
  plr_synchronize(m.rank);
  EXPECT_NE(m.arena[0], before);
}

TEST(Measure, OffDoesNothing) {
  Measured m(1000);
  std::memset(m.arena, 1, 1000);
  auto declare = [&] {
    EXPECT_EQ(plr_reads(m.rank.lane(), m.arena, 10), PLR_OK);
    EXPECT_EQ(plr_writes(m.rank.lane(), m.arena, 1000), PLR_OK);
    EXPECT_EQ(plr_writes(m.rank.lane(), nullptr, -5), PLR_OK); // Not even looked at.
    EXPECT_EQ(plr_synchronize(m.rank), PLR_OK);
    EXPECT_EQ(plr_observed_bytes(m.rank, PLR_DEVICE), -1);
  };
  declare();
  EXPECT_EQ(m.arena[0], 1);
  plr_measure(m.rank, 3);
  plr_measure(m.rank, 0);
  std::memset(m.arena, 1, 1000);
  declare();
  EXPECT_EQ(m.arena[0], 1);
}

TEST(Measure, NeedsAnArena) {
  Rank rank;
  plr_measure(rank, 1);
  EXPECT_EQ(plr_observed_bytes(rank, PLR_DEVICE), -1);
  EXPECT_EQ(plr_observed_bytes(rank, 7), -1);
  EXPECT_EQ(plr_observed_bytes(nullptr, PLR_DEVICE), -1);
  plr_arena(rank, PLR_HOST, 64, &arenaTag);
  EXPECT_EQ(plr_observed_bytes(rank, PLR_DEVICE), -1);
  EXPECT_EQ(plr_measure(nullptr, 1), PLR_INVALID_ARGUMENT);
}

TEST(Measure, MisuseOfRangesIsNamed) {
  auto expectMisuse = [](auto call, const char *text) {
    Measured m(1000);
    plr_measure(m.rank, 1);
    call(m, m.rank.lane());
    EXPECT_EQ(plr_context_error(m.rank, nullptr), PLR_INVALID_ARGUMENT) << text;
    EXPECT_CONTAINS(m.rank.message(), text);
  };
  using Lane = plr_lane *;
  expectMisuse([](Measured &m, Lane l) { plr_writes(l, m.arena + 900, 101); },
               "lane compute: plr_writes: the range of 101 bytes begins 100 bytes before the end of the device arena");
  expectMisuse([](Measured &m, Lane l) { plr_reads(l, m.arena + 900, 101); }, "plr_reads: the range of 101 bytes");
  expectMisuse([](Measured &m, Lane l) { plr_writes(l, m.arena, -1); }, "plr_writes: bytes is -1");
  expectMisuse([](Measured &, Lane l) { plr_reads(l, nullptr, 1); }, "plr_reads: the range is null");
  EXPECT_EQ(plr_writes(nullptr, nullptr, 0), PLR_INVALID_ARGUMENT);
}

// The peak is of interest after a failure too.
TEST(Measure, AnswersAfterAFailure) {
  Measured m(1000);
  plr_measure(m.rank, 1);
  m.zero(0, 10);
  plr_synchronize(m.rank);
  plr_zero(m.rank.lane(), &denseTag, nullptr, 4);
  EXPECT_EQ(m.observe(), 10);
}
