//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// A layer with experts whose plan, tables, rows and scratch lie where its caller says, against the same layer on memory
// of the pool.
#include "common/plan.h"
#include "kernels_support.h"
#include "plan_shape.h"
#include "ranks.h"

using namespace plateau::rt::test;

namespace {

constexpr plr_tag layerTag = {"moe.plan", 4, PLR_ROUTING, PLR_FORWARD};

constexpr int64_t tokens = 20, topK = 2, columns = 24, width = 16;

/// Which experts the tokens of a rank choose; −1 now and then.
std::vector<int32_t> makeIds(int64_t experts, int32_t rank, uint32_t seed) {
  std::mt19937 generator(seed * 97 + static_cast<uint32_t>(rank));
  std::vector<int32_t> ids(tokens * topK);
  for (int32_t &id : ids)
    id = static_cast<int32_t>(generator() % static_cast<uint32_t>(experts + 1)) - 1;
  return ids;
}

/// Memory of a rank, poisoned when it is handed out. All of a layer's is known before it runs.
struct Memory {
  const int64_t ranks, experts, mostRows = ranks * tokens * topK;
  const int64_t hostBytes = getPlanHostBytes(ranks, makeShape(tokens, topK, experts)),
                deviceBytes = plr_footprint_plan_device(tokens, topK),
                exchangeBytes = plr_footprint_exchange(ranks, tokens *topK, columns * 4, 1),
                gemmBytes = plr_grouped_gemm_workspace_bytes(PLR_GEMM_ONEDNN, 0, PLR_F32, mostRows, width, columns),
                gradBytes = plr_grouped_gemm_grad_workspace_bytes(PLR_GEMM_ONEDNN, 0, PLR_F32, PLR_F32, mostRows,
                                                                  columns, width);
  void *host, *device, *exchange, *gemm, *grad;

  Memory(Rank &rank, int64_t ranks, int64_t experts) : ranks(ranks), experts(experts) {
    auto take = [&](plr_space space, int64_t bytes) { return plr_allocate(rank, space, bytes, &layerTag); };
    host = take(PLR_HOST, hostBytes);
    device = take(PLR_DEVICE, deviceBytes);
    exchange = take(PLR_DEVICE, exchangeBytes);
    gemm = take(PLR_DEVICE, gemmBytes);
    grad = take(PLR_DEVICE, gradBytes);
  }

  plr_plan *fill(plr_lane *lane, plr_group *group, const int32_t *ids) const {
    fillPlan(lane, &layerTag, group, tokens, topK, experts, ids, host, hostBytes, device, deviceBytes);
    return static_cast<plr_plan *>(host);
  }
};

/// What a layer computes, NaN where nothing was written.
struct Results {
  Tensor rows, values, products, grad, output, valuesBack;
  explicit Results(int64_t mostRows, int64_t localExperts)
      : rows(PLR_F32, mostRows * columns), values(PLR_F32, mostRows), products(PLR_F32, mostRows * width),
        grad(PLR_F32, localExperts * columns * width), output(PLR_F32, tokens * columns),
        valuesBack(PLR_F32, tokens * topK) {}
  void expectSame(const Results &other) const {
    EXPECT_TRUE(rows.sameBits(other.rows));
    EXPECT_TRUE(values.sameBits(other.values));
    EXPECT_TRUE(products.sameBits(other.products));
    EXPECT_TRUE(grad.sameBits(other.grad));
    EXPECT_TRUE(output.sameBits(other.output));
    EXPECT_TRUE(valuesBack.sameBits(other.valuesBack));
  }
};

struct Inputs {
  Tensor input, values, weights;
  Inputs(int32_t rank, int64_t experts)
      : input(randomTensor(PLR_F32, tokens * columns, 10 + rank)),
        values(randomTensor(PLR_F32, tokens * topK, 20 + rank)),
        weights(randomTensor(PLR_F32, experts * columns * width, 30)) {}
};

/// Enqueues the layer; `memory` is null for the pool.
void enqueueLayer(plr_lane *lane, plr_plan *plan, Inputs &in, Results &out, const Memory *memory) {
  auto bytes = [&](int64_t size) { return memory ? size : PLR_FROM_POOL; };
  void *exchange = memory ? memory->exchange : nullptr, *gemm = memory ? memory->gemm : nullptr,
       *grad = memory ? memory->grad : nullptr;
  plr_dispatch(lane, &layerTag, plan, 0, PLR_F32, columns, in.input.data(), in.values.floats(), out.rows.data(),
               out.values.floats(), exchange, bytes(memory ? memory->exchangeBytes : 0));
  plr_grouped_gemm(lane, &layerTag, plan, 0, 0, PLR_F32, width, columns, out.rows.data(), in.weights.data(), nullptr,
                   out.products.data(), gemm, bytes(memory ? memory->gemmBytes : 0));
  plr_grouped_gemm_grad(lane, &layerTag, plan, 0, 0, PLR_F32, PLR_F32, columns, width, out.rows.data(),
                        out.products.data(), out.grad.data(), nullptr, grad, bytes(memory ? memory->gradBytes : 0));
  plr_combine(lane, &layerTag, plan, 0, PLR_F32, columns, out.rows.data(), out.values.floats(), out.output.data(),
              out.valuesBack.floats(), exchange, bytes(memory ? memory->exchangeBytes : 0));
}

class PlannedLayer : public testing::TestWithParam<int> {
protected:
  int32_t ranks = GetParam();
  int64_t experts = 4 * ranks;
  plr_config config = [] {
    plr_config config = makeConfig();
    config.poison = 1;
    return config;
  }();

