//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The vocabulary loss as one op: its values against its definition, its adjoint against differences, and both against
// the standard form. Lookups in a table of several ranks.
//===----------------------------------------------------------------------===//

#include "VocabularyTest.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class VocabularyLoss : public VocabularyTest {
protected:
  /// The losses of one token a rank whose logits are those of `table` (a width of 1, x = 1), on the ranks of `test`.
  RankNumbers getLosses(const VocabularyCase &test, ArrayRef<double> logits, double label) {
    RankNumbers arguments;
    for (int rank = 0; rank < test.ranks; ++rank)
      arguments.push_back({{1}, logits.slice(rank * test.shardRows, test.shardRows).vec(), {label}});
    RankNumbers losses;
    for (const std::vector<Numbers> &results : evaluateOnRanks(test.getLossText(), arguments))
      losses.push_back({results[0]});
    return losses;
  }
};

// ln Σ_{j < 8} e^j = 7.458340; smoothing takes 0.9 · (lse − 3) + 0.1 · (lse − 3.5), with the mean over all ranks'
// columns.
TEST_F(VocabularyLoss, OnTwoRanks) {
  Numbers logits = {0, 1, 2, 3, 4, 5, 6, 7};
  for (auto [smoothing, loss] : {std::pair(0.0f, 4.458340), {0.1f, 4.408340}})
    expectAllNear(getLosses({2, 1, 1, 4, false, {8, -100, smoothing}}, logits, 3), RankNumbers(2, {{loss}}), 2e-7);
  for (double &logit : logits)
    logit *= 1000;
  expectAllNear(getLosses({2, 1, 1, 4, false, {8}}, logits, 3), RankNumbers(2, {{4000}}), 1e-15);
}

// Three equal logits, and a column that does not exist, which the cap must not bring back.
TEST_F(VocabularyLoss, PaddingIsMaskedAfterTheCap) {
  Numbers logits = {-5e4, -5e4, -5e4, -5e4};
  for (int ranks : {1, 2, 4})
    expectAllNear(getLosses({ranks, 1, 1, 4 / ranks, false, {3, -100, 0, 0, 1}}, logits, 2),
                  RankNumbers(ranks, {{std::log(3.0)}}), 1e-15);
}

TEST_F(VocabularyLoss, MinusInfinity) {
  VocabularyCase test = {1, 1, 1, 3, true, {3}};
  double infinity = std::numeric_limits<double>::infinity();
  auto results = evaluateOnRanks(test.getStepText(), {{{0}, {1, 1, 1}, {-infinity, 0, 0}, {1}, {1}}});
  expectNear(results[0][0], {std::log(2.0)});
  expectNear(results[0][4], {0, -0.5, 0.5});
}

TEST_F(VocabularyLoss, MatchesItsDefinition) {
  for (const VocabularyCase &test : getVocabularyCases()) {
    SCOPED_TRACE(test.getLossText());
    RankNumbers arguments = getArguments(test);
    expectAllNear(evaluateOnRanks(test.getLossText(), arguments), test.getExpected(arguments), 1e-14);
  }
}

TEST_F(VocabularyLoss, AdjointMatchesDifferences) {
  for (const VocabularyCase &test : getVocabularyCases()) {
    SCOPED_TRACE(test.getLossText());
    checkAdjointOnRanks(test.getLossText(), getArguments(test));
  }
}

// The check above on a gradient of the table that counts every token twice.
TEST_F(VocabularyLoss, DifferencesSeeAWrongAdjoint) {
  VocabularyCase test = {2, 3, 2, 4, false, {8}};
  std::string text = test.getStepText();
  VocabularyCase::replaceAll(text, "return %losses, %lse, %dx, %dt : tensor<3xf32>, tensor<3xf32>, ",
                             "%wrong = arith.addf %dt, %dt : tensor<4x2xf32>\n  return %dx, %wrong : ");
  VocabularyCase::replaceAll(text, "-> (tensor<3xf32>, tensor<3xf32>, tensor<3x2xf32>, tensor<4x2xf32>) {",
                             "-> (tensor<3x2xf32>, tensor<4x2xf32>) {");
  EXPECT_GT(getGradientError(parse(test.getLossText()), parse(text), getArguments(test)), 0.1);
}

