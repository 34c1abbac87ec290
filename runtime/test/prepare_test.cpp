//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// A context that prepares: what calls make for later, and that nothing runs.
#include "common/context.h"
#include "held_plan.h"
#include "kernels_support.h"
#include "rank.h"

using namespace plateau::rt::test;

namespace {

constexpr plr_tag expertsTag = {"moe.grouped_matmul w13", 2, PLR_EXPERTS, PLR_FORWARD};

using Counts = std::vector<int64_t>;

/// The products of a layer with experts, on `plan`; only tensors that are read are there.
struct Layer {
  static constexpr int64_t experts = 3, n = 8, k = 24, mostRows = 1500;
  Tensor rows = randomTensor(PLR_BF16, mostRows *k, 1), weights = randomTensor(PLR_BF16, experts * n * k, 2);
  Tensor result = Tensor(PLR_BF16, mostRows *n), grad = Tensor(PLR_BF16, experts * k * n),
         sums = randomTensor(PLR_F32, experts * k * n, 3);

  void run(plr_lane *lane, const plr_plan *plan) {
    for (int transpose : {0, 1})
      plr_grouped_gemm(lane, &expertsTag, plan, 0, transpose, PLR_BF16, n, k, rows.data(), weights.data(), nullptr,
                       result.data(), nullptr, PLR_FROM_POOL);
    plr_grouped_gemm_grad(lane, &expertsTag, plan, 0, 0, PLR_BF16, PLR_BF16, k, n, rows.data(), result.data(),
                          grad.data(), nullptr, nullptr, PLR_FROM_POOL);
    plr_grouped_gemm_grad(lane, &expertsTag, plan, 0, 1, PLR_BF16, PLR_F32, k, n, rows.data(), result.data(),
                          sums.data(), nullptr, nullptr, PLR_FROM_POOL);
  }
};

} // namespace

TEST(Prepare, MakesAllProductsThatRowCountsNeed) {
  Rank rank;
  plr_context *context = rank;
  Layer layer;
  alignas(64) char garbage[256];
  std::memset(garbage, 0xff, sizeof garbage);
  ASSERT_EQ(plr_prepare(rank, 1), PLR_OK);
  layer.run(rank.lane(), reinterpret_cast<plr_plan *>(garbage)); // Nobody looks into it.
  ASSERT_EQ(plr_prepare(rank, 0), PLR_OK) << rank.message();
  ASSERT_NE(context->gemms, nullptr);
  const size_t made = context->gemms->getSize();
  // Two forward products and two forms of sums, the second of which only adds, over 76 sizes.
  EXPECT_LE(made, 4 * 76u);
  std::mt19937 generator(1);
  for (int round = 0; round < 300; ++round) {
    Counts counts;
    for (int64_t e = 0; e < Layer::experts; ++e)
      counts.push_back(static_cast<int64_t>(generator() % (round % 2 ? 500 : 70)));
    const HeldPlan plan(rank, counts);
    layer.run(rank.lane(), plan);
    ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    ASSERT_EQ(context->gemms->getSize(), made) << testing::PrintToString(counts);
  }
}

TEST(Prepare, WhatIsMadeStays) {
  using plateau::rt::host::GemmCache;
  using plateau::rt::host::GemmShape;
  GemmCache cache;
  std::string message;
  auto get = [&](int64_t m, bool keep) {
    GemmShape shape = {false, false, false, PLR_F32, PLR_F32, m, 1, 1};
    EXPECT_NE(cache.get(shape, PLR_COMPUTE, keep, message), nullptr) << message;
  };
  for (int64_t m = 1; m <= 20; ++m)
    get(m, true);
  get(1, false); // Asked for again, it is kept all the same.
  for (int64_t m = 101; m <= 110; ++m)
    get(m, false);
  cache.limit(10);
  EXPECT_EQ(cache.getSize(), 30u);
  get(111, false);
  cache.limit(10);
  EXPECT_EQ(cache.getSize(), 20u);
  get(111, true);
  cache.limit(0);
  EXPECT_EQ(cache.getSize(), 21u);
}

