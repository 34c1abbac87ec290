//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// What the calls on a plan of several iterations write, refuse and leave alone.
#include "chunked_layer.h"
#include "common/plan.h"
#include "host/plan_steps.h"

using namespace plateau::rt::test;

namespace {

/// 6 tokens of one slot to expert 0 but for the last, which has none; 3 chunks of 2 leaves, tokens 0 3, 1 4 and 2 5.
plr_plan_shape makeSix(int64_t experts, int64_t capacity) {
  plr_plan_shape shape = makeShape(6, 1, experts);
  shape.chunks = 3;
  shape.leaves = 2;
  shape.capacity = capacity;
  return shape;
}
constexpr int32_t sixIds[] = {0, 0, 0, 0, 0, -1};

/// The message of a rank alone on which a plan of this shape cannot be made.
std::string refuse(const plr_plan_shape &shape, const int32_t *ids = sixIds) {
  Rank rank;
  EXPECT_EQ(plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 1), &shape, ids), nullptr);
  EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(rank.report().live_bytes, 0);
  return rank.message();
}

} // namespace

TEST(ChunkedCalls, CombineWritesTheTokensOfItsIteration) {
  Rank rank;
  const plr_plan_shape shape = makeSix(1, 2);
  plr_plan *plan = plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 1), &shape, sixIds);
  ASSERT_EQ(plr_plan_iterations(plan), 3);
  std::vector<float> expected(6, -1), result(6, -1), values(6, -1);
  for (int64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(plr_plan_rows(plan, i), i == 2 ? 1 : 2);
    const float rows[] = {static_cast<float>(10 * i + 1), static_cast<float>(10 * i + 2)};
    plr_combine(rank.lane(), &layerTag, plan, i, PLR_F32, 1, rows, rows, result.data(), values.data(), nullptr,
                PLR_FROM_POOL);
    plr_synchronize(rank);
    expected[i] = rows[0];
    expected[i + 3] = i == 2 ? 0 : rows[1]; // Token 5 sends nothing, and its sum is that of nothing.
    EXPECT_EQ(result, expected);
    EXPECT_EQ(values, expected);
  }
  plr_plan_release(plan);
}

// Ranks do not meet for an iteration without tokens, and no memory is looked at.
TEST(ChunkedCalls, DoNothingInEmptyIterations) {
  Ranks run(2);
  run.runWell([](Rank &rank, int32_t number) {
    const plr_plan_shape shape = makeSix(2, 100);
    plr_plan *plan = plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 2), &shape, sixIds);
    ASSERT_EQ(plr_plan_iterations(plan), 3);
    if (number == 0) // The other rank makes no such calls.
      for (int64_t i = 3; i < 6; ++i) {
        EXPECT_EQ(plr_plan_rows(plan, i), 0);
        plr_dispatch(rank.lane(), &layerTag, plan, i, PLR_F32, 8, nullptr, nullptr, rank, nullptr, nullptr, 0);
        plr_combine(rank.lane(), &layerTag, plan, i, PLR_BF16, 8, rank, nullptr, nullptr, nullptr, nullptr, 0);
        plr_grouped_gemm(rank.lane(), &layerTag, plan, i, 0, PLR_F32, 8, 8, nullptr, nullptr, nullptr, nullptr, nullptr,
                         0);
        plr_grouped_gemm_grad(rank.lane(), &layerTag, plan, i, 0, PLR_F32, PLR_F32, 8, 8, nullptr, nullptr, nullptr,
                              nullptr, nullptr, 0);
      }
    EXPECT_EQ(plr_plan_rows(plan, -1), 0);
    EXPECT_EQ(plr_plan_rows(plan, 6), 0);
    plr_plan_release(plan);
  });
}