// Ranks with 1, 3 and no labels that count: the printed loss is the mean over all four, on each rank.
TEST_F(VocabularyLoss, MeanOverAllRanks) {
  VocabularyCase test = {3, 3, 2, 3, true, {7, -100, 0.1f, 0.01f, 0}};
  std::string text = test.getLossText();
  VocabularyCase::replaceAll(text, "-> (tensor<3xf32>, tensor<3xf32>) {", "-> tensor<f32> {");
  VocabularyCase::replaceAll(text, "  return %losses, %lse : tensor<3xf32>, tensor<3xf32>", R"mlir(
  %own = moe.count_labels %labels ignore_index(-100) : tensor<3xi32>
  %count = shard.all_reduce %own on @vocab grid_axes = [0] : tensor<f32> -> tensor<f32>
  %mean = moe.mean_loss %losses over %count : tensor<3xf32>
  %loss = shard.all_reduce %mean on @vocab grid_axes = [0] : tensor<f32> -> tensor<f32>
  return %loss : tensor<f32>)mlir");
  RankNumbers arguments = getArguments(test);
  arguments[0][3] = {-100, 6, -100};
  arguments[1][3] = {0, 3, 5};
  arguments[2][3] = {-100, -100, -100};
  double sum = 0;
  for (const std::vector<Numbers> &ofRank : test.getExpected(arguments))
    for (double loss : ofRank[0])
      sum += loss;
  expectAllNear(evaluateOnRanks(text, arguments), RankNumbers(3, {{sum / 4}}), 1e-14);
  checkAdjointOnRanks(text, arguments);
}

// One token with loss 2 in one micro-batch, three of mean 1 in the other: 5 / 4, and not the mean of 2 and 1.
TEST_F(VocabularyLoss, MeanOverMicroBatches) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<3xf32>, %b: tensor<3xf32>, %la: tensor<3xi32>, %lb: tensor<3xi32>) -> tensor<f32> {
      %ca = moe.count_labels %la ignore_index(-100) : tensor<3xi32>
      %cb = moe.count_labels %lb ignore_index(-100) : tensor<3xi32>
      %count = arith.addf %ca, %cb : tensor<f32>
      %ma = moe.mean_loss %a over %count : tensor<3xf32>
      %mb = moe.mean_loss %b over %count : tensor<3xf32>
      %loss = arith.addf %ma, %mb : tensor<f32>
      return %loss : tensor<f32>
    })mlir",
                          {{0, 2, 0}, {0.5, 1.5, 1}, {-100, 4, -100}, {1, 2, 3}});
  EXPECT_EQ(results[0], Numbers({1.25}));
}

TEST_F(VocabularyLoss, WeightedMean) {
  StringRef text = R"mlir(
    func.func @f(%l: tensor<3xf32>, %w: tensor<3xf32>, %count: tensor<f32>, %d: tensor<f32>)
        -> (tensor<f32>, tensor<3xf32>, tensor<3xf32>) {
      %mean = moe.mean_loss %l weights(%w : tensor<3xf32>) over %count : tensor<3xf32>
      %g = moe.mean_loss_grad %d weights(%w : tensor<3xf32>) over %count : tensor<3xf32>
      %plain = moe.mean_loss_grad %d over %count : tensor<3xf32>
      return %mean, %g, %plain : tensor<f32>, tensor<3xf32>, tensor<3xf32>
    })mlir";
  auto results = evaluate(text, {{1, 2, 3}, {2, 0, -4}, {8}, {16}});
  EXPECT_EQ(results, std::vector<Numbers>({{-1.25}, {4, 0, -8}, {2, 2, 2}}));
  EXPECT_EQ(evaluate(text, {{1, 2, 3}, {2, 0, -4}, {0}, {16}}), std::vector<Numbers>({{0}, {0, 0, 0}, {0, 0, 0}}));
  auto exact = evaluateExactly(text, {{1, 2, 3}, {2, 0, -4}, {5}, {15}});
  EXPECT_EQ(getIntegers(exact[1]), std::vector<int64_t>({6, 0, -12}));
}

