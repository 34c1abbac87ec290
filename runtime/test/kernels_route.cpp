//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "kernels_support.h"
#include <set>

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

plr_routing makeRouting(int64_t experts, int64_t topK, plr_score score = PLR_SOFTMAX, int32_t normalize = 0,
                        float scale = 1) {
  return {experts, topK, 1, 1, score, normalize, scale};
}

plr_routing withGroups(plr_routing routing, int64_t groups, int64_t kept) {
  routing.expert_groups = groups;
  routing.kept_groups = kept;
  return routing;
}

/// The definition, step by step on whole rows, in double.
struct Definition {
  plr_routing r;
  std::vector<double> bias; ///< Empty for none.

  std::vector<double> scores(const std::vector<double> &logits) const {
    std::vector<double> result = logits;
    double sum = 0;
    for (double &score : result) {
      score = r.score == PLR_SIGMOID ? 1 / (1 + std::exp(-score)) : r.score == PLR_SOFTMAX ? std::exp(score) : score;
      sum += score;
    }
    if (r.score == PLR_SOFTMAX)
      for (double &score : result)
        score /= sum;
    return result;
  }
  std::vector<int> descending(const std::vector<double> &values) const {
    std::vector<int> order(values.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<int>(i);
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return values[a] > values[b] || (values[a] == values[b] && a < b); });
    return order;
  }
  std::vector<int> choose(const std::vector<double> &logits) const {
    std::vector<double> values = scores(logits);
    for (size_t e = 0; e < bias.size(); ++e)
      values[e] += bias[e];
    size_t size = r.experts / r.expert_groups;
    std::vector<double> ofGroup;
    for (int64_t g = 0; g < r.expert_groups; ++g) {
      std::vector<double> members(values.begin() + g * size, values.begin() + (g + 1) * size);
      std::sort(members.rbegin(), members.rend());
      ofGroup.push_back(size > 1 ? members[0] + members[1] : members[0]);
    }
    std::vector<int> groups = descending(ofGroup);
    for (size_t i = r.kept_groups; i < groups.size(); ++i)
      std::fill_n(values.begin() + groups[i] * size, size, -infinity);
    std::vector<int> order = descending(values);
    order.resize(r.top_k);
    return order;
  }
  std::vector<double> weights(const std::vector<double> &logits, const std::vector<int> &ids) const {
    std::vector<double> all = scores(logits), result;
    double sum = 0;
    for (int id : ids) {
      result.push_back(r.score == PLR_TOP_K_SOFTMAX ? std::exp(logits[id]) : all[id]);
      sum += result.back();
    }
    for (double &weight : result)
      weight *= r.scale / (r.score == PLR_TOP_K_SOFTMAX || r.normalize ? sum : 1);
    return result;
  }
};

/// What a route gives, with room behind each result that must stay as it is.
struct Routed {
  static constexpr int32_t guard = -77;
  std::vector<int32_t> ids, counts;
  Tensor weights;

  Routed(const plr_routing &r, const std::vector<float> &logits, const std::vector<float> &bias = {})
      : ids(logits.size() / r.experts * r.top_k + 4, guard), counts(r.experts + 4, guard),
        weights(PLR_F32, static_cast<int64_t>(ids.size()) - 4) {
    host::route(r, static_cast<int64_t>(logits.size()) / r.experts, logits.data(), bias.empty() ? nullptr : bias.data(),
                ids.data(), weights.floats(), counts.data());
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(ids.back(), guard);
      EXPECT_EQ(counts.back(), guard);
      ids.pop_back();
      counts.pop_back();
    }
    EXPECT_TRUE(weights.endIsIntact());
    expectLegal(r);
  }
  /// Ids are in range, a token's are distinct, and counts counts them.
  void expectLegal(const plr_routing &r) const {
    std::vector<int32_t> counted(r.experts);
    for (size_t i = 0; i < ids.size(); i += r.top_k) {
      std::set<int32_t> ofToken(ids.begin() + i, ids.begin() + i + r.top_k);
      EXPECT_EQ(static_cast<int64_t>(ofToken.size()), r.top_k) << "token " << i / r.top_k;
      EXPECT_GE(*ofToken.begin(), 0);
      EXPECT_LT(*ofToken.rbegin(), r.experts);
      for (int32_t id : ofToken)
        if (id >= 0 && id < r.experts)
          ++counted[id];
    }
    EXPECT_EQ(counts, counted);
  }
};