// But their arguments are checked all the same.
TEST(ChunkedCalls, RefuseIterationsThatThePlanCannotHave) {
  auto expect = [](int64_t iteration, const char *text) {
    using Use = plr_status (*)(Rank &, plr_plan *, int64_t);
    static float x[8];
    const Use uses[] = {
        [](Rank &rank, plr_plan *plan, int64_t i) {
          return plr_dispatch(rank.lane(), &layerTag, plan, i, PLR_F32, 1, x, nullptr, x, nullptr, nullptr, 0);
        },
        [](Rank &rank, plr_plan *plan, int64_t i) {
          return plr_combine(rank.lane(), &layerTag, plan, i, PLR_F32, 1, x, nullptr, x, nullptr, nullptr, 0);
        },
        [](Rank &rank, plr_plan *plan, int64_t i) {
          return plr_grouped_gemm(rank.lane(), &layerTag, plan, i, 0, PLR_F32, 1, 1, x, x, nullptr, x, nullptr, 0);
        },
        [](Rank &rank, plr_plan *plan, int64_t i) {
          return plr_grouped_gemm_grad(rank.lane(), &layerTag, plan, i, 0, PLR_F32, PLR_F32, 1, 1, x, x, x, nullptr,
                                       nullptr, 0);
        }};
    for (Use use : uses) {
      Rank rank;
      const plr_plan_shape shape = makeSix(1, 2);
      plr_plan *plan = plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 1), &shape, sixIds);
      EXPECT_EQ(use(rank, plan, iteration), PLR_INVALID_ARGUMENT);
      EXPECT_CONTAINS(rank.message(), text);
    }
  };
  expect(6, "iteration is 6, but the plan has at most 6");
  expect(-1, "iteration is -1, but must be at least 0");
}

// Leaves are tokens 0 3, 1 4 and 2 5 of either rank. Of tokens 1 and 4 three go to rank 0; of no others more than two
// to either rank.
TEST(ChunkedCalls, NameTheSmallestCapacity) {
  for (bool isFill : {false, true}) {
    Ranks run(2, 600);
    run.run([&](Rank &rank, int32_t number) {
      plr_plan_shape shape = makeShape(6, 1, 2);
      shape.chunks = 3;
      shape.capacity = 2;
      const int32_t ids[2][6] = {{0, 0, 1, 1, 0, -1}, {1, 0, -1, -1, 1, 1}};
      if (isFill) {
        alignas(64) static thread_local char host[4096], device[64];
        plr_plan_fill(rank.lane(), &layerTag, getWorld(rank, 2), &shape, ids[number], host, sizeof host, device,
                      sizeof device);
        plr_fence(plr_record(rank.lane()));
        EXPECT_EQ(plr_plan_iterations(reinterpret_cast<plr_plan *>(host)), 0);
      } else {
        EXPECT_EQ(plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 2), &shape, ids[number]), nullptr);
      }
      EXPECT_EQ(plr_synchronize(rank), PLR_INVALID_ARGUMENT); // On both ranks, by themselves.
      EXPECT_CONTAINS(rank.message(), "of moe.layer (layer 4, dispatch, forward): leaf 1 of 3 sends 3 rows to rank 0, "
                                      "but the capacity is 2. The smallest capacity that holds every leaf of this "
                                      "routing is 3. Raise it, or cut the tokens into more leaves");
      EXPECT_EQ(plr_plan_records(rank, 0, nullptr, 0), 0);
    });
  }
}

