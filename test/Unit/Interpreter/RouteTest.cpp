//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// moe.route and its adjoint: choices worked out by hand, and central differences.
//===----------------------------------------------------------------------===//

#include "AdjointTest.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
struct Routing {
  int64_t topK = 2;
  StringRef score = "softmax";
  int64_t groups = 1, keptGroups = 1;
  bool normalize = true;
  double scale = 1;

  std::string getText() const {
    return llvm::formatv(
        "<top_k = {0}, score = {1}, groups = {2}, kept_groups = {3}, normalize = {4}, scale = {5:e6} : f32>", topK,
        score, groups, keptGroups, normalize ? "true" : "false", scale);
  }
};

struct Routed {
  std::vector<int64_t> ids;
  Numbers weights;
  std::vector<int64_t> counts;
};

class Route : public AdjointTest {
protected:
  /// A function of logits, and of bias when it has one, that gives ids, weights and counts.
  static std::string getText(int64_t tokens, int64_t experts, const Routing &routing, bool hasBias) {
    return llvm::formatv(R"mlir(
    func.func @f(%logits: tensor<{0}x{1}xf32>, %bias: tensor<{1}xf32>)
        -> (tensor<{0}x{2}xi32>, tensor<{0}x{2}xf32>, tensor<{1}xi32>) {{
      %ids, %weights, %counts = moe.route %logits {3} routing {4}
          : (tensor<{0}x{1}xf32>{5}) -> (tensor<{0}x{2}xi32>, tensor<{0}x{2}xf32>, tensor<{1}xi32>)
      return %ids, %weights, %counts : tensor<{0}x{2}xi32>, tensor<{0}x{2}xf32>, tensor<{1}xi32>
    })mlir",
                         tokens, experts, routing.topK, hasBias ? "bias(%bias)" : "", routing.getText(),
                         hasBias ? llvm::formatv(", tensor<{0}xf32>", experts).str() : "");
  }

  /// One function for all rows, which have `experts` logits each.
  Routed route(int64_t experts, const Routing &routing, const Numbers &logits, const Numbers &bias = {}) {
    auto results = evaluate(getText(logits.size() / experts, experts, routing, !bias.empty()),
                            {logits, bias.empty() ? Numbers(experts) : bias});
    return {{results[0].begin(), results[0].end()}, results[1], {results[2].begin(), results[2].end()}};
  }
};

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

TEST_F(Route, SoftmaxOfTwoTokens) {
  // Scores 1/8, 4/8, 2/8, 1/8 and, for the second token, 1/4 each.
  Numbers logits = {0, std::log(4), std::log(2), 0, 5, 5, 5, 5};
  Routed plain = route(4, {.topK = 2, .normalize = false, .scale = 0.5}, logits);
  EXPECT_EQ(plain.ids, std::vector<int64_t>({1, 2, 0, 1}));
  expectNear(plain.weights, {0.25, 0.125, 0.125, 0.125});
  EXPECT_EQ(plain.counts, std::vector<int64_t>({1, 2, 1, 0}));
  Routed normalized = route(4, {.topK = 2, .normalize = true, .scale = 3}, logits);
  EXPECT_EQ(normalized.ids, plain.ids);
  expectNear(normalized.weights, {2, 1, 1.5, 1.5});
}

TEST_F(Route, TopKSoftmax) {
  for (bool normalize : {false, true}) {
    Routed routed = route(4, {.topK = 2, .score = "top_k_softmax", .normalize = normalize, .scale = 2},
                          {1, 7, -2, 7 + std::log(3)});
    EXPECT_EQ(routed.ids, std::vector<int64_t>({3, 1}));
    expectNear(routed.weights, {1.5, 0.5});
  }
}

