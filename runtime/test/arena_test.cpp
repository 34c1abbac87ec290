//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Arenas: the last memory that a space gives.
#include "held_plan.h"
#include "rank.h"
#include <cstring>

using namespace plateau::rt::test;

namespace {

constexpr plr_tag arenaTag = {"step", -1, PLR_EXTERNAL, PLR_FORWARD};

plr_config makeConfig(int64_t deviceBytes) {
  plr_config config = plateau::rt::test::makeConfig();
  config.device_bytes = deviceBytes;
  return config;
}

char *takeArena(Rank &rank, int64_t bytes, plr_space space = PLR_DEVICE) {
  return static_cast<char *>(plr_arena(rank, space, bytes, &arenaTag));
}

} // namespace

TEST(Arena, LiesBehindWhatWasAllocated) {
  Rank rank(makeConfig(1 << 22));
  auto *arguments = static_cast<char *>(plr_allocate(rank, PLR_DEVICE, 1 << 20, &denseTag));
  char *arena = takeArena(rank, 1000);
  ASSERT_NE(arena, nullptr) << rank.message();
  EXPECT_EQ(arena, arguments + (1 << 20));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena) % 64, 0u);
  std::memset(arena, 7, 1000);
  EXPECT_EQ(takeArena(rank, 1000), arena);
  plr_space_report report = rank.report();
  EXPECT_EQ(report.live_bytes, (1 << 20) + 1024);
  EXPECT_EQ(report.extent_bytes, (1 << 20) + 1024);
  EXPECT_EQ(report.component_peak_bytes[PLR_EXTERNAL], 1024);
  // What came before may go.
  plr_release(rank, PLR_DEVICE, arguments);
  EXPECT_EQ(rank.report().live_bytes, 1024);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
}

// Small blocks keep to the end of a space: the arena lies before them and leaves them be.
TEST(Arena, LeavesSmallBlocksAlone) {
  Rank rank(makeConfig(1 << 22));
  auto *large = static_cast<char *>(plr_allocate(rank, PLR_DEVICE, 1 << 20, &denseTag));
  auto *small = static_cast<char *>(plr_allocate(rank, PLR_DEVICE, 64, &denseTag));
  EXPECT_EQ(small, large + (1 << 22) - 64);
  char *arena = takeArena(rank, 3 * (1 << 20) - 64);
  EXPECT_EQ(arena, large + (1 << 20));
  *small = 5;
  std::memset(arena, 7, 3 * (1 << 20) - 64);
  EXPECT_EQ(*small, 5);
}

TEST(Arena, EachSpaceHasItsOwn) {
  Rank rank;
  char *device = takeArena(rank, 640), *host = takeArena(rank, 64, PLR_HOST);
  ASSERT_NE(device, nullptr);
  ASSERT_NE(host, nullptr);
  EXPECT_EQ(rank.report(PLR_HOST).live_bytes, 64);
  EXPECT_EQ(takeArena(rank, 64, PLR_HOST), host);
}

TEST(Arena, TakesTheWholeLimit) {
  Rank rank(makeConfig(4096));
  EXPECT_NE(takeArena(rank, 4096), nullptr) << rank.message();
}

TEST(Arena, MayBeEmpty) {
  Rank rank;
  char *arena = takeArena(rank, 0);
  EXPECT_NE(arena, nullptr);
  EXPECT_EQ(takeArena(rank, 0), arena);
  EXPECT_EQ(plr_allocate(rank, PLR_DEVICE, 64, &denseTag), nullptr);
  Rank none(makeConfig(0));
  EXPECT_NE(takeArena(none, 0), nullptr) << none.message();
}

TEST(Arena, IsPoisonedWhenItIsTaken) {
  plr_config config = plateau::rt::test::makeConfig();
  config.poison = 1;
  Rank rank(config);
  char *arena = takeArena(rank, 100);
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(static_cast<unsigned char>(arena[i]), 0xff);
}

TEST(Arena, ThatDoesNotFitIsAShortage) {
  Rank rank(makeConfig(4096));
  plr_allocate(rank, PLR_DEVICE, 1000, &denseTag);
  EXPECT_EQ(takeArena(rank, 3073), nullptr);
  EXPECT_EQ(plr_synchronize(rank), PLR_OUT_OF_MEMORY);
  EXPECT_CONTAINS(
      rank.message(),
      "rank 0: plr_arena: out of device memory for step (external, forward): 3073 bytes asked, 3072 bytes free "
      "(largest free block 3072), limit of the device space 4096 bytes; the largest of 1 live buffers: 1024 "
      "bytes of linalg.matmul up_proj (layer 1, dense, backward)");
}

TEST(Arena, MisuseIsNamed) {
  auto expectMisuse = [](auto call, const char *text) {
    Rank rank;
    plr_arena(rank, PLR_DEVICE, 6400, &arenaTag);
    call(rank);
    EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT) << text;
    EXPECT_CONTAINS(rank.message(), text);
  };
  expectMisuse([](Rank &rank) { plr_arena(rank, 2, 64, &arenaTag); }, "plr_arena: there is no space 2");
  expectMisuse([](Rank &rank) { plr_arena(rank, PLR_HOST, -64, &arenaTag); },
               "plr_arena: step (external, forward) asks for -64 bytes");
  expectMisuse([](Rank &rank) { plr_arena(rank, PLR_HOST, 64, nullptr); }, "plr_arena: the tag is null");
  expectMisuse(
      [](Rank &rank) { plr_arena(rank, PLR_DEVICE, 64, &denseTag); },
      "plr_arena: linalg.matmul up_proj (layer 1, dense, backward) asks for 64 bytes, but the arena of the device "
      "space has 6400, taken for step (external, forward); a context has one arena in each space");
  const char *fixed =
      "asks for 64 bytes, but the device memory is fixed since the arena of 6400 bytes was taken for step "
      "(external, forward). Allocate before plr_arena, or make it part of the plan";
  expectMisuse([](Rank &rank) { EXPECT_EQ(plr_allocate(rank, PLR_DEVICE, 64, &denseTag), nullptr); }, fixed);
  expectMisuse([](Rank &rank) { plr_release(rank, PLR_DEVICE, plr_arena(rank, PLR_DEVICE, 6400, &arenaTag)); },
               "plr_release: this is the arena of the device space, which lives as long as the context");
  EXPECT_EQ(plr_arena(nullptr, PLR_DEVICE, 64, &arenaTag), nullptr);
}

// A call that would take scratch memory from the pool cannot, and says so.
TEST(Arena, LeavesNothingForThePool) {
  Rank rank;
  takeArena(rank, 64);
  std::vector<uint16_t> a(256 * 1024), b(256 * 1024), c(256 * 256);
  plr_gemm(rank.lane(), &denseTag, 1, 0, 0, PLR_BF16, PLR_BF16, 256, 256, 1024, a.data(), b.data(), c.data(), nullptr,
           PLR_FROM_POOL);
  EXPECT_EQ(plr_synchronize(rank), PLR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(rank.message(), "plr_gemm: linalg.matmul up_proj (layer 1, workspace, backward) asks for ");
  EXPECT_CONTAINS(rank.message(), "but the device memory is fixed");
}
