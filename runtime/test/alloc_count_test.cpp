//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// What plateau_alloc_count sees of a process.
#include "alloc_count.h"
#include "plan_shape.h"
#include "ranks.h"
#include <array>
#include <cstdlib>
#include <malloc.h>
#include <sys/mman.h>

using namespace plateau::rt::test;

namespace {

constexpr size_t large = PLATEAU_ALLOC_COUNT_LARGE_BYTES;

/// What `body` asks for. The pointers that it returns are kept from the optimizer and freed.
template <typename Body>
plateau_alloc_counts count(const Body &body) {
  plateau_alloc_count_start();
  void *volatile memory = body();
  plateau_alloc_counts counts = plateau_alloc_count_stop();
  std::free(memory);
  return counts;
}

/// A step of one of two ranks that fills a plan of 6 iterations and moves rows.
class PlannedIterations {
public:
  PlannedIterations(Rank &rank, int32_t number) : rank(rank), ids(tokens) {
    for (int64_t i = 0; i < tokens; ++i)
      ids[i] = static_cast<int32_t>((i / 6 + number) % 3); // Leaves are alike.
    shape = makeShape(tokens, 1, 4);
    shape.chunks = 3;
    shape.leaves = 2;
    shape.capacity = 900; // Two leaves have 2000 rows, of which one rank has half or more.
    shape.helper_slots = shape.alpha_numerator = 1;
    hostBytes = getPlanHostBytes(2, shape);
    deviceBytes = plr_footprint_plan_device(tokens, 1);
    stagingBytes = plr_footprint_exchange(2, tokens, 4, 0);
    host = plr_allocate(rank, PLR_HOST, hostBytes, &denseTag);
    device = plr_allocate(rank, PLR_DEVICE, deviceBytes, &denseTag);
    staging = plr_allocate(rank, PLR_DEVICE, stagingBytes, &denseTag);
    rows.resize(shape.capacity);
    input.resize(tokens);
    result.resize(tokens);
  }
  plr_plan *getPlan() const { return static_cast<plr_plan *>(host); }
  void enqueue() {
    plr_lane *lane = rank.lane();
    plr_plan_fill(lane, &denseTag, getWorld(rank, 2), &shape, ids.data(), host, hostBytes, device, deviceBytes);
    plr_fence(plr_record(lane));
    plr_migrate_experts(lane, &denseTag, getPlan(), PLR_F32, 1, weights, &helper);
    for (int64_t i = 0; i < 6; ++i) {
      plr_dispatch(lane, &denseTag, getPlan(), i, PLR_F32, 1, input.data(), nullptr, rows.data(), nullptr, staging,
                   stagingBytes);
      plr_combine(lane, &denseTag, getPlan(), i, PLR_F32, 1, rows.data(), nullptr, result.data(), nullptr, staging,
                  stagingBytes);
    }
    plr_return_expert_grads(lane, &denseTag, getPlan(), 1, &helper, weights, staging, stagingBytes);
    plr_synchronize(rank);
  }

private:
  static constexpr int64_t tokens = 3000;
  Rank &rank;
  std::vector<int32_t> ids;
  plr_plan_shape shape;
  int64_t hostBytes, deviceBytes, stagingBytes;
  void *host, *device, *staging;
  std::vector<float> rows, input, result;
  float weights[2] = {}, helper = 0;
};

} // namespace

TEST(AllocCount, SeesEveryAllocator) {
  auto expectLarge = [](const plateau_alloc_counts &counts, size_t bytes) {
    EXPECT_EQ(counts.calls, 1);
    EXPECT_EQ(counts.bytes, static_cast<int64_t>(bytes));
    EXPECT_EQ(counts.large_calls, 1);
    EXPECT_EQ(counts.large_bytes, static_cast<int64_t>(bytes));
    EXPECT_EQ(counts.largest_bytes, static_cast<int64_t>(bytes));
  };
  expectLarge(count([] { return std::malloc(large); }), large);
  expectLarge(count([] { return std::calloc(3, large); }), 3 * large);
  expectLarge(count([] { return std::realloc(nullptr, large); }), large);
  expectLarge(count([] { return reallocarray(nullptr, 2, large); }), 2 * large);
  expectLarge(count([] { return std::aligned_alloc(64, large); }), large);
  expectLarge(count([] { return memalign(128, large); }), large);
  expectLarge(count([] { return valloc(large); }), large);
  expectLarge(count([] {
                void *pointer = nullptr;
                EXPECT_EQ(posix_memalign(&pointer, 256, large), 0);
                EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 256, 0u);
                return pointer;
              }),
              large);
  expectLarge(count([] { return ::operator new(large); }), large);
  expectLarge(count([]() -> void * {
                void *pointer = mmap(nullptr, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                EXPECT_NE(pointer, MAP_FAILED);
                *static_cast<char *>(pointer) = 1;
                munmap(pointer, large);
                return nullptr;
              }),
              large);
}