// The bias chooses, and the weights do not see it: among scores of 1e-8 the sum of the divisor must not lose them.
TEST_F(Route, SigmoidChosenByBias) {
  Routed routed = route(8, {.topK = 2, .score = "sigmoid"}, {1, 2, -18, 3, 0, -17, 4, 2}, {0, 0, 12, 0, 0, 12, 0, 0});
  EXPECT_EQ(routed.ids, std::vector<int64_t>({5, 2}));
  double e17 = std::exp(17), e18 = std::exp(18), sum = 2 + e17 + e18; // 1/(1+e¹⁷) and 1/(1+e¹⁸), over their sum
  expectNear(routed.weights, {(1 + e18) / sum, (1 + e17) / sum}, 1e-11);
  EXPECT_NEAR(routed.weights[0], 0.73106, 5e-6);
  EXPECT_NEAR(routed.weights[1], 0.26894, 5e-6);
  EXPECT_EQ(routed.counts, std::vector<int64_t>({0, 0, 1, 0, 0, 1, 0, 0}));
}

TEST_F(Route, SigmoidWithoutNormalization) {
  Routed routed = route(3, {.topK = 2, .score = "sigmoid", .normalize = false, .scale = 2}, {0, std::log(3), -1});
  EXPECT_EQ(routed.ids, std::vector<int64_t>({1, 0}));
  expectNear(routed.weights, {1.5, 1});
  // Scores that underflow: 0 / (0 + 1e-20).
  Routed tiny = route(2, {.topK = 1, .score = "sigmoid"}, {-800, -900});
  EXPECT_EQ(tiny.ids, std::vector<int64_t>({0}));
  EXPECT_EQ(tiny.weights, Numbers({0}));
}

TEST_F(Route, TiesGoToTheLowerIndex) {
  for (StringRef score : {"softmax", "top_k_softmax", "sigmoid"}) {
    SCOPED_TRACE(score.str());
    Routed equal = route(8, {.topK = 2, .score = score}, Numbers(8, 3));
    EXPECT_EQ(equal.ids, std::vector<int64_t>({0, 1}));
    expectNear(equal.weights, {0.5, 0.5});
    // A tie for the last place, and one for the first.
    EXPECT_EQ(route(5, {.topK = 2, .score = score}, {1, 3, 2, 2, 0}).ids, std::vector<int64_t>({1, 2}));
    EXPECT_EQ(route(5, {.topK = 3, .score = score}, {1, 2, 0, 2, 1}).ids, std::vector<int64_t>({1, 3, 0}));
  }
}

// Groups are worth −1.0, −1.05, −1.2 and −1.15 with all values below zero. The best pair of experts is 0 and 6, and by
// its best expert alone the last group would be kept.
TEST_F(Route, GroupsOfNegativeValues) {
  auto logit = [](double probability) { return std::log(probability / (1 - probability)); };
  Numbers logits;
  for (double probability : {0.9, 0.1, 0.5, 0.45, 0.6, 0.2, 0.8, 0.05})
    logits.push_back(logit(probability));
  Routed routed =
      route(8, {.topK = 2, .score = "sigmoid", .groups = 4, .keptGroups = 2, .scale = 2.5}, logits, Numbers(8, -1));
  EXPECT_EQ(routed.ids, std::vector<int64_t>({0, 2}));
  expectNear(routed.weights, {2.5 * 0.9 / 1.4, 2.5 * 0.5 / 1.4});

  Routed byLogits = route(8, {.topK = 3, .score = "top_k_softmax", .groups = 4, .keptGroups = 2},
                          {-1, -9, -2, -3, -4, -4.5, -1.5, -8});
  EXPECT_EQ(byLogits.ids, std::vector<int64_t>({2, 3, 4}));
}

