//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// After a first round, calls take no memory from the process: queues are rings, blocks reuse their entries.
#include "rank.h"
#include <cstdlib>
#include <new>

static std::atomic<int64_t> newCalls{0};

void *operator new(std::size_t size) {
  newCalls.fetch_add(1, std::memory_order_relaxed);
  if (void *pointer = std::malloc(size))
    return pointer;
  throw std::bad_alloc();
}
void *operator new(std::size_t size, std::align_val_t alignment) {
  newCalls.fetch_add(1, std::memory_order_relaxed);
  size_t unit = static_cast<size_t>(alignment); // aligned_alloc takes whole units only.
  if (void *pointer = std::aligned_alloc(unit, (size + unit - 1) / unit * unit))
    return pointer;
  throw std::bad_alloc();
}
void operator delete(void *pointer) noexcept { std::free(pointer); }
void operator delete(void *pointer, std::size_t) noexcept { std::free(pointer); }
void operator delete(void *pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete(void *pointer, std::size_t, std::align_val_t) noexcept { std::free(pointer); }

using namespace plateau::rt::test;

static void doSomething(void **) {}

static void runRound(Rank &rank) {
  float values[16] = {};
  void *arguments[3] = {};
  void *blocks[20];
  for (int i = 0; i < 500; ++i) {
    for (int j = 0; j < 20; ++j)
      blocks[j] = plr_allocate(rank, PLR_DEVICE, 1000 * (1 + (i * 7 + j * 13) % 31), &denseTag);
    plr_zero(rank.lane(), &denseTag, blocks[0], 64);
    plr_copy(rank.lane(PLR_H2D), &denseTag, values, values + 8, 32);
    plr_launch(rank.lane(), &lossTag, &doSomething, arguments, 3);
    plr_wait(rank.lane(PLR_H2D), plr_record(rank.lane()));
    plr_wait(rank.lane(), plr_record(rank.lane(PLR_H2D)));
    for (int j = 0; j < 20; ++j)
      plr_release(rank, PLR_DEVICE, blocks[(j * 7) % 20]);
  }
  plr_synchronize(rank);
}

TEST(AllocationCount, IsZeroAfterTheFirstRound) {
  Rank rank;
  runRound(rank);
  int64_t before = newCalls;
  runRound(rank);
  EXPECT_EQ(newCalls - before, 0);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
}
