//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// The calls of the experts that need no plan: each reaches its kernel with its arguments in the right places, and
// refuses what no correct program asks for. What the kernels compute is tested with the kernels.
#include "rank.h"
#include <cmath>

using namespace plateau::rt::test;

namespace {
constexpr plr_tag routingTag = {"moe.route gate", 4, PLR_ROUTING, PLR_FORWARD};
constexpr plr_tag expertsTag = {"moe.swiglu swiglu", 4, PLR_EXPERTS, PLR_FORWARD};

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
} // namespace

// Two of four experts, softmax over them: exponentials 1, 3, 1, 1 and then 1, 1, 1, 3, where a bias lets expert 0 win.
TEST(ExpertCalls, Route) {
  Rank rank;
  const float up = std::log(3.0f);
  Floats logits = {0, up, 0, 0, 0, 0, 0, up}, bias = {9, 0, 0, 0}, weights(4), cotangent = {1, 0, 0, 0},
         gradient(8, -1);
  Ints ids(4), counts(4);
  {
    plr_routing routing = {4, 2, 1, 1, PLR_TOP_K_SOFTMAX, 0, 2};
    plr_route(rank.lane(), &routingTag, &routing, 2, logits.data(), bias.data(), nullptr, ids.data(), weights.data(),
              counts.data());
    plr_route_grad(rank.lane(), &routingTag, &routing, 2, cotangent.data(), logits.data(), ids.data(), gradient.data());
    routing = {}; // The calls have copied it.
  }
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(ids, (Ints{0, 1, 0, 3}));
  EXPECT_EQ(counts, (Ints{2, 1, 0, 1}));
  const double expected[] = {0.5, 1.5, 0.5, 1.5};
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(weights[i], expected[i], 1e-6);
  // d(2 w)/dx = 2 w (1 - w) for its own logit, and minus that for the other chosen one.
  const double slopes[] = {0.375, -0.375, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 8; ++i)
    EXPECT_NEAR(gradient[i], slopes[i], 1e-6);
}

// Rows from the number of tokens on choose nothing, whatever stands in them, and no gradient reaches them.
TEST(ExpertCalls, RouteLeavesPaddingOut) {
  for (int32_t tokens : {0, 1, 3}) {
    plr_config config = makeConfig();
    config.strict = tokens < 3;
    Rank rank(config);
    Floats logits = {0, 1, 2, 3, 2, 1, NAN, INFINITY, 0}, weights(6, -7), cotangent(6, 1), gradient(9, -7);
    Ints ids(6, -7), counts(3, -7);
    if (tokens == 3)
      logits = {0, 1, 2, 3, 2, 1, 5, 4, 0};
    plr_routing routing = {3, 2, 1, 1, PLR_TOP_K_SOFTMAX, 0, 1};
    plr_route(rank.lane(), &routingTag, &routing, 3, logits.data(), nullptr, &tokens, ids.data(), weights.data(),
              counts.data());
    plr_route_grad(rank.lane(), &routingTag, &routing, 3, cotangent.data(), logits.data(), ids.data(), gradient.data());
    ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    const Ints all = {2, 1, 0, 1, 0, 1}, countsOf[] = {{0, 0, 0}, {0, 1, 1}, {}, {2, 3, 1}};
    EXPECT_EQ(counts, countsOf[tokens]);
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(ids[i], i < 2 * tokens ? all[i] : -1) << i;
      EXPECT_NEAR(weights[i], i < 2 * tokens ? 1 / (1 + std::exp(i % 2 ? 1.0 : -1.0)) : 0, 1e-6) << i;
    }
    for (int i = 3 * tokens; i < 9; ++i)
      EXPECT_EQ(gradient[i], 0) << i;
  }
}

TEST(ExpertCalls, RouteRefusesNumbersOfTokensThatRowsDoNotHave) {
  Floats numbers(8);
  Ints ids(8);
  plr_routing routing = {4, 2, 1, 1, PLR_SOFTMAX, 0, 1};
  for (int32_t tokens : {-1, 3})
    EXPECT_CONTAINS(failWith(PLR_BAD_DATA,
                             [&](plr_lane *lane) {
                               plr_route(lane, &routingTag, &routing, 2, numbers.data(), nullptr, &tokens, ids.data(),
                                         numbers.data(), ids.data());
                             }),
                    "token_count is " + std::to_string(tokens) + ", which is not in 0...2");
}