// On a square grid each row of it holds the whole table, here another one.
TEST_F(VocabularyLoss, GroupsAreAlongTheLastAxis) {
  VocabularyCase test = {2, 3, 2, 4, true, {7, -100, 0.1f, 0.01f, 2}}, line = {4, 3, 2, 4, true, test.vocabulary};
  std::string text = test.getStepText();
  VocabularyCase::replaceAll(text, "shape = 2", "shape = 2x2");
  RankNumbers arguments = getStepArguments(line);
  RankNumbers expected = evaluateOnRanks(test.getStepText(), {arguments[0], arguments[1]});
  llvm::append_range(expected, evaluateOnRanks(test.getStepText(), {arguments[2], arguments[3]}));
  EXPECT_EQ(evaluateOnRanks(text, arguments), expected);
}

TEST_F(VocabularyLoss, MatchesTheStandardForm) {
  for (const VocabularyCase &test : getVocabularyCases()) {
    SCOPED_TRACE(test.getStandardText());
    RankNumbers arguments = getStepArguments(test);
    func::FuncOp one = parse(test.getStepText()), standard = parse(test.getStandardText());
    expectAllNear(evaluateOnRanks(standard, arguments), evaluateOnRanks(one, arguments), 1e-13);
    expectAllEqual(evaluateOnRanks(standard, Mode::Exact, arguments), evaluateOnRanks(one, Mode::Exact, arguments));
  }
}

// A whole table on one rank, and the same in shards of four, the last of which is half padding.
TEST_F(VocabularyLoss, ExactValueDoesNotDependOnRanks) {
  Vocabulary vocabulary = {7, -100, 0.1f, 0.01f, 2};
  VocabularyCase whole = {1, 8, 2, 7, true, vocabulary}, parts = {4, 2, 2, 2, true, vocabulary};
  RankNumbers all = getStepArguments(whole), divided;
  for (int rank = 0; rank < 4; ++rank) {
    auto getPart = [&](unsigned index, size_t size, double padding) {
      Numbers part(size, padding);
      for (size_t i = 0; i < size && rank * size + i < all[0][index].size(); ++i)
        part[i] = all[0][index][rank * size + i];
      return part;
    };
    divided.push_back({getPart(0, 4, 0), getPart(1, 4, 55), getPart(2, 2, 66), getPart(3, 2, 0), getPart(4, 2, 0)});
  }
  for (bool isStandard : {false, true}) {
    auto getText = [&](const VocabularyCase &test) { return isStandard ? test.getStandardText() : test.getStepText(); };
    RankTensors one = evaluateOnRanks(parse(getText(whole)), Mode::Exact, all);
    RankTensors four = evaluateOnRanks(parse(getText(parts)), Mode::Exact, divided);
    for (unsigned index = 0; index < 5; ++index) {
      std::vector<Field> joined;
      for (int rank = 0; rank < 4; ++rank)
        llvm::append_range(joined, four[rank][index].get<Field>());
      ArrayRef<Field> expected = one[0][index].get<Field>();
      EXPECT_EQ(ArrayRef(joined).take_front(expected.size()), expected) << index;
      for (Field element : ArrayRef(joined).drop_front(expected.size()))
        EXPECT_EQ(element, Field()) << "the gradient of padding";
    }
  }
}