TEST(Prepare, RunsNothing) {
  plr_config config = makeConfig();
  config.trace = 1;
  Rank rank(config);
  plr_prepare(rank, 1);
  std::vector<intptr_t> numbers;
  float value = 1, sum = 7;
  append(rank.lane(), numbers, 1);
  plr_zero(rank.lane(), &denseTag, &value, 4);
  const int64_t one = 1;
  plr_group *world = plr_get_group(rank, &one, 1, 1);
  plr_all_reduce(rank.lane(), &denseTag, world, PLR_F32, 1, &value, &sum);
  alignas(64) char host[1024], device[128];
  std::memset(host, 5, sizeof host);
  const int32_t id = 0;
  fillPlan(rank.lane(), &denseTag, world, 1, 1, 1, &id, host, sizeof host, device, sizeof device);
  EXPECT_EQ(plr_fence(plr_record(rank.lane())), PLR_OK);
  auto *plan = reinterpret_cast<plr_plan *>(host);
  plr_dispatch(rank.lane(), &denseTag, plan, 0, PLR_F32, 1, &value, nullptr, &sum, nullptr, nullptr, 0);
  plr_combine(rank.lane(), &denseTag, plan, 0, PLR_F32, 1, &sum, nullptr, &value, nullptr, nullptr, 0);
  plr_gemm(rank.lane(), &denseTag, 0, 0, 0, PLR_F32, PLR_F32, 1, 1, 1, &value, &value, &sum, nullptr, PLR_FROM_POOL);
  EXPECT_EQ(plr_wait(rank.lane(PLR_COMM), plr_record(rank.lane())), PLR_OK);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_TRUE(numbers.empty());
  EXPECT_EQ(value, 1);
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(host[0], 5);
  EXPECT_EQ(plr_fence_count(rank), 0);
  EXPECT_EQ(rank.report().allocations, 0);
  plr_span span;
  EXPECT_EQ(plr_trace(rank, 0, &span, 1), 0);

  plr_prepare(rank, 0);
  append(rank.lane(), numbers, 2);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK);
  EXPECT_EQ(numbers, (std::vector<intptr_t>{2}));
}

// An event of that time is complete, whatever is enqueued later.
TEST(Prepare, EventsAreComplete) {
  Rank rank;
  Gate gate;
  gate.close(rank.lane());
  std::thread opener([&] {
    gate.waitUntilReached();
    gate.release();
  });
  plr_prepare(rank, 1); // Waits for the lanes.
  opener.join();
  plr_event *event = plr_record(rank.lane());
  plr_prepare(rank, 0);
  Gate second;
  second.close(rank.lane());
  EXPECT_EQ(plr_fence(event), PLR_OK);
  second.release();
  plr_synchronize(rank);
}

TEST(Prepare, ChecksArguments) {
  auto expectMisuse = [](auto call, const char *text) {
    Rank rank;
    plr_prepare(rank, 1);
    call(rank, rank.lane());
    EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT) << text;
    EXPECT_CONTAINS(rank.message(), text);
  };
  static float x;
  alignas(64) static char scratch[64];
  expectMisuse([](Rank &, plr_lane *l) { plr_zero(l, &denseTag, nullptr, 4); }, "is null");
  expectMisuse(
      [](Rank &, plr_lane *l) {
        plr_gemm(l, &denseTag, 1, 0, 0, PLR_BF16, PLR_BF16, 256, 256, 1024, &x, &x, &x, scratch, 64);
      },
      "the workspace has 64 bytes, but ");
  expectMisuse(
      [](Rank &, plr_lane *l) {
        plr_grouped_gemm(l, &denseTag, nullptr, 0, 0, PLR_F32, 1, 1, &x, &x, nullptr, &x, nullptr, PLR_FROM_POOL);
      },
      "the plan is null");
  expectMisuse(
      [](Rank &rank, plr_lane *l) {
        const int64_t one = 1;
        const int32_t id = 0;
        EXPECT_EQ(createPlan(l, &denseTag, plr_get_group(rank, &one, 1, 1), 1, 1, 1, &id), nullptr);
      },
      "nobody sends while the context prepares; use plr_plan_fill");
  expectMisuse([](Rank &rank, plr_lane *) { plr_prepare(rank, 2); }, "plr_prepare: on is 2, but must be 0 or 1");
  EXPECT_EQ(plr_prepare(nullptr, 1), PLR_INVALID_ARGUMENT);
}