TEST(AllocCount, TellsLargeFromSmall) {
  plateau_alloc_counts counts = count([] {
    for (int i = 0; i < 10; ++i) {
      void *volatile memory = std::malloc(100);
      std::free(memory);
    }
    return std::malloc(large - 1);
  });
  EXPECT_EQ(counts.calls, 11);
  EXPECT_EQ(counts.bytes, static_cast<int64_t>(1000 + large - 1));
  EXPECT_EQ(counts.large_calls, 0);
  EXPECT_EQ(counts.large_bytes, 0);
  EXPECT_EQ(counts.largest_bytes, static_cast<int64_t>(large - 1));
}

TEST(AllocCount, SeesAllThreads) {
  std::atomic<int> stage{0};
  std::thread other([&] {
    while (stage != 1)
      std::this_thread::yield();
    void *volatile memory = std::malloc(large);
    std::free(memory);
    stage = 2;
  });
  plateau_alloc_count_start();
  stage = 1;
  while (stage != 2)
    std::this_thread::yield();
  EXPECT_EQ(plateau_alloc_count_stop().large_calls, 1);
  other.join();
}

TEST(AllocCount, CountsBetweenStartAndStopOnly) {
  plateau_alloc_count_start();
  plateau_alloc_count_stop();
  void *volatile outside = std::malloc(large);
  plateau_alloc_counts counts = count([] { return std::malloc(10); });
  std::free(outside);
  EXPECT_EQ(counts.calls, 1);
  EXPECT_EQ(counts.large_calls, 0);
}

// The pool's memory, and the address range of a space.
TEST(AllocCount, SeesTheRuntime) {
  plateau_alloc_count_start();
  Rank rank;
  plateau_alloc_counts made = plateau_alloc_count_stop();
  EXPECT_GE(made.largest_bytes, makeConfig().device_bytes);
  plateau_alloc_count_start();
  void *memory = plr_allocate(rank, PLR_DEVICE, 1 << 20, &denseTag);
  EXPECT_EQ(plateau_alloc_count_stop().large_calls, 1);
  plr_release(rank, PLR_DEVICE, memory);
}

// In a planned run nothing large is asked for once the first round is over, and hardly anything else.
TEST(AllocCount, IsZeroWhereNothingIsAllocated) {
  Rank rank;
  auto *arena = static_cast<char *>(plr_arena(rank, PLR_DEVICE, 1 << 20, &denseTag));
  ASSERT_NE(arena, nullptr);
  auto runRound = [&] {
    for (int i = 0; i < 100; ++i) {
      plr_zero(rank.lane(), &denseTag, arena, 1 << 20);
      plr_wait(rank.lane(PLR_COMM), plr_record(rank.lane()));
      plr_copy(rank.lane(PLR_COMM), &denseTag, arena, arena + (1 << 19), 1 << 19);
      plr_wait(rank.lane(), plr_record(rank.lane(PLR_COMM)));
      plr_fence(plr_record(rank.lane()));
    }
    plr_synchronize(rank);
  };
  plr_prepare(rank, 1);
  runRound();
  plr_prepare(rank, 0);
  plateau_alloc_count_start();
  runRound();
  plateau_alloc_counts counts = plateau_alloc_count_stop();
  EXPECT_EQ(counts.calls, 0);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
}

// Two ranks with a plan of several iterations, in memory that was there before.
TEST(AllocCount, IsZeroForPlansOfTheCaller) {
  Ranks run(2);
  std::array<std::unique_ptr<PlannedIterations>, 2> steps;
  run.runWell([&](Rank &rank, int32_t number) {
    steps[number] = std::make_unique<PlannedIterations>(rank, number);
    plr_prepare(rank, 1);
    steps[number]->enqueue();
    plr_prepare(rank, 0);
    steps[number]->enqueue(); // Lanes and meetings grow what they keep.
  });
  plateau_alloc_count_start();
  run.runWell([&](Rank &, int32_t number) { steps[number]->enqueue(); });
  plateau_alloc_counts counts = plateau_alloc_count_stop();
  EXPECT_EQ(counts.large_calls, 0);
  EXPECT_LT(counts.largest_bytes, 4096); // Texts for the case that a rank does not come, and the threads of this test.
  for (int32_t number : {0, 1})
    EXPECT_EQ(plr_plan_iterations(steps[number]->getPlan()), 6);
}