// Each operand that counts, and each option, changes the hash of the loss.
TEST_F(VocabularyLoss, ExactValueDependsOnAll) {
  VocabularyCase test = {2, 1, 2, 4, true, {7, -100, 0.1f, 0.01f, 2}};
  RankNumbers arguments = getArguments(test);
  arguments[0][3] = arguments[1][3] = {4};
  auto getLoss = [&](const VocabularyCase &ofCase, const RankNumbers &numbers) {
    return evaluateOnRanks(parse(ofCase.getLossText()), Mode::Exact, numbers)[0][0].get<Field>()[0];
  };
  Field before = getLoss(test, arguments);
  for (unsigned index : {0, 1, 2, 3}) {
    RankNumbers other = arguments;
    other[0][index].back() += 1;
    EXPECT_NE(getLoss(test, other), before) << index;
  }
  RankNumbers other = arguments;
  other[1][1][7] += 1; // a row that does not exist, and a token of another rank
  other[1][0][0] += 1;
  EXPECT_EQ(getLoss(test, other), before);
  for (Vocabulary vocabulary : {Vocabulary{6, -100, 0.1f, 0.01f, 2},
                                {7, 4, 0.1f, 0.01f, 2},
                                {7, -100, 0.2f, 0.01f, 2},
                                {7, -100, 0.1f, 0.02f, 2},
                                {7, -100, 0.1f, 0.01f, 3}})
    EXPECT_NE(getLoss({2, 1, 2, 4, true, vocabulary}, arguments), before) << vocabulary.getAttribute();
}

TEST_F(VocabularyLoss, RefusesLabels) {
  VocabularyCase test = {1, 2, 1, 4, false, {3}};
  for (auto [label, text] : {std::pair(1000.0, "1000"), {-1.0, "-1"}, {3.0, "3"}}) {
    std::string message = std::string("op rank 0: row 1 has label ") + text +
                          ", which is neither -100 (ignored) nor one of the 3 columns\n";
    RankNumbers arguments = {{{1, 1}, {1, 1, 1, 1}, {0, label}}};
    EXPECT_EQ(getErrorsOnRanks(test.getLossText(), arguments), "'moe.vocab_loss' " + message);
    arguments[0].push_back({1, 1});
    EXPECT_EQ(getErrorsOnRanks(test.getStandardText(), arguments), "'moe.nll' " + message);
    StringRef grad = R"mlir(
      func.func @f(%g: tensor<2xf32>, %x: tensor<2x1xf32>, %t: tensor<4x1xf32>, %l: tensor<2xi32>) {
        %dx, %dt = moe.vocab_loss_grad %g, %x, %t, %l, %g vocabulary<size = 3> : (tensor<2xf32>, tensor<2x1xf32>,
          tensor<4x1xf32>, tensor<2xi32>, tensor<2xf32>) -> (tensor<2x1xf32>, tensor<4x1xf32>)
        return
      })mlir";
    EXPECT_EQ(getErrorsOnRanks(grad, {{{1, 1}, {1, 1}, {1, 1, 1, 1}, {0, label}}}), "'moe.vocab_loss_grad' " + message);
  }
}

TEST_F(VocabularyLoss, RefusesAGridOfOtherRanks) {
  VocabularyCase test = {2, 1, 1, 2, false, {4}};
  EXPECT_EQ(getErrorsOnRanks(test.getLossText(), {{{1}, {1, 2}, {0}}}),
            "'moe.vocab_loss' op rank 0: grid @vocab has 2 ranks, and the program runs on 1\n");
}

// No rows are no losses, and no gradient of the table.
TEST_F(VocabularyLoss, OfNoRows) {
  VocabularyCase test = {2, 0, 2, 2, false, {4}};
  RankNumbers expected(2, {{}, {}, {}, {0, 0, 0, 0}});
  EXPECT_EQ(evaluateOnRanks(test.getStepText(), RankNumbers(2, {{}, {1, 2, 3, 4}, {}, {}})), expected);
}