  /// The same layer with the ids of `seed` on memory of the pool.
  Results runOnPool(Rank &rank, int32_t number, uint32_t seed) {
    std::vector<int32_t> ids = makeIds(experts, number, seed);
    Inputs inputs(number, experts);
    Results results(ranks * tokens * topK, experts / ranks);
    plr_plan *plan = createPlan(rank.lane(), &layerTag, getWorld(rank, ranks), tokens, topK, experts, ids.data());
    enqueueLayer(rank.lane(), plan, inputs, results, nullptr);
    plr_plan_release(plan);
    EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    return results;
  }
};

std::string copyOf(const void *memory, int64_t bytes) {
  return std::string(static_cast<const char *>(memory), static_cast<size_t>(bytes));
}

} // namespace

TEST_P(PlannedLayer, HasTheBitsOfThePool) {
  Ranks run(ranks, 60, config);
  run.runWell([&](Rank &rank, int32_t number) {
    Memory memory(rank, ranks, experts);
    for (uint32_t seed = 0; seed < 4; ++seed) { // The memory of one plan is that of the next.
      Results expected = runOnPool(rank, number, seed), results(memory.mostRows, experts / ranks);
      std::vector<int32_t> ids = makeIds(experts, number, seed);
      Inputs inputs(number, experts);
      const int64_t before = rank.report().allocations;
      plr_plan *plan = memory.fill(rank.lane(), getWorld(rank, ranks), ids.data());
      ASSERT_EQ(plr_fence(plr_record(rank.lane())), PLR_OK) << rank.message();
      ASSERT_EQ(plr_plan_rows(plan, 0), plan->getRows(0));
      enqueueLayer(rank.lane(), plan, inputs, results, &memory);
      ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
      results.expectSame(expected);
      EXPECT_EQ(rank.report().allocations, before);
    }
    EXPECT_EQ(plr_fence_count(rank), 4);
  });
}

// A fill that is enqueued behind users of the memory's first plan changes nothing before they have run.
TEST_P(PlannedLayer, AFillWaitsForThoseWhoReadTheFirstPlan) {
  config.poison = 0; // Poisoning waits for the lanes.
  Ranks run(ranks, 60, config);
  run.runWell([&](Rank &rank, int32_t number) {
    Results firstExpected = runOnPool(rank, number, 1), secondExpected = runOnPool(rank, number, 2);
    Memory memory(rank, ranks, experts);
    std::vector<int32_t> firstIds = makeIds(experts, number, 1), secondIds = makeIds(experts, number, 2);
    Inputs inputs(number, experts);
    Results first(memory.mostRows, experts / ranks), second = first;
    plr_group *world = getWorld(rank, ranks);
    plr_plan *plan = memory.fill(rank.lane(), world, firstIds.data());
    plr_fence(plr_record(rank.lane()));

    Gate gate;
    gate.close(rank.lane());
    enqueueLayer(rank.lane(), plan, inputs, first, &memory);
    std::string host = copyOf(memory.host, memory.hostBytes), device = copyOf(memory.device, memory.deviceBytes);
    memory.fill(rank.lane(), world, secondIds.data());
    EXPECT_EQ(host, copyOf(memory.host, memory.hostBytes));
    EXPECT_EQ(device, copyOf(memory.device, memory.deviceBytes));
    plr_event *filled = plr_record(rank.lane());
    gate.release();
    ASSERT_EQ(plr_fence(filled), PLR_OK) << rank.message();
    enqueueLayer(rank.lane(), plan, inputs, second, &memory);
    ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    first.expectSame(firstExpected);
    second.expectSame(secondExpected);
  });
}