// What a NaN does to the choice is defined, and without strict the step goes on.
TEST(ExpertCalls, StrictStopsAtALogitThatIsNotFinite) {
  for (float bad : {std::nanf(""), INFINITY, -INFINITY})
    for (bool strict : {false, true}) {
      plr_config config = makeConfig();
      config.strict = strict;
      Rank rank(config);
      Floats logits = {0, 1, 0, bad}, weights(2);
      Ints ids(2), counts(2);
      plr_routing routing = {2, 1, 1, 1, PLR_SOFTMAX, 0, 1};
      plr_route(rank.lane(), &routingTag, &routing, 2, logits.data(), nullptr, nullptr, ids.data(), weights.data(),
                counts.data());
      EXPECT_EQ(plr_synchronize(rank), strict ? PLR_BAD_DATA : PLR_OK);
      if (strict)
        EXPECT_CONTAINS(rank.message(), "(layer 4, routing, forward): token 1: the logit of expert 1 is ");
      else
        EXPECT_EQ(counts[0] + counts[1], 2);
    }
}

TEST(ExpertCalls, RouteGradNamesTokenSlotAndId) {
  Floats numbers(8);
  Ints ids = {0, 1, 2, 7};
  plr_routing routing = {4, 2, 1, 1, PLR_SOFTMAX, 0, 1};
  std::string message = failWith(PLR_BAD_DATA, [&](plr_lane *lane) {
    plr_route_grad(lane, &routingTag, &routing, 2, numbers.data(), numbers.data(), ids.data(), numbers.data());
  });
  EXPECT_CONTAINS(message,
                  "plr_route_grad of moe.route gate (layer 4, routing, forward): token 1 has expert 7 in slot 1");
}

TEST(ExpertCalls, RoutingsAreChecked) {
  Floats numbers(64);
  Ints ids(64);
  auto refuse = [&](plr_routing routing, const std::string &part) {
    EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                             [&](plr_lane *lane) {
                               plr_route(lane, &routingTag, &routing, 2, numbers.data(), nullptr, nullptr, ids.data(),
                                         numbers.data(), ids.data());
                             }),
                    part);
    EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                             [&](plr_lane *lane) {
                               plr_route_grad(lane, &routingTag, &routing, 2, numbers.data(), numbers.data(),
                                              ids.data(), numbers.data());
                             }),
                    part);
  };
  refuse({0, 2, 1, 1, 0, 0, 1}, "experts is 0, but must be at least 1");
  refuse({int64_t(1) << 31, 2, 1, 1, 0, 0, 1}, "experts is 2147483648, but must fit 32 bits");
  refuse({8, 0, 1, 1, 0, 0, 1}, "top_k is 0, but must be at least 1");
  refuse({8, 9, 1, 1, 0, 0, 1}, "top_k is 9, but the groups that are kept hold 8 experts");
  refuse({8, 5, 4, 2, 0, 0, 1}, "top_k is 5, but the groups that are kept hold 4 experts");
  refuse({8, 2, 0, 1, 0, 0, 1}, "expert_groups is 0");
  refuse({8, 2, 3, 1, 0, 0, 1}, "expert_groups is 3, but must divide experts, 8");
  refuse({8, 2, 2, 0, 0, 0, 1}, "kept_groups is 0");
  refuse({8, 2, 2, 3, 0, 0, 1}, "kept_groups is 3, but there are 2 groups");
  refuse({8, 2, 1, 1, 3, 0, 1}, "score is 3, but must be 0 (softmax), 1 (top-k softmax) or 2 (sigmoid)");
  refuse({8, 2, 1, 1, 0, 2, 1}, "normalize is 2");
  refuse({8, 2, 1, 1, 0, 0, NAN}, "scale must be a number");
  plr_routing routing = {8, 2, 1, 1, 0, 0, 1};
  auto route = [&](const plr_routing *r, int64_t tokens, float *logits, float *weights, int32_t *counts) {
    return failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) {
      plr_route(lane, &routingTag, r, tokens, logits, nullptr, nullptr, ids.data(), weights, counts);
    });
  };
  EXPECT_CONTAINS(route(nullptr, 2, numbers.data(), numbers.data(), ids.data()), "the routing is null");
  EXPECT_CONTAINS(route(&routing, -2, numbers.data(), numbers.data(), ids.data()), "tokens is -2");
  EXPECT_CONTAINS(route(&routing, 2, nullptr, numbers.data(), ids.data()), "logits is null");
  EXPECT_CONTAINS(route(&routing, 2, numbers.data(), nullptr, ids.data()), "weights is null");
  EXPECT_CONTAINS(route(&routing, 2, numbers.data(), numbers.data(), nullptr), "counts is null");
}