TEST(ChunkedCalls, RefuseShapes) {
  auto with = [](auto change) {
    plr_plan_shape shape = makeSix(1, 2);
    change(shape);
    return refuse(shape);
  };
  using Shape = plr_plan_shape;
  EXPECT_CONTAINS(with([](Shape &s) { s.helper_slots = -1; }), "helper_slots is -1, but must be at least 0");
  EXPECT_CONTAINS(with([](Shape &s) { s.chunks = 0; }), "chunks is 0, but must be at least 1");
  EXPECT_CONTAINS(with([](Shape &s) { s.leaves = 0; }), "leaves is 0, but must be at least 1");
  EXPECT_CONTAINS(with([](Shape &s) { s.capacity = -5; }), "capacity is -5, but must be at least 0");
  EXPECT_CONTAINS(with([](Shape &s) { s.capacity = 0; }), "leaves is 2, but capacity is 0");
  EXPECT_CONTAINS(with([](Shape &s) { s.capacity = int64_t(1) << 31; }), "capacity is 2147483648, but must fit 32");
  EXPECT_CONTAINS(with([](Shape &s) { s.alpha_numerator = -1; }), "alpha_numerator is -1");
  EXPECT_CONTAINS(with([](Shape &s) { s.alpha_denominator = 0; }), "alpha_denominator is 0, but must be at least 1");
  EXPECT_CONTAINS(with([](Shape &s) { s.min_rows = 0; }), "min_rows is 0, but must be at least 1");
  EXPECT_CONTAINS(with([](Shape &s) { s.threshold_numerator = -1; }), "threshold_numerator is -1");
  EXPECT_CONTAINS(with([](Shape &s) { s.threshold_denominator = 0; }), "threshold_denominator is 0");
  EXPECT_CONTAINS(with([](Shape &s) { s.helper_slots = 1; }), "helper_slots is 1, but the other ranks have 0 experts");
  EXPECT_CONTAINS(with([](Shape &s) { s.chunks = int64_t(1) << 40; }),
                  "chunks is 1099511627776 and leaves 2, but their product must be at most 1048576");
  Rank rank;
  EXPECT_EQ(plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 1), nullptr, sixIds), nullptr);
  EXPECT_CONTAINS(rank.message(), "the shape is null");
  Ranks run(2);
  plr_plan_shape shape = makeSix(4, 2);
  shape.helper_slots = 1;
  EXPECT_EQ(plr_plan_create(run[0].lane(), &layerTag, getWorld(run[0], 2), &shape, sixIds), nullptr);
  EXPECT_CONTAINS(run[0].message(), "helper_slots is 1, but alpha_numerator is 0: nobody helps without balance");
}

// Whatever the ranks disagree about, both are told, and by name; their tokens may differ.
TEST(ChunkedCalls, CompareShapes) {
  using Change = void (*)(plr_plan_shape &);
  const std::pair<Change, const char *> changes[] = {
      {[](plr_plan_shape &s) { s.top_k = 2; }, "of 4 experts, top_k 2, helper_slots 1"},
      {[](plr_plan_shape &s) { s.experts = 6; }, "of 6 experts"},
      {[](plr_plan_shape &s) { s.helper_slots = 2; }, "helper_slots 2, chunks 3"},
      {[](plr_plan_shape &s) { s.chunks = 2; }, "chunks 2, leaves 2"},
      {[](plr_plan_shape &s) { s.leaves = 3; }, "leaves 3, capacity 100"},
      {[](plr_plan_shape &s) { s.capacity = 99; }, "capacity 99, alpha 1/1"},
      {[](plr_plan_shape &s) { s.alpha_numerator = 2; }, "alpha 2/1, min_rows 1"},
      {[](plr_plan_shape &s) { s.alpha_denominator = 2; }, "alpha 1/2, min_rows 1"},
      {[](plr_plan_shape &s) { s.min_rows = 7; }, "min_rows 7, threshold 1/1"},
      {[](plr_plan_shape &s) { s.threshold_numerator = 3; }, "threshold 3/1"},
      {[](plr_plan_shape &s) { s.threshold_denominator = 3; }, "threshold 1/3"},
      {[](plr_plan_shape &s) { s.helper_slots = s.alpha_numerator = 0; }, "helper_slots 0, chunks 3"}};
  for (auto [change, text] : changes) {
    Ranks run(2, 600);
    run.run([&, change = change, text = text](Rank &rank, int32_t number) {
      plr_plan_shape shape = makeSix(4, 100);
      shape.helper_slots = shape.alpha_numerator = 1;
      if (number == 1)
        change(shape);
      const std::vector<int32_t> ids(6 * shape.top_k, 0);
      EXPECT_EQ(plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 2), &shape, ids.data()), nullptr);
      EXPECT_EQ(plr_context_error(rank, nullptr), PLR_COMMUNICATION);
      EXPECT_CONTAINS(rank.message(), "the ranks do not make the same call: rank 0 with plr_plan_create of 4 experts, "
                                      "top_k 1, helper_slots 1, chunks 3, leaves 2, capacity 100, alpha 1/1, min_rows "
                                      "1, threshold 1/1 for moe.layer");
      EXPECT_CONTAINS(rank.message(), text);
    });
  }
  Ranks run(2);
  run.runWell([](Rank &rank, int32_t number) {
    plr_plan_shape shape = makeSix(4, 100);
    shape.tokens -= number;
    plr_plan *plan = plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 2), &shape, sixIds);
    EXPECT_EQ(plr_plan_iterations(plan), 3);
    plr_plan_release(plan);
  });
}