// The plan of one lane on another, ordered by events.
TEST_P(PlannedLayer, MayBeFilledOnAnotherLane) {
  Ranks run(ranks, 60, config);
  run.runWell([&](Rank &rank, int32_t number) {
    Results expected = runOnPool(rank, number, 3);
    Memory memory(rank, ranks, experts);
    std::vector<int32_t> ids = makeIds(experts, number, 3);
    Inputs inputs(number, experts);
    Results results(memory.mostRows, experts / ranks);
    plr_plan *plan = memory.fill(rank.lane(PLR_COMM), getWorld(rank, ranks), ids.data());
    plr_event *filled = plr_record(rank.lane(PLR_COMM));
    plr_wait(rank.lane(), filled);
    ASSERT_EQ(plr_fence(filled), PLR_OK);
    enqueueLayer(rank.lane(), plan, inputs, results, &memory);
    ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    results.expectSame(expected);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, PlannedLayer, testing::Values(1, 2, 4), testing::PrintToStringParamName());

// After a failure the memory may hold anything, and nobody looks at it.
TEST(PlanFill, BadIdsFailOnTheLane) {
  Ranks run(2, 600);
  run.run([&](Rank &rank, int32_t number) {
    Memory memory(rank, 2, 4);
    std::memset(memory.host, 0xff, memory.hostBytes);
    std::vector<int32_t> ids(tokens * topK, 1);
    if (number == 1)
      ids[5] = 7;
    Inputs inputs(number, 4);
    Results results(memory.mostRows, 2);
    plr_plan *plan = memory.fill(rank.lane(), getWorld(rank, 2), ids.data());
    plr_fence(plr_record(rank.lane())); // There may be no event: the context may have failed by now.
    EXPECT_EQ(plr_synchronize(rank), number == 1 ? PLR_BAD_DATA : PLR_COMMUNICATION);
    EXPECT_CONTAINS(rank.message(), "lane compute: plr_plan_fill of moe.plan (layer 4, routing, forward): token 2 has "
                                    "expert 7 in slot 1, but there are experts 0 ... 3, and -1 for none");
    EXPECT_EQ(plr_plan_rows(plan, 0), 0);
    enqueueLayer(rank.lane(), plan, inputs, results, &memory);
    plr_plan_release(plan);
    EXPECT_EQ(plr_synchronize(rank), number == 1 ? PLR_BAD_DATA : PLR_COMMUNICATION);
  });
}

// A plan's memory is for the tokens of its own rank: rows of others take none of it.
TEST(PlanFill, RanksMayHaveDifferentNumbersOfTokens) {
  Ranks run(2, 600);
  run.runWell([&](Rank &rank, int32_t number) {
    const int64_t count = number == 0 ? 20 : 100;
    std::vector<int32_t> ids(count, 0);
    const plr_plan_shape shape = makeShape(count, 1, 2);
    alignas(64) static thread_local char host[2048], device[512];
    const int64_t deviceBytes = plr_footprint_plan_device(count, 1);
    EXPECT_EQ(deviceBytes, number == 0 ? 128 : 448);
    plr_plan_fill(rank.lane(), &layerTag, getWorld(rank, 2), &shape, ids.data(), host, getPlanHostBytes(2, shape),
                  device, deviceBytes);
    ASSERT_EQ(plr_fence(plr_record(rank.lane())), PLR_OK) << rank.message();
    EXPECT_EQ(plr_plan_iterations(reinterpret_cast<plr_plan *>(host)), 1);
    EXPECT_EQ(plr_plan_rows(reinterpret_cast<plr_plan *>(host), 0), number == 0 ? 120 : 0);
  });
}

TEST(PlanFill, MisuseIsNamed) {
  static const int32_t ids[4] = {0, 1, 2, 0};
  alignas(64) static char host[2048], device[1024];
  auto expectRefused = [](int64_t tokens, int64_t experts, const int32_t *ids, void *host, int64_t hostBytes,
                          void *device, int64_t deviceBytes, const char *text) {
    Rank rank;
    fillPlan(rank.lane(), &layerTag, getWorld(rank, 1), tokens, 2, experts, ids, host, hostBytes, device, deviceBytes);
    EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT) << text;
    EXPECT_CONTAINS(rank.message(), text);
  };
  const int64_t hostNeeds = 1088, deviceNeeds = 64;
  EXPECT_EQ(getPlanHostBytes(1, makeShape(2, 2, 3)), hostNeeds);
  expectRefused(-2, 3, ids, host, 2048, device, 1024, "tokens is -2");
  expectRefused(2, 0, ids, host, 2048, device, 1024, "experts is 0");
  expectRefused(2, 3, nullptr, host, 2048, device, 1024, "ids is null");
  // A header of 320 bytes, eight arrays of at most 64 and two of 96: 1088 in lines.
  expectRefused(2, 3, ids, host, hostNeeds - 1, device, 1024,
                "the host memory of the plan has 1087 bytes, but 1088 are needed");
  expectRefused(2, 3, ids, nullptr, hostNeeds, device, 1024, "the host memory of the plan is null");
  expectRefused(2, 3, ids, host + 8, hostNeeds, device, 1024,
                "the host memory of the plan lies 8 bytes behind a multiple of 64");
  expectRefused(2, 3, ids, host, 2048, device, deviceNeeds - 1,
                "the device memory of the plan has 63 bytes, but 64 are needed");
  expectRefused(2, 3, ids, host, 2048, nullptr, deviceNeeds, "the device memory of the plan is null");
  expectRefused(2, 3, ids, host, 2048, device + 4, deviceNeeds,
                "the device memory of the plan lies 4 bytes behind a multiple of 64");
}

TEST(PlanFill, ItsUsersAreTold) {
  alignas(64) static char host[2048], device[1024], none[2048];
  static float data[64];
  std::memset(none, 0xff, sizeof none);
  auto use = [](plr_plan *plan, const char *text, auto call) {
    Rank rank;
    const int32_t ids[] = {0, 1};
    fillPlan(rank.lane(), &layerTag, getWorld(rank, 1), 2, 1, 2, ids, host, sizeof host, device, sizeof device);
    plr_fence(plr_record(rank.lane()));
    ASSERT_EQ(plr_plan_rows(reinterpret_cast<plr_plan *>(host), 0), 2);
    call(rank, plan);
    EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT);
    EXPECT_CONTAINS(rank.message(), text);
  };
  auto *filled = reinterpret_cast<plr_plan *>(host), *unfilled = reinterpret_cast<plr_plan *>(none);
  const char *missing = "there is no plan: plr_plan_fill has not run, or a fence behind it is missing";
  use(filled, "plr_plan_release: the plan lies in the caller's memory, made by plr_plan_fill",
      [](Rank &, plr_plan *plan) { plr_plan_release(plan); });
  use(unfilled, missing, [](Rank &rank, plr_plan *plan) {
    plr_dispatch(rank.lane(), &layerTag, plan, 0, PLR_F32, 1, data, nullptr, data, nullptr, nullptr, PLR_FROM_POOL);
  });
  use(unfilled, missing, [](Rank &rank, plr_plan *plan) {
    plr_combine(rank.lane(), &layerTag, plan, 0, PLR_F32, 1, data, nullptr, data, nullptr, nullptr, PLR_FROM_POOL);
  });
  use(unfilled, missing, [](Rank &rank, plr_plan *plan) {
    plr_grouped_gemm(rank.lane(), &layerTag, plan, 0, 0, PLR_F32, 1, 1, data, data, nullptr, data, nullptr,
                     PLR_FROM_POOL);
  });
  // Of one rank nothing is staged.
  use(filled, "workspace_bytes is -3", [](Rank &rank, plr_plan *plan) {
    plr_dispatch(rank.lane(), &layerTag, plan, 0, PLR_F32, 1, data, nullptr, data, nullptr, nullptr, -3);
  });
  EXPECT_EQ(plr_plan_rows(unfilled, 0), 0);
}

TEST(PlanFill, StagingThatIsTooSmallIsRefused) {
  Ranks run(2, 600);
  run.run([&](Rank &rank, int32_t number) {
    Memory memory(rank, 2, 4);
    std::vector<int32_t> ids(tokens * topK, 2 * number); // Each keeps its own rows.
    Inputs inputs(number, 4);
    Results results(memory.mostRows, 2);
    plr_plan *plan = memory.fill(rank.lane(), getWorld(rank, 2), ids.data());
    ASSERT_EQ(plr_fence(plr_record(rank.lane())), PLR_OK);
    // 40 rows of 96 bytes are sent, which are whole lines.
    plr_dispatch(rank.lane(), &layerTag, plan, 0, PLR_F32, columns, inputs.input.data(), nullptr, results.rows.data(),
                 nullptr, memory.exchange, 3776);
    EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT);
    EXPECT_CONTAINS(rank.message(),
                    "plr_dispatch of moe.plan (layer 4, routing, forward): the workspace has 3776 bytes, "
                    "but 3840 are needed");
  });
}