// A gate of 0 halves nothing but itself: silu(0) = 0 with slope 1/2.
TEST(ExpertCalls, SwiGLU) {
  Rank rank;
  Floats input = {0, 2, 3, 5}, result(2), cotangent = {7, 1}, gradient(4);
  plr_swiglu(rank.lane(), &expertsTag, PLR_F32, 1, 2, input.data(), result.data());
  plr_swiglu_grad(rank.lane(), &expertsTag, PLR_F32, 1, 2, cotangent.data(), input.data(), gradient.data());
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  double s = 1 / (1 + std::exp(-2.0));
  EXPECT_EQ(result[0], 0);
  EXPECT_NEAR(result[1], 2 * s * 5, 1e-5);
  EXPECT_NEAR(gradient[0], 7 * 3 * 0.5, 1e-5);
  EXPECT_NEAR(gradient[1], 5 * s * (1 + 2 * (1 - s)), 1e-5);
  EXPECT_EQ(gradient[2], 0);
  EXPECT_NEAR(gradient[3], 2 * s, 1e-5);
}

TEST(ExpertCalls, Rows) {
  Rank rank;
  Floats a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 2, 0, 1, 0}, factors = {2, -1}, scaled(6), dots(2);
  plr_scale_rows(rank.lane(), &expertsTag, PLR_F32, 2, 3, a.data(), factors.data(), scaled.data());
  plr_row_dot(rank.lane(), &expertsTag, PLR_F32, 2, 3, a.data(), b.data(), dots.data());
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(scaled, (Floats{2, 4, 6, -4, -5, -6}));
  EXPECT_EQ(dots, (Floats{7, 5}));
}

// A rank may receive no rows: its buffers are empty, and their addresses may be null.
TEST(ExpertCalls, NoRows) {
  Rank rank;
  plr_routing routing = {4, 2, 1, 1, PLR_SOFTMAX, 0, 1};
  Ints counts = {1, 2, 3, 4};
  plr_route(rank.lane(), &routingTag, &routing, 0, nullptr, nullptr, nullptr, nullptr, nullptr, counts.data());
  plr_route_grad(rank.lane(), &routingTag, &routing, 0, nullptr, nullptr, nullptr, nullptr);
  plr_swiglu(rank.lane(), &expertsTag, PLR_BF16, 0, 2, nullptr, nullptr);
  plr_swiglu_grad(rank.lane(), &expertsTag, PLR_BF16, 0, 2, nullptr, nullptr, nullptr);
  plr_scale_rows(rank.lane(), &expertsTag, PLR_BF16, 0, 2, nullptr, nullptr, nullptr);
  plr_row_dot(rank.lane(), &expertsTag, PLR_BF16, 0, 2, nullptr, nullptr, nullptr);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(counts, (Ints{0, 0, 0, 0}));
}

TEST(ExpertCalls, RowsAreChecked) {
  Floats x(16);
  auto refuse = [](auto call, const std::string &part) { EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT, call), part); };
  using Lane = plr_lane *;
  refuse([&](Lane l) { plr_swiglu(l, &expertsTag, PLR_I32, 1, 2, x.data(), x.data()); }, "type is 2");
  refuse([&](Lane l) { plr_swiglu(l, &expertsTag, PLR_F32, -1, 2, x.data(), x.data()); }, "rows is -1");
  refuse([&](Lane l) { plr_swiglu(l, &expertsTag, PLR_F32, 1, -2, x.data(), x.data()); }, "columns is -2");
  refuse([&](Lane l) { plr_swiglu(l, &expertsTag, PLR_F32, 1, 2, nullptr, x.data()); }, "input is null");
  refuse([&](Lane l) { plr_swiglu(l, &expertsTag, PLR_F32, 1, 2, x.data(), nullptr); }, "result is null");
  refuse([&](Lane l) { plr_swiglu_grad(l, &expertsTag, PLR_F32, 1, 2, nullptr, x.data(), x.data()); },
         "cotangent is null");
  refuse([&](Lane l) { plr_scale_rows(l, &expertsTag, PLR_F32, 1, 2, x.data(), nullptr, x.data()); },
         "factors is null");
  refuse([&](Lane l) { plr_row_dot(l, &expertsTag, PLR_F32, 1, 2, x.data(), nullptr, x.data()); }, "b is null");
}