// A plan that something has written over is not believed.
TEST(ChunkedCalls, RefuseMoreRowsThanTheCapacity) {
  Rank rank;
  const plr_plan_shape shape = makeSix(1, 2);
  plr_plan *plan = plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 1), &shape, sixIds);
  plan->slotOffsets[3] = 5; // The end of iteration 1.
  float x[16] = {};
  plr_dispatch(rank.lane(), &layerTag, plan, 1, PLR_F32, 1, x, nullptr, x + 8, nullptr, nullptr, PLR_FROM_POOL);
  EXPECT_EQ(plr_synchronize(rank), PLR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(rank.message(), "iteration 1 has 5 rows, but the capacity is 2: something has written over the plan");
}

// 2 ranks, 2 chunks of one leaf: 2^31 − 1 rows to rank 1 in an iteration, and one more.
TEST(PlanRecords, CountRowsBeyond32Bits) {
  Ranks run(2);
  plr_plan_shape shape = makeShape(0, 1, 2);
  shape.chunks = 2;
  std::vector<int64_t> memory(getPlanHostBytes(2, shape) / 8);
  plr_plan &plan = *plr_plan::layOut(memory.data(), *run[0], getWorld(run[0], 2), 2, shape);
  const int64_t rows[] = {5, INT32_MAX, 7, INT32_MAX};
  std::copy(rows, rows + 4, plan.leafRows);
  plan.iterations = plateau::rt::host::cutIntoIterations(2, shape, plan.leafRows, plan.cut, plan.rankSums);
  plr_plan_record record = {};
  EXPECT_EQ(plateau::rt::host::summarize(plan, record).status, PLR_OK);
  EXPECT_EQ(record.total_load, 12 + 2 * int64_t(INT32_MAX));
  EXPECT_EQ(record.max_load, 2 * int64_t(INT32_MAX));
  EXPECT_EQ(record.max_received, INT32_MAX);
  ++plan.leafRows[3];
  plateau::rt::host::Outcome outcome = plateau::rt::host::summarize(plan, record);
  EXPECT_EQ(outcome.status, PLR_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.message,
            "rank 1 would receive 2147483648 rows in one iteration, but their number must fit 32 bits");
}

TEST(PlanRecords, StayUntilTheNextMeasurement) {
  Rank rank;
  plr_plan_shape shape = makeSix(1, 2);
  alignas(64) static char host[4096], device[64];
  auto fill = [&](const plr_tag *tag) {
    plr_plan_fill(rank.lane(), tag, getWorld(rank, 1), &shape, sixIds, host, sizeof host, device, sizeof device);
  };
  plr_prepare(rank, 1);
  fill(&layerTag);
  plr_prepare(rank, 0);
  EXPECT_EQ(plr_plan_records(rank, 0, nullptr, 0), 0);
  fill(&layerTag);
  shape.capacity = 3;
  fill(&denseTag);
  plr_synchronize(rank);
  plr_plan_record records[3] = {};
  EXPECT_EQ(plr_plan_records(rank, 0, records, 3), 2);
  EXPECT_EQ(records[0].tag, &layerTag);
  EXPECT_EQ(records[0].capacity, 2);
  EXPECT_EQ(records[1].tag, &denseTag);
  EXPECT_EQ(records[1].iterations, 3);
  EXPECT_EQ(records[2].tag, nullptr);
  EXPECT_EQ(plr_plan_records(rank, 1, records, 1), 2);
  EXPECT_EQ(records[0].tag, &denseTag);
  EXPECT_EQ(plr_plan_records(rank, 7, records, 3), 2);
  EXPECT_EQ(plr_plan_records(rank, -7, records, -3), 2);
  plr_reset_peak(rank);
  EXPECT_EQ(plr_plan_records(rank, 0, records, 3), 0);
  for (int i = 0; i < 4100; ++i)
    fill(&layerTag);
  plr_synchronize(rank);
  EXPECT_EQ(plr_plan_records(rank, 0, nullptr, 0), 4100);
  EXPECT_EQ(plr_plan_records(rank, 4095, records, 3), 4100);
  EXPECT_EQ(plr_plan_records(nullptr, 0, records, 3), 0);
}