std::vector<plr_routing> makeRoutings() {
  std::vector<plr_routing> routings;
  for (plr_score score : {PLR_SOFTMAX, PLR_TOP_K_SOFTMAX, PLR_SIGMOID})
    for (int32_t normalize : {0, 1}) {
      for (auto [experts, topK] : {std::pair<int64_t, int64_t>{1, 1}, {5, 5}, {8, 2}, {13, 3}, {64, 8}, {256, 1}})
        routings.push_back(makeRouting(experts, topK, score, normalize, 2.5f));
      routings.push_back(withGroups(makeRouting(8, 2, score, normalize), 4, 2));
      routings.push_back(withGroups(makeRouting(8, 3, score, normalize), 8, 3));
      routings.push_back(withGroups(makeRouting(24, 12, score, normalize, 0.5f), 3, 2));
      routings.push_back(withGroups(makeRouting(256, 8, score, normalize, 2.5f), 8, 4));
    }
  return routings;
}

std::string describe(const plr_routing &r) {
  return "experts " + std::to_string(r.experts) + " top_k " + std::to_string(r.top_k) + " groups " +
         std::to_string(r.expert_groups) + "/" + std::to_string(r.kept_groups) + " score " + std::to_string(r.score) +
         " normalize " + std::to_string(r.normalize);
}

std::vector<float> randomFloats(int64_t count, uint32_t seed, double scale) {
  Tensor tensor = randomTensor(PLR_F32, count, seed, scale);
  return std::vector<float>(tensor.floats(), tensor.floats() + count);
}

using Ids = std::vector<int32_t>;

TEST(Route, AgreesWithTheDefinition) {
  constexpr int64_t tokens = 50;
  for (const plr_routing &r : makeRoutings())
    for (double biasSize : {0.0, 0.3}) {
      SCOPED_TRACE(describe(r) + " bias " + std::to_string(biasSize));
      std::vector<float> logits = randomFloats(tokens * r.experts, 1, 2), bias;
      if (biasSize > 0)
        bias = randomFloats(r.experts, 2, biasSize);
      Routed routed(r, logits, bias);
      Definition definition{r, {bias.begin(), bias.end()}};
      for (int64_t token = 0; token < tokens; ++token) {
        std::vector<double> row(logits.begin() + token * r.experts, logits.begin() + (token + 1) * r.experts);
        std::vector<int> ids = definition.choose(row);
        std::vector<double> weights = definition.weights(row, ids);
        for (int64_t slot = 0; slot < r.top_k; ++slot) {
          ASSERT_EQ(routed.ids[token * r.top_k + slot], ids[slot]) << token;
          ASSERT_NEAR(routed.weights[token * r.top_k + slot], weights[slot], 1e-6) << token;
        }
      }
    }
}

TEST(Route, TiesGoToTheLowerIndex) {
  for (plr_score score : {PLR_SOFTMAX, PLR_TOP_K_SOFTMAX, PLR_SIGMOID}) {
    Routed equal(makeRouting(8, 2, score, 1), std::vector<float>(16, 1.5f));
    EXPECT_EQ(equal.ids, (Ids{0, 1, 0, 1}));
    EXPECT_EQ(equal.counts, (Ids{2, 2, 0, 0, 0, 0, 0, 0}));
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_NEAR(equal.weights[i], 0.5, 1e-7);
    // A tie at the last place that is to be had, and ties above it.
    const std::vector<float> logits = {1, 3, 2, 2, 0, 2, 3};
    EXPECT_EQ(Routed(makeRouting(7, 3, score), logits).ids, (Ids{1, 6, 2}));
    EXPECT_EQ(Routed(makeRouting(7, 4, score), logits).ids, (Ids{1, 6, 2, 3}));
    EXPECT_EQ(Routed(makeRouting(7, 1, score), logits).ids, (Ids{1}));
    // Of equal groups the lower ones stay.
    EXPECT_EQ(Routed(withGroups(makeRouting(8, 4, score), 4, 2), std::vector<float>(8, -1)).ids, (Ids{0, 1, 2, 3}));
    // Experts of a better group do not come first in a tie.
    EXPECT_EQ(Routed(withGroups(makeRouting(6, 3, score), 3, 2), {1, 1, 0, 0, 2, 1}).ids, (Ids{4, 0, 1}));
  }
}