TEST_F(Route, GroupsOfOneAndTiesOfGroups) {
  EXPECT_EQ(route(4, {.topK = 2, .groups = 4, .keptGroups = 2}, {1, 4, 2, 3}).ids, std::vector<int64_t>({1, 3}));
  EXPECT_EQ(route(6, {.topK = 2, .groups = 3, .keptGroups = 1}, {1, 2, 2, 1, 1, 2}).ids, std::vector<int64_t>({1, 0}));
  // The sum of the two best of three, not of all three: 5 + 4 against 6 + 2, whatever the third.
  EXPECT_EQ(route(6, {.topK = 1, .score = "top_k_softmax", .groups = 2, .keptGroups = 1}, {6, 2, 2, 5, 4, -90}).ids,
            std::vector<int64_t>({3}));
}

TEST_F(Route, NaNIsLeast) {
  Routing routing = {.topK = 4, .score = "top_k_softmax"};
  EXPECT_EQ(route(4, routing, {nan, 1, -infinity, 2}).ids, std::vector<int64_t>({3, 1, 2, 0}));
  EXPECT_EQ(route(4, routing, {nan, -infinity, nan, infinity}).ids, std::vector<int64_t>({3, 1, 0, 2}));
  EXPECT_EQ(route(4, {.topK = 2, .score = "sigmoid"}, {nan, -5, nan, -7}).ids, std::vector<int64_t>({1, 3}));
}

TEST_F(Route, IdsAreDistinctWhateverTheLogits) {
  Numbers special = {nan, infinity, -infinity, 0, -0.0, 1e308, -1e308, 3};
  Numbers logits;
  for (int row = 0; row < 200; ++row)
    for (int expert = 0; expert < 8; ++expert)
      logits.push_back(row < 8 ? special[row] : special[generator() % special.size()]);
  for (StringRef score : {"softmax", "top_k_softmax", "sigmoid"})
    for (int64_t groups : {1, 4})
      for (const Numbers &bias : {Numbers(), Numbers{nan, infinity, -infinity, 0, 1, 0, infinity, -infinity}}) {
        SCOPED_TRACE(score.str());
        Routed routed =
            route(8, {.topK = 4, .score = score, .groups = groups, .keptGroups = groups == 1 ? 1 : 2}, logits, bias);
        std::vector<int64_t> counts(8);
        for (int row = 0; row < 200; ++row) {
          std::set<int64_t> ids(routed.ids.begin() + 4 * row, routed.ids.begin() + 4 * row + 4);
          EXPECT_EQ(ids.size(), 4u) << "row " << row;
          EXPECT_TRUE(*ids.begin() >= 0 && *ids.rbegin() < 8) << "row " << row;
          for (int64_t id : ids)
            ++counts[id];
        }
        EXPECT_EQ(routed.counts, counts);
      }
}

TEST_F(Route, NoTokens) {
  Routed routed = route(3, {.topK = 2}, {});
  EXPECT_TRUE(routed.ids.empty() && routed.weights.empty());
  EXPECT_EQ(routed.counts, std::vector<int64_t>({0, 0, 0}));
}

// --- Padding ---

/// Ids, weights and counts of logits and a number of tokens, and the gradient of the weights for a cotangent.
std::string getPaddedText(int64_t rows, const Routing &routing) {
  return llvm::formatv(R"mlir(
    func.func @f(%logits: tensor<{0}x4xf32>, %n: tensor<i32>, %d: tensor<{0}x2xf32>)
        -> (tensor<{0}x2xi32>, tensor<{0}x2xf32>, tensor<4xi32>, tensor<{0}x4xf32>) {{
      %ids, %weights, %counts = moe.route %logits token_count(%n) routing {1}
          : (tensor<{0}x4xf32>, tensor<i32>) -> (tensor<{0}x2xi32>, tensor<{0}x2xf32>, tensor<4xi32>)
      %dl = moe.route_grad %d, %logits, %ids routing {1}
          : (tensor<{0}x2xf32>, tensor<{0}x4xf32>, tensor<{0}x2xi32>) -> tensor<{0}x4xf32>
      return %ids, %weights, %counts, %dl : tensor<{0}x2xi32>, tensor<{0}x2xf32>, tensor<4xi32>, tensor<{0}x4xf32>
    })mlir",
                       rows, routing.getText());
}