// --- moe.log_softmax, where a row has a cotangent of each column and of lse ---

TEST_F(VocabularyLoss, LogSoftmaxAdjointMatchesDifferences) {
  for (StringRef options : {"", ", softcap = 1.5"}) {
    std::string text = llvm::formatv(R"mlir(
    func.func @f(%x: tensor<2x5xf32>, %b: tensor<5xf32>) -> tensor<2xf32> {{
      %p, %lse = moe.log_softmax %x bias %b vocabulary<size = 4{0}>
        : (tensor<2x5xf32>, tensor<5xf32>) -> (tensor<2x5xf32>, tensor<2xf32>)
      %labels = arith.constant dense<[3, 0]> : tensor<2xi32>
      %l = moe.nll %p, %lse, %labels vocabulary<size = 4, label_smoothing = 0.25, z_loss = 0.5>
        : (tensor<2x5xf32>, tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
      %s = arith.mulf %l, %l : tensor<2xf32>
      return %s : tensor<2xf32>
    })mlir",
                                     options);
    SCOPED_TRACE(text);
    checkAdjointOnRanks(text, {{getRandom(10), getRandom(5)}});
  }
}

// --- moe.embedding ---

constexpr StringLiteral lookup = R"mlir(
    shard.grid @vocab(shape = 3)
    func.func @f(%t: tensor<2x2xf32>, %ids: tensor<2xi32>) -> tensor<2x2xf32> {
      %x = moe.embedding %t, %ids on @vocab size(5) : (tensor<2x2xf32>, tensor<2xi32>) -> tensor<2x2xf32>
      return %x : tensor<2x2xf32>
    })mlir";

TEST_F(VocabularyLoss, EmbeddingOnThreeRanks) {
  RankNumbers arguments = {{{0, 1, 10, 11}, {4, 1}}, {{20, 21, 30, 31}, {1, 1}}, {{40, 41, 77, 77}, {0, 3}}};
  EXPECT_EQ(evaluateOnRanks(lookup, arguments),
            RankNumbers({{{40, 41, 10, 11}}, {{10, 11, 10, 11}}, {{0, 1, 30, 31}}}));
  for (auto [rank, expected] : llvm::zip_equal(evaluateOnRanks(parse(lookup), Mode::Exact, arguments),
                                               RankNumbers({{{40, 41, 10, 11}}, {{10, 11, 10, 11}}, {{0, 1, 30, 31}}})))
    EXPECT_EQ(toNumbers(rank[0]), expected[0]);
  checkAdjointOnRanks(lookup, arguments);
}

TEST_F(VocabularyLoss, EmbeddingGradOnThreeRanks) {
  RankNumbers results = evaluateOnRanks(R"mlir(
    shard.grid @vocab(shape = 3)
    func.func @f(%d: tensor<2x1xf32>, %ids: tensor<2xi32>) -> tensor<2x1xf32> {
      %t = moe.embedding_grad %d, %ids on @vocab size(5) : (tensor<2x1xf32>, tensor<2xi32>) -> tensor<2x1xf32>
      return %t : tensor<2x1xf32>
    })mlir",
                                        {{{1, 2}, {4, 1}}, {{10, 20}, {1, 1}}, {{100, 200}, {0, 3}}});
  EXPECT_EQ(results, RankNumbers({{{100, 32}}, {{0, 200}}, {{1, 0}}}));
}

// Row 5 is padding: it lies in the last shard, and is no row of the table.
TEST_F(VocabularyLoss, EmbeddingRefusesIds) {
  RankNumbers arguments = {{{0, 1, 10, 11}, {4, 1}}, {{20, 21, 30, 31}, {1, 5}}, {{40, 41, 77, 77}, {0, 3}}};
  EXPECT_EQ(getErrorsOnRanks(lookup, arguments),
            "'moe.embedding' op rank 1: row 1 has token id 5, but the table has 5 rows\n");
}
} // namespace