TEST(Route, SoftmaxIsOverAllExperts) {
  // Exponentials 1, 2, 4 and 1, of which the sum is 8.
  const std::vector<float> logits = {0, std::log(2.0f), std::log(4.0f), 0};
  auto expect = [&](const plr_routing &r, double first, double second) {
    Routed routed(r, logits);
    EXPECT_EQ(routed.ids, (Ids{2, 1}));
    EXPECT_NEAR(routed.weights[0], first, 1e-6);
    EXPECT_NEAR(routed.weights[1], second, 1e-6);
  };
  expect(makeRouting(4, 2, PLR_SOFTMAX, 0), 0.5, 0.25);
  expect(makeRouting(4, 2, PLR_SOFTMAX, 0, 3), 1.5, 0.75);
  expect(makeRouting(4, 2, PLR_SOFTMAX, 1), 2.0 / 3, 1.0 / 3);
  expect(makeRouting(4, 2, PLR_TOP_K_SOFTMAX, 0), 2.0 / 3, 1.0 / 3);
  expect(makeRouting(4, 2, PLR_TOP_K_SOFTMAX, 1, 2), 4.0 / 3, 2.0 / 3);
}

// The weights hold the score alone. Taking the bias off the sum again would give 0, as 12 + 1e-8 is 12 in f32.
TEST(Route, BiasSelectsAndDoesNotWeigh) {
  const plr_routing r = makeRouting(4, 2, PLR_SIGMOID, 1);
  Routed routed(r, {-18, 2, 1, -17}, {12, 0, 0, 12});
  EXPECT_EQ(routed.ids, (Ids{3, 0}));
  EXPECT_NEAR(routed.weights[0], 0.73106, 5e-6);
  EXPECT_NEAR(routed.weights[1], 0.26894, 5e-6);
  Routed plain(r, {-18, 2, 1, -17});
  EXPECT_EQ(plain.ids, (Ids{1, 2}));
}