TEST_F(Route, PaddingChoosesNothing) {
  Numbers logits = {0, 3, 1, 2, 5, 4, 5, 4, 0, 0, 9, 9}, cotangent = getRandom(6);
  for (StringRef score : {"softmax", "top_k_softmax", "sigmoid"})
    for (bool normalize : {false, true}) {
      SCOPED_TRACE(score.str());
      Routing routing = {.topK = 2, .score = score, .normalize = normalize};
      std::string text = getPaddedText(3, routing);
      auto all = evaluate(text, {logits, {3}, cotangent});
      EXPECT_EQ(all[0], Numbers({1, 3, 0, 2, 2, 3}));
      EXPECT_EQ(all[2], Numbers({1, 1, 2, 2}));
      auto two = evaluate(text, {logits, {2}, cotangent});
      EXPECT_EQ(two[0], Numbers({1, 3, 0, 2, -1, -1}));
      EXPECT_EQ(two[1], Numbers({all[1][0], all[1][1], all[1][2], all[1][3], 0, 0}));
      EXPECT_EQ(two[2], Numbers({1, 1, 1, 1}));
      EXPECT_EQ(ArrayRef(two[3]).take_front(8), ArrayRef(all[3]).take_front(8));
      EXPECT_EQ(ArrayRef(two[3]).drop_front(8), ArrayRef(Numbers(4)));
      auto none = evaluate(text, {logits, {0}, cotangent});
      EXPECT_EQ(none[0], Numbers(6, -1));
      EXPECT_EQ(none[1], Numbers(6));
      EXPECT_EQ(none[2], Numbers(4));
      EXPECT_EQ(none[3], Numbers(12));
    }
}

TEST_F(Route, ExactPaddingChoosesNothing) {
  std::vector<Numbers> arguments = {getRandom(12), {2}, getRandom(6)};
  std::vector<Numbers> tokens = {
      {arguments[0].begin(), arguments[0].begin() + 8}, {2}, {arguments[2].begin(), arguments[2].begin() + 4}};
  auto padded = evaluateExactly(getPaddedText(3, {.topK = 2}), arguments);
  auto alone = evaluateExactly(getPaddedText(2, {.topK = 2}), tokens);
  EXPECT_EQ(padded[0].get<int64_t>().take_front(4), alone[0].get<int64_t>());
  EXPECT_EQ(padded[0].get<int64_t>().drop_front(4), ArrayRef<int64_t>({-1, -1}));
  EXPECT_EQ(padded[1].get<Field>().take_front(4), alone[1].get<Field>());
  EXPECT_EQ(padded[1].get<Field>().drop_front(4), ArrayRef(std::vector<Field>(2)));
  EXPECT_EQ(padded[2].get<int64_t>(), alone[2].get<int64_t>());
  EXPECT_EQ(padded[3].get<Field>().take_front(8), alone[3].get<Field>());
  EXPECT_EQ(padded[3].get<Field>().drop_front(8), ArrayRef(std::vector<Field>(4)));
}

TEST_F(Route, RefusesNumbersOfTokensThatRowsDoNotHave) {
  for (double tokens : {-1, 4})
    EXPECT_EQ(getErrors(getPaddedText(3, {.topK = 2}), {Numbers(12), {tokens}, Numbers(6)}),
              llvm::formatv("'moe.route' op rank 0: the number of tokens is {0}, which is not in 0 ... 3\n",
                            static_cast<int>(tokens))
                  .str());
}

// --- Adjoint ---

