//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Weights of experts that other ranks help with, and their gradients.
#include "chunked_layer.h"
#include "common/plan.h"

using namespace plateau::rt::test;

namespace {

/// 3 ranks of 2 experts. Rank 0 sends 60 rows to its expert 0, and nobody else anything: with a cap of 20 the others
/// take 20 each, in their first helper slot of 2.
constexpr int64_t count = 3;

plr_plan *makePlan(Rank &rank, int32_t number, int64_t tokens = 60) {
  plr_plan_shape shape = makeShape(number == 0 ? tokens : 0, 1, 6);
  shape.helper_slots = 2;
  shape.alpha_numerator = 1;
  static const std::vector<int32_t> ids(60, 0);
  return plr_plan_create(rank.lane(), &layerTag, getWorld(rank, 3), &shape, ids.data());
}

} // namespace

TEST(Helpers, GetTheWeightsOfTheirExperts) {
  for (plr_type type : {PLR_F32, PLR_BF16}) {
    Ranks run(3);
    run.runWell([&](Rank &rank, int32_t number) {
      plr_plan *plan = makePlan(rank, number);
      EXPECT_EQ(plr_plan_rows(plan, 0), 20);
      Tensor weights = randomTensor(type, 2 * count, 5), helpers(type, 2 * count), before = helpers;
      plr_migrate_experts(rank.lane(), &layerTag, plan, type, count, weights.data(), helpers.data());
      plr_synchronize(rank);
      if (number == 0) {
        EXPECT_TRUE(helpers.sameBits(before));
      } else { // Rank 0 has the same weights as all ranks.
        EXPECT_TRUE(helpers.slice(0, count).sameBits(weights.slice(0, count)));
        EXPECT_TRUE(helpers.slice(count, count).sameBits(before.slice(count, count))); // Nobody's.
      }
      plr_plan_release(plan);
    });
  }
}

// Own gradients, then rank 1's, then rank 2's: (1e8 − 1e8) + 1 is 1 in f32, and 0 the other way round.
TEST(Helpers, ReturnGradientsInTheOrderOfRanks) {
  for (bool isPooled : {true, false}) {
    Ranks run(3);
    run.runWell([&](Rank &rank, int32_t number) {
      plr_plan *plan = makePlan(rank, number);
      const float mine[] = {1e8f, -1e8f, 1.0f};
      std::vector<float> grads(2 * count, 7), helperGrads(2 * count, number == 0 ? NAN : mine[number]);
      for (int64_t i = count; i < 2 * count; ++i)
        helperGrads[i] = NAN; // Of a slot without an expert.
      if (number == 0)
        std::fill(grads.begin(), grads.begin() + count, mine[0]);
      Block scratch(rank, plr_footprint_return_experts(3, count));
      plr_return_expert_grads(rank.lane(), &layerTag, plan, count, helperGrads.data(), grads.data(),
                              isPooled ? nullptr : scratch.pointer, isPooled ? PLR_FROM_POOL : scratch.bytes);
      plr_synchronize(rank);
      for (int64_t i = 0; i < 2 * count; ++i)
        EXPECT_EQ(grads[i], number == 0 && i < count ? 1 : 7) << i;
      plr_plan_release(plan);
    });
  }
}

// Nobody helps: ranks do not meet, and nothing is read or written.
TEST(Helpers, HaveNothingToDoOnEvenRanks) {
  Ranks run(3);
  run.runWell([](Rank &rank, int32_t number) {
    plr_plan *plan = makePlan(rank, number, 0);
    EXPECT_EQ(plr_plan_iterations(plan), 1);
    if (number == 1) {
      float x[2 * count] = {};
      plr_migrate_experts(rank.lane(), &layerTag, plan, PLR_F32, count, x, x);
      plr_return_expert_grads(rank.lane(), &layerTag, plan, count, x, x, nullptr, PLR_FROM_POOL);
    }
    plr_plan_release(plan);
  });
  // Without helper slots there are no addresses either.
  Rank rank;
  plr_plan *plan = createPlan(rank.lane(), &layerTag, getWorld(rank, 1), 0, 1, 2, nullptr);
  float x[2 * count] = {};
  plr_migrate_experts(rank.lane(), &layerTag, plan, PLR_F32, count, x, nullptr);
  plr_return_expert_grads(rank.lane(), &layerTag, plan, count, nullptr, x, nullptr, 0);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
}