// With all values negative, an expert that was masked with 0 would be chosen.
TEST(Route, MaskedGroupsAreNotChosen) {
  const plr_routing r = withGroups(makeRouting(8, 2, PLR_SIGMOID, 1, 2.5f), 4, 2);
  // Scores a half, but for expert 2: sigmoid(log 3) = 0.75. Values -1.25, -3.5 | -1.5, -1.25 | -9.5 | -9.5.
  const float up = std::log(3.0f);
  Routed routed(r, {0, 0, up, 0, 0, 0, 0, 0}, {-1.75f, -4, -2.25f, -1.75f, -10, -10, -10, -10});
  EXPECT_EQ(routed.ids, (Ids{0, 3}));
  EXPECT_NEAR(routed.weights[0], 1.25, 1e-6);
  // The two best of group 1 sum to -2.75, of group 3 to -3, of group 0 to -4.75: group 0 goes, though its best expert
  // is the best of all.
  Routed other(r, {0, 0, up, 0, 0, 0, 0, 0}, {-1.5f, -4.25f, -2.25f, -1.75f, -10, -10, -2, -2});
  EXPECT_EQ(other.ids, (Ids{3, 2}));
  EXPECT_NEAR(other.weights[0], 2.5 * 0.5 / 1.25, 1e-6);
  EXPECT_NEAR(other.weights[1], 2.5 * 0.75 / 1.25, 1e-6);
  EXPECT_EQ(other.counts, (Ids{0, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(Route, ExtremeLogits) {
  // Beside 0 the chosen ones have no weight that a number could hold, yet among themselves they have.
  Routed small(makeRouting(3, 2, PLR_SOFTMAX, 1), {0, -800, -801}, {-5, 0, 0});
  EXPECT_EQ(small.ids, (Ids{1, 2}));
  EXPECT_NEAR(small.weights[0], 1 / (1 + std::exp(-1)), 1e-7);
  Routed large(makeRouting(3, 2), {3e38f, 1, -3e38f});
  EXPECT_EQ(large.ids, (Ids{0, 1}));
  EXPECT_EQ(large.weights[0], 1);
  EXPECT_EQ(large.weights[1], 0);
  // Scores far below the number that keeps from dividing by zero vanish.
  Routed none(makeRouting(2, 2, PLR_SIGMOID, 1), {-200, -3e38f});
  EXPECT_EQ(none.weights[0], 0);
  EXPECT_EQ(none.weights[1], 0);
  Routed minus(makeRouting(3, 2), {-HUGE_VALF, 0, 0});
  EXPECT_EQ(minus.ids, (Ids{1, 2}));
  EXPECT_NEAR(minus.weights[0], 0.5, 1e-7);
}

// Rows of anything give ids that can be used, and no row is touched by another's.
TEST(Route, RowsThatAreNoNumbers) {
  const float inf = HUGE_VALF;
  std::vector<std::vector<float>> rows = {std::vector<float>(8, NAN),        std::vector<float>(8, inf),
                                          std::vector<float>(8, -inf),       {1, NAN, 3, 2, 0, 0, 0, 0},
                                          {inf, 1, 2, 3, inf, 0, 0, 0},      {-inf, 1, 2, 3, -inf, 0, 0, 0},
                                          {NAN, inf, -inf, 1, 2, 3, 4, NAN}, {NAN, NAN, NAN, NAN, NAN, NAN, NAN, 5}};
  for (plr_routing r :
       {makeRouting(8, 3), makeRouting(8, 8), withGroups(makeRouting(8, 3), 4, 2), withGroups(makeRouting(8, 2), 8, 2)})
    for (plr_score score : {PLR_SOFTMAX, PLR_TOP_K_SOFTMAX, PLR_SIGMOID})
      for (int32_t normalize : {0, 1})
        for (const std::vector<float> &bad : rows) {
          r.score = score;
          r.normalize = normalize;
          const std::vector<float> good = {1, 2, 3, 4, 5, 6, 7, 8};
          std::vector<float> logits = good;
          logits.insert(logits.end(), bad.begin(), bad.end());
          logits.insert(logits.end(), good.begin(), good.end());
          Routed routed(r, logits), alone(r, good);
          for (int64_t i = 0; i < r.top_k; ++i) {
            EXPECT_EQ(routed.ids[2 * r.top_k + i], alone.ids[i]);
            EXPECT_EQ(routed.weights[2 * r.top_k + i], alone.weights[i]);
          }
        }
  // NaN comes after every number, -inf included.
  EXPECT_EQ(Routed(makeRouting(4, 4, PLR_TOP_K_SOFTMAX), {NAN, -inf, NAN, 1}).ids, (Ids{3, 1, 0, 2}));
  EXPECT_EQ(Routed(makeRouting(4, 2, PLR_SIGMOID), {NAN, 1, NAN, 2}).ids, (Ids{3, 1}));
  // A NaN anywhere shows in a softmax over all, and hides from no one.
  EXPECT_TRUE(std::isnan(Routed(makeRouting(4, 2, PLR_SOFTMAX, 1), {1, 2, 3, NAN}).weights[0]));
  EXPECT_TRUE(std::isnan(Routed(makeRouting(4, 2, PLR_SOFTMAX, 0), {1, 2, 3, NAN}).weights[1]));
}

TEST(Route, NoTokens) {
  Routed routed(makeRouting(3, 2), {});
  EXPECT_EQ(routed.counts, (Ids{0, 0, 0}));
}

//===----------------------------------------------------------------------===//
// The adjoint
//===----------------------------------------------------------------------===//

/// The gradient of Σ cotangent · weights by central differences of the definition, the choice held fast.
std::vector<double> differencesOf(const Definition &definition, std::vector<double> logits, const std::vector<int> &ids,
                                  const std::vector<double> &cotangent) {
  return differences(
      [&] {
        std::vector<double> weights = definition.weights(logits, ids);
        double sum = 0;
        for (size_t i = 0; i < ids.size(); ++i)
          sum += cotangent[i] * weights[i];
        return sum;
      },
      logits);
}

TEST(RouteGrad, IsThatOfTheDefinition) {
  constexpr int64_t tokens = 4;
  for (const plr_routing &r : makeRoutings()) {
    SCOPED_TRACE(describe(r));
    Tensor logits = randomTensor(PLR_F32, tokens * r.experts, 1, 2), bias = randomTensor(PLR_F32, r.experts, 2, 0.3),
           cotangent = randomTensor(PLR_F32, tokens * r.top_k, 3), result(PLR_F32, tokens * r.experts);
    Definition definition{r, bias.values()};
    std::vector<int32_t> ids;
    std::vector<double> expected;
    for (int64_t token = 0; token < tokens; ++token) {
      std::vector<double> row = logits.slice(token * r.experts, r.experts).values();
      std::vector<int> chosen = definition.choose(row);
      ids.insert(ids.end(), chosen.begin(), chosen.end());
      std::vector<double> ofToken =
          differencesOf(definition, row, chosen, cotangent.slice(token * r.top_k, r.top_k).values());
      // Differences of what does not change are roundings.
      for (double &value : ofToken)
        value = std::abs(value) < 1e-9 ? 0 : value;
      expected.insert(expected.end(), ofToken.begin(), ofToken.end());
    }
    EXPECT_EQ(host::routeGrad(r, tokens, cotangent.floats(), logits.floats(), ids.data(), result.floats()), "");
    expectClose(PLR_F32, result, expected, 1e-6, "gradient");
  }
}

// A slot without an expert is as if it were not there, whatever its cotangent.
TEST(RouteGrad, SlotsWithoutAnExpertAddNothing) {
  for (plr_score score : {PLR_SOFTMAX, PLR_TOP_K_SOFTMAX, PLR_SIGMOID})
    for (int32_t normalize : {0, 1}) {
      plr_routing three = makeRouting(6, 3, score, normalize, 2), two = makeRouting(6, 2, score, normalize, 2);
      Tensor logits = randomTensor(PLR_F32, 12, 1), result(PLR_F32, 12), expected(PLR_F32, 12);
      const std::vector<float> withNone = {0.5f, NAN, -2, NAN, NAN, NAN}, without = {0.5f, -2};
      const std::vector<int32_t> ids = {4, -1, 1, -1, -1, -1}, same = {4, 1};
      EXPECT_EQ(host::routeGrad(three, 2, withNone.data(), logits.floats(), ids.data(), result.floats()), "");
      EXPECT_EQ(host::routeGrad(two, 1, without.data(), logits.floats(), same.data(), expected.floats()), "");
      EXPECT_TRUE(result.slice(0, 6).sameBits(expected.slice(0, 6)));
      for (int64_t e = 6; e < 12; ++e)
        EXPECT_EQ(result[e], 0);
    }
}

// Adding one number to all logits changes no softmax, so a softmax's gradient sums to zero; and with all weight on one
// expert there is nothing to win.
TEST(RouteGrad, ExtremeLogits) {
  const std::vector<float> logits = {3e38f, -3e38f, 0, -800}, cotangent = {1, -1};
  for (plr_score score : {PLR_SOFTMAX, PLR_TOP_K_SOFTMAX, PLR_SIGMOID})
    for (int32_t normalize : {0, 1}) {
      const std::vector<int32_t> ids = {0, 3};
      Tensor result(PLR_F32, 4);
      host::routeGrad(makeRouting(4, 2, score, normalize), 1, cotangent.data(), logits.data(), ids.data(),
                      result.floats());
      for (int64_t e = 0; e < 4; ++e)
        EXPECT_NEAR(result[e], 0, 1e-30) << score << normalize << e;
    }
  // Weights w and 1 - w of two logits 40 apart: dw/dx = w (1 - w) = e^-40.
  const std::vector<int32_t> ids = {1, 0};
  const std::vector<float> apart = {0, 40}, one = {1, 0};
  Tensor result(PLR_F32, 2);
  host::routeGrad(makeRouting(2, 2, PLR_SIGMOID), 1, one.data(), apart.data(), ids.data(), result.floats());
  EXPECT_NEAR(result[1] / std::exp(-40.0), 1, 1e-6);
}

TEST(RouteGrad, NamesTokenSlotAndId) {
  Tensor logits = randomTensor(PLR_F32, 8, 1), result(PLR_F32, 8);
  const std::vector<float> cotangent(4, 1);
  for (int32_t bad : {4, -2}) {
    const std::vector<int32_t> ids = {0, 1, 2, bad};
    std::string fault =
        host::routeGrad(makeRouting(4, 2), 2, cotangent.data(), logits.floats(), ids.data(), result.floats());
    EXPECT_EQ(fault,
              "token 1 has expert " + std::to_string(bad) + " in slot 1, but there are 4 experts, and -1 for none");
  }
}

} // namespace