/// Weights of logits, for buildAdjoint and for moe.route_grad with ids of the test's own.
std::string getGradText(int64_t experts, const Routing &routing) {
  return llvm::formatv(R"mlir(
    func.func @f(%logits: tensor<3x{0}xf32>) -> tensor<3x{1}xf32> {{
      %ids, %weights, %counts = moe.route %logits routing {2}
          : (tensor<3x{0}xf32>) -> (tensor<3x{1}xi32>, tensor<3x{1}xf32>, tensor<{0}xi32>)
      return %weights : tensor<3x{1}xf32>
    }
    func.func @grad(%d: tensor<3x{1}xf32>, %logits: tensor<3x{0}xf32>, %ids: tensor<3x{1}xi32>) -> tensor<3x{0}xf32> {{
      %r = moe.route_grad %d, %logits, %ids routing {2}
          : (tensor<3x{1}xf32>, tensor<3x{0}xf32>, tensor<3x{1}xi32>) -> tensor<3x{0}xf32>
      return %r : tensor<3x{0}xf32>
    })mlir",
                       experts, routing.topK, routing.getText());
}

TEST_F(Route, AdjointAgainstDifferences) {
  for (StringRef score : {"softmax", "top_k_softmax", "sigmoid"})
    for (bool normalize : {false, true})
      for (int64_t groups : {1, 3}) {
        Routing routing = {.topK = 3,
                           .score = score,
                           .groups = groups,
                           .keptGroups = groups == 1 ? 1 : 2,
                           .normalize = normalize,
                           .scale = 1.5};
        std::string text = getGradText(6, routing);
        SCOPED_TRACE(text);
        func::FuncOp function = parse(text);
        func::FuncOp adjoint = buildAdjoint(function);
        ASSERT_TRUE(adjoint);
        Numbers logits = getRandom(18), cotangent = getRandom(9);
        Numbers actual = evaluate(adjoint, {logits, cotangent})[0], expected;
        for (double &logit : logits) {
          double middle = logit, step = 1e-5, sides[2];
          for (int side : {0, 1}) {
            logit = side ? middle + step : middle - step;
            Numbers weights = evaluate(function, {logits})[0];
            sides[side] = 0;
            for (size_t i = 0; i < weights.size(); ++i)
              sides[side] += cotangent[i] * weights[i];
          }
          logit = middle;
          expected.push_back((sides[1] - sides[0]) / (2 * step));
        }
        EXPECT_GT(std::abs(*std::max_element(expected.begin(), expected.end())), 1e-3);
        expectNear(actual, expected, 1e-8);
      }
}

// Softmax over all: dl = s ∘ (ds − Σ ds·s), for s = (1/2, 1/4, 1/4) and the choice of expert 0 with cotangent 8.
TEST_F(Route, GradByHand) {
  std::string text = getGradText(3, {.topK = 1, .normalize = false, .scale = 0.5});
  Numbers logits = {std::log(2), 0, 0, 0, std::log(2), 0, 0, 0, std::log(2)};
  Numbers actual = evaluate(parse(text, "grad"), {{8, 8, 0}, logits, {0, 0, 1}})[0];
  expectNear(actual, {1, -0.5, -0.5, 0.75, -0.5, -0.25, 0, 0, 0});
}

TEST_F(Route, GradOfSlotsWithoutChoice) {
  for (StringRef score : {"softmax", "top_k_softmax", "sigmoid"})
    for (bool normalize : {false, true}) {
      SCOPED_TRACE(score.str());
      std::string three = getGradText(5, {.topK = 3, .score = score, .normalize = normalize});
      std::string two = getGradText(5, {.topK = 2, .score = score, .normalize = normalize});
      Numbers logits = getRandom(15);
      Numbers withGap =
          evaluate(parse(three, "grad"), {{2, 9, -3, 1, 5, 9, 9, 9, 9}, logits, {4, -1, 0, 2, 1, -1, -1, -1, -1}})[0];
      Numbers without = evaluate(parse(two, "grad"), {{2, -3, 1, 5, 0, 0}, logits, {4, 0, 2, 1, 0, 1}})[0];
      expectNear(withGap, without);
    }
}

TEST_F(Route, GradRefusesOtherIds) {
  for (double id : {5.0, -2.0}) {
    func::FuncOp grad = parse(getGradText(5, {.topK = 2}), "grad");
    errors.clear();
    EXPECT_TRUE(failed(Interpreter::evaluate(grad, {Numbers(6), Numbers(15), Numbers{0, 1, 0, id, 0, 1}})));
    EXPECT_EQ(errors, llvm::formatv("'moe.route_grad' op rank 0: token 1, slot 1 has id {0}, which is neither -1 nor "
                                    "one of the 5 experts\n",
                                    static_cast<int>(id))
                          .str());
  }
}

// --- Exact mode ---

TEST_F(Route, ExactChoiceFollowsFromTheRow) {
  Routing routing = {.topK = 2};
  Numbers logits = getRandom(30 * 8), half(logits.begin() + 10 * 8, logits.begin() + 15 * 8), bias = getRandom(8);
  auto whole = evaluateExactly(getText(30, 8, routing, true), {logits, bias});
  auto part = evaluateExactly(getText(5, 8, routing, true), {half, bias});
  EXPECT_EQ(whole[0].get<int64_t>().slice(20, 10), part[0].get<int64_t>());
  EXPECT_EQ(whole[1].get<Field>().slice(20, 10), part[1].get<Field>());
  std::vector<int64_t> counts(8);
  for (int row = 0; row < 30; ++row) {
    ArrayRef<int64_t> ids = whole[0].get<int64_t>().slice(2 * row, 2);
    EXPECT_TRUE(ids[0] != ids[1] && ids[0] >= 0 && ids[0] < 8 && ids[1] >= 0 && ids[1] < 8);
    for (int64_t id : ids)
      ++counts[id];
  }
  EXPECT_EQ(whole[2].get<int64_t>(), ArrayRef<int64_t>(counts));
  EXPECT_EQ(llvm::count(counts, 0), 0) << "60 slots should reach each of 8 experts";
  auto otherBias = evaluateExactly(getText(30, 8, routing, true), {logits, getRandom(8)});
  EXPECT_NE(whole[0].get<int64_t>(), otherBias[0].get<int64_t>());
  logits[8 * 3 + 7] += 1; // the last logit of row 3
  auto changed = evaluateExactly(getText(30, 8, routing, true), {logits, bias});
  for (int row = 0; row < 30; ++row)
    EXPECT_EQ(whole[1].get<Field>().slice(2 * row, 2) == changed[1].get<Field>().slice(2 * row, 2), row != 3) << row;
}

TEST_F(Route, ExactWeightsDependOnAllOfTheRouting) {
  std::vector<Numbers> arguments = {getRandom(8), Numbers(8)};
  std::set<uint64_t> weights;
  for (StringRef score : {"softmax", "top_k_softmax", "sigmoid"})
    for (bool normalize : {false, true})
      for (double scale : {1, 2})
        weights.insert(
            evaluateExactly(getText(1, 8, {.topK = 2, .score = score, .normalize = normalize, .scale = scale}, false),
                            arguments)[1]
                .get<Field>()[0]
                .getValue());
  EXPECT_EQ(weights.size(), 12u);
}

TEST_F(Route, ExactGradDependsOnItsRow) {
  func::FuncOp grad = parse(getGradText(4, {.topK = 2}), "grad");
  std::vector<Numbers> arguments = {getRandom(6), getRandom(12), {0, 1, 3, -1, 2, 0}};
  auto before = evaluateExactly(grad, arguments);
  for (unsigned index : {0, 1, 2}) {
    std::vector<Numbers> others = arguments;
    others[index].back() += 1; // of the last row
    auto after = evaluateExactly(grad, others);
    for (int i = 0; i < 12; ++i)
      EXPECT_EQ(before[0].get<Field>()[i] == after[0].get<Field>()[i], i < 8) << index << ", " << i;
  }
}
} // namespace