TEST(Helpers, CompareTheirSizes) {
  Ranks run(3, 600);
  run.run([](Rank &rank, int32_t number) {
    plr_plan *plan = makePlan(rank, number);
    float weights[2 * count] = {}, helpers[2 * count] = {};
    plr_migrate_experts(rank.lane(), &layerTag, plan, PLR_F32, number == 2 ? 2 : 3, weights, helpers);
    EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
    EXPECT_CONTAINS(rank.message(), "rank 1 with plr_migrate_experts of 3 f32 for moe.layer");
    EXPECT_CONTAINS(rank.message(), "rank 2 with plr_migrate_experts of 2 f32 for moe.layer");
  });
}

TEST(Helpers, MisuseIsNamed) {
  auto expect = [](const char *text, auto use) {
    Ranks run(3, 600);
    run.run([&](Rank &rank, int32_t number) {
      plr_plan *plan = makePlan(rank, number);
      use(rank.lane(), plan);
      EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT) << text;
      EXPECT_CONTAINS(rank.message(), text);
    });
  };
  static float x[8];
  auto migrate = [](plr_type type, int64_t size, const void *weights, void *helpers) {
    return [=](plr_lane *lane, plr_plan *plan) {
      plr_migrate_experts(lane, &layerTag, plan, type, size, weights, helpers);
    };
  };
  auto giveBack = [](int64_t size, const float *helperGrads, float *grads, int64_t bytes) {
    return [=](plr_lane *lane, plr_plan *plan) {
      alignas(64) static char scratch[64];
      plr_return_expert_grads(lane, &layerTag, plan, size, helperGrads, grads, bytes > 0 ? scratch : nullptr, bytes);
    };
  };
  expect("type is 2, but must be 0 (f32) or 1 (bf16)", migrate(PLR_I32, 3, x, x));
  expect("count is -3", migrate(PLR_F32, -3, x, x));
  expect("weights is null", migrate(PLR_F32, 3, nullptr, x));
  expect("helpers is null", migrate(PLR_F32, 3, x, nullptr));
  expect("count is -3", giveBack(-3, x, x, PLR_FROM_POOL));
  expect("helper_grads is null", giveBack(3, nullptr, x, PLR_FROM_POOL));
  expect("grads is null", giveBack(3, x, nullptr, PLR_FROM_POOL));
  expect("workspace_bytes is -2", giveBack(3, x, x, -2));
  expect("the workspace has 63 bytes, but 64 are needed", giveBack(3, x, x, 63));
  expect("the plan is null",
         [](plr_lane *lane, plr_plan *) { plr_migrate_experts(lane, &layerTag, nullptr, PLR_F32, 3, x, x); });
  expect("the plan was released", [](plr_lane *lane, plr_plan *plan) {
    plr_plan_release(plan);
    plr_return_expert_grads(lane, &layerTag, plan, 3, x, x, nullptr, PLR_FROM_POOL);
  });
  // Products with helper slots whose weights are not there.
  expect("helpers is null", [](plr_lane *lane, plr_plan *plan) {
    static float rows[64];
    plr_grouped_gemm(lane, &layerTag, plan, 0, 0, PLR_F32, 1, 1, rows, x, nullptr, rows, nullptr, PLR_FROM_POOL);
  });
  expect("helper_result is null", [](plr_lane *lane, plr_plan *plan) {
    static float rows[64];
    plr_grouped_gemm_grad(lane, &layerTag, plan, 0, 0, PLR_F32, PLR_F32, 1, 1, rows, rows, x, nullptr, nullptr,
                          PLR_FROM_POOL);
  });
}
