//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What moe-ring-vocab makes of a vocabulary loss, against the equations on whole matrices and against the op itself, on
// one and on several ranks; and what it sends and multiplies against closed formulas.
//===----------------------------------------------------------------------===//

#include "RanksTest.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
struct Case {
  int64_t ranks, tokens, hidden, rows, size;
  double smoothing = 0, zLoss = 0, softcap = 0;
  bool hasBias = false;
  int64_t ignored = -100;
  std::string type = "f32";

  std::string text(bool hasGrad = true) const;
  int64_t countState() const { return smoothing != 0 ? 4 : 3; }
};

struct Form {
  std::string move, hop;
  int64_t tileBytes;
};

/// By rank: x, table, labels, bias, cotangents.
struct Data {
  std::vector<Numbers> x, table, labels, bias, cotangents;

  RankNumbers arguments(bool hasBias) const {
    RankNumbers all;
    for (size_t rank = 0; rank < x.size(); ++rank) {
      all.push_back({x[rank], table[rank], labels[rank]});
      if (hasBias)
        all.back().push_back(bias[rank]);
      all.back().push_back(cotangents[rank]);
    }
    return all;
  }
};

std::string Case::text(bool hasGrad) const {
  std::string options = llvm::formatv("vocabulary<size = {0}, ignore_index = {1}", size, ignored);
  auto add = [&](StringRef name, double value) {
    if (value != 0)
      options += llvm::formatv(", {0} = {1:e}", name, value);
  };
  add("label_smoothing", smoothing);
  add("z_loss", zLoss);
  add("softcap", softcap);
  options += ">";
  std::string place = (hasBias ? std::string("bias %b ") : "") + (ranks > 1 ? "on @vocab " : "") + options;
  std::string x = llvm::formatv("tensor<{0}x{1}x{2}>", tokens, hidden, type);
  std::string table = llvm::formatv("tensor<{0}x{1}x{2}>", rows, hidden, type);
  std::string labels = llvm::formatv("tensor<{0}xi32>", tokens), vector = llvm::formatv("tensor<{0}xf32>", tokens);
  std::string bias = llvm::formatv("tensor<{0}xf32>", rows);
  std::string biasArgument = hasBias ? "%b: " + bias + ", " : "", biasType = hasBias ? ", " + bias : "";
  std::string grid = ranks > 1 ? llvm::formatv("shard.grid @vocab(shape = 1x{0})\n", ranks).str() : "";
  std::string types = vector + ", " + vector, values = "%losses, %lse", gradient;
  if (hasGrad) {
    types += ", " + x + ", " + table + biasType;
    values += std::string(", %dx, %dt") + (hasBias ? ", %db" : "");
    gradient =
        llvm::formatv("%dx, %dt{0} = moe.vocab_loss_grad %g, %x, %t, %l, %lse {1} : ({2}, {3}, {4}, {5}, {2}{6}) "
                      "-> ({3}, {4}{6})",
                      hasBias ? ", %db" : "", place, vector, x, table, labels, biasType);
  }
  return llvm::formatv(R"mlir({0}
    func.func @f(%x: {1}, %t: {2}, %l: {3}, {4}%g: {5}) -> ({6}) {{
      %losses, %lse = moe.vocab_loss %x, %t, %l {7} : ({1}, {2}, {3}{8}) -> ({5}, {5})
      {9}
      return {10} : {6}
    })mlir",
                       grid, x, table, labels, biasArgument, vector, types, place, biasType, gradient, values);
}

/// By rank: losses, lse, and the gradients of x, table and bias.
RankNumbers computeDensely(const Case &c, const Data &data) {
  RankNumbers results(c.ranks);
  for (auto &ofRank : results) {
    ofRank = {Numbers(c.tokens), Numbers(c.tokens), Numbers(c.tokens * c.hidden), Numbers(c.rows * c.hidden)};
    if (c.hasBias)
      ofRank.push_back(Numbers(c.rows));
  }
  for (int64_t rank = 0; rank < c.ranks; ++rank)
    for (int64_t i = 0; i < c.tokens; ++i) {
      auto weight = [&](int64_t v, int64_t k) { return data.table[v / c.rows][v % c.rows * c.hidden + k]; };
      Numbers y(c.size);
      double largest = -HUGE_VAL, sum = 0, all = 0;
      for (int64_t v = 0; v < c.size; ++v) {
        for (int64_t k = 0; k < c.hidden; ++k)
          y[v] += data.x[rank][i * c.hidden + k] * weight(v, k);
        if (c.hasBias)
          y[v] += data.bias[v / c.rows][v % c.rows];
        if (c.softcap != 0)
          y[v] = c.softcap * std::tanh(y[v] / c.softcap);
        largest = std::max(largest, y[v]);
        all += y[v];
      }
      for (double logit : y)
        sum += std::exp(logit - largest);
      double lse = largest + std::log(sum);
      results[rank][1][i] = lse;
      int64_t label = int64_t(data.labels[rank][i]);
      if (label == c.ignored)
        continue;
      results[rank][0][i] = (1 - c.smoothing) * (lse - y[label]) + c.zLoss * lse * lse;
      if (c.smoothing != 0)
        results[rank][0][i] += c.smoothing * (lse - all / double(c.size));
      for (int64_t v = 0; v < c.size; ++v) {
        if (y[v] == -HUGE_VAL)
          continue;
        double grad = std::exp(y[v] - lse) * (1 + 2 * c.zLoss * lse) - c.smoothing / double(c.size);
        if (v == label)
          grad -= 1 - c.smoothing;
        if (c.softcap != 0)
          grad *= 1 - y[v] / c.softcap * (y[v] / c.softcap);
        grad *= data.cotangents[rank][i];
        for (int64_t k = 0; k < c.hidden; ++k) {
          results[rank][2][i * c.hidden + k] += grad * weight(v, k);
          results[v / c.rows][3][v % c.rows * c.hidden + k] += grad * data.x[rank][i * c.hidden + k];
        }
        if (c.hasBias)
          results[v / c.rows][4][v % c.rows] += grad;
      }
    }
  return results;
}

class RingVocab : public RanksTest {
protected:
  Data draw(const Case &c, double scale = 1) {
    Data data;
    for (int64_t rank = 0; rank < c.ranks; ++rank) {
      auto scaled = [&](int64_t count) {
        Numbers numbers = getRandom(count);
        for (double &number : numbers)
          number *= scale;
        return numbers;
      };
      data.x.push_back(scaled(c.tokens * c.hidden));
      data.table.push_back(getRandom(c.rows * c.hidden));
      data.bias.push_back(getRandom(c.rows));
      data.cotangents.push_back(getRandom(c.tokens));
      Numbers labels;
      int64_t edges[] = {0, c.size - 1, c.rows - 1, c.rows, c.ignored};
      for (int64_t i = 0; i < c.tokens; ++i) {
        int64_t label = i % 2 ? int64_t(generator() % c.size) : edges[generator() % 5];
        labels.push_back(double(label == c.ignored ? label : std::min(label, c.size - 1)));
      }
      data.labels.push_back(labels);
    }
    return data;
  }

  func::FuncOp rewrite(const Case &c, const Form &form, bool hasGrad = true) {
    func::FuncOp function = parse(c.text(hasGrad));
    if (!function)
      return {};
    moe::MoERingVocabOptions options;
    options.move = form.move;
    options.hop = form.hop;
    options.tileBytes = form.tileBytes;
    PassManager manager(&context);
    manager.addNestedPass<func::FuncOp>(moe::createMoERingVocab(options));
    EXPECT_TRUE(succeeded(manager.run(*modules.back()))) << errors;
    function.walk([](Operation *op) { EXPECT_FALSE((isa<moe::VocabLossOp, moe::VocabLossGradOp>(op))); });
    return function;
  }

  /// The first number that differs, relative to the largest of its result; empty when none does.
  static std::string findDifference(const RankNumbers &actual, const RankNumbers &expected, double tolerance) {
    for (auto [rank, results] : llvm::enumerate(expected))
      for (auto [result, b] : llvm::enumerate(results)) {
        const Numbers &a = actual[rank][result];
        if (a.size() != b.size())
          return "another number of elements";
        double largest = 1;
        for (double number : b)
          if (std::isfinite(number))
            largest = std::max(largest, std::abs(number));
        for (size_t i = 0; i < a.size(); ++i)
          if (!(a[i] == b[i] || std::abs(a[i] - b[i]) <= tolerance * largest))
            return llvm::formatv("rank {0}, result {1}, element {2}: {3} instead of {4}", rank, result, i, a[i], b[i]);
      }
    return "";
  }
  static void expectClose(const RankNumbers &actual, const RankNumbers &expected, double tolerance) {
    ASSERT_EQ(actual.size(), expected.size());
    EXPECT_EQ(findDifference(actual, expected, tolerance), "");
  }

  void check(const Case &c, const Data &data, ArrayRef<Form> forms, double tolerance = 1e-12) {
    RankNumbers expected = computeDensely(c, data), arguments = data.arguments(c.hasBias);
    {
      SCOPED_TRACE("the op itself\n" + c.text());
      expectClose(evaluateOnRanks(parse(c.text()), arguments), expected, tolerance);
    }
    for (const Form &form : forms) {
      SCOPED_TRACE(
          llvm::formatv("move={0} hop={1} tile-bytes={2}\n{3}", form.move, form.hop, form.tileBytes, c.text()).str());
      expectClose(evaluateOnRanks(rewrite(c, form), arguments), expected, tolerance);
      RankNumbers losses;
      for (const std::vector<Numbers> &ofRank : expected)
        losses.push_back({ofRank[0], ofRank[1]});
      expectClose(evaluateOnRanks(rewrite(c, form, /*hasGrad=*/false), arguments), losses, tolerance);
    }
  }

  static std::vector<Form> getForms(ArrayRef<int64_t> tileBytes) {
    std::vector<Form> forms;
    for (int64_t bytes : tileBytes)
      for (StringRef move : {"weights", "activations", "none"})
        for (StringRef hop : {"shard", "tile"})
          if (move != "none" || hop == "shard")
            forms.push_back({move.str(), hop.str(), bytes});
    return forms;
  }
};

// Tiles of one logit, of a few, ragged in one or both directions, and one for all.
TEST_F(RingVocab, FormsAndTiles) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (auto [tokens, rows] : {std::pair<int64_t, int64_t>{10, 7}, {5, 12}, {1, 3}, {9, 1}}) {
      Case c = {ranks, tokens, 3, rows, ranks * rows};
      c.hasBias = tokens != 5;
      check(c, draw(c), getForms({8, 40, 128, 400, 1 << 20}));
    }
}

TEST_F(RingVocab, Options) {
  for (int64_t ranks : {1, 2, 4, 8})
    for (int option = 0; option < 16; ++option) {
      Case c = {ranks, 6, 4, 5, ranks * 5 - 3};
      c.smoothing = option & 1 ? 0.125 : 0;
      c.zLoss = option & 2 ? 0.0625 : 0;
      c.softcap = option & 4 ? 1.5 : 0;
      c.hasBias = option & 8;
      c.ignored = option & 1 ? 2 : -100;
      check(c, draw(c, 3), getForms({48, 1 << 20}));
    }
}

// The last shards have columns of which none exists, or only some.
TEST_F(RingVocab, Padding) {
  for (int64_t size : {1, 3, 5, 11}) {
    Case c = {4, 3, 2, 3, size};
    c.hasBias = true;
    c.smoothing = 0.25;
    check(c, draw(c), getForms({8, 16, 1 << 20}));
    c.softcap = 2;
    check(c, draw(c), getForms({16}));
  }
}

TEST_F(RingVocab, BFloat16) {
  for (int64_t ranks : {1, 4}) {
    Case c = {ranks, 7, 3, 5, ranks * 5 - 1};
    c.type = "bf16";
    check(c, draw(c), getForms({36, 1 << 20}));
  }
}

TEST_F(RingVocab, NoTokens) {
  Case c = {2, 0, 3, 4, 8};
  check(c, draw(c), getForms({16, 1 << 20}));
}

TEST_F(RingVocab, ExtremeLogits) {
  Case c = {4, 6, 1, 3, 12};
  std::vector<Form> forms = getForms({8, 32, 1 << 20});
  auto withLogits = [&](const Numbers &table) { // All rows of x are 1, so that logits are the table.
    Data data = draw(c);
    for (int64_t rank = 0; rank < c.ranks; ++rank) {
      data.x[rank] = Numbers(c.tokens, 1);
      data.table[rank] = Numbers(table.begin() + rank * c.rows, table.begin() + (rank + 1) * c.rows);
    }
    return data;
  };
  Numbers far, equal(12, -7), rising, falling;
  for (int v = 0; v < 12; ++v) {
    far.push_back(v % 3 == 0 ? 1e4 : -1e4);
    rising.push_back(100 * v);
    falling.push_back(-100 * v);
  }
  for (const Numbers &logits : {far, equal, rising, falling})
    check(c, withLogits(logits), forms, /*tolerance=*/logits == far ? 1e-11 : 1e-12);
}

// Lanes of −inf, a whole tile and a whole shard of them; the first of a row too.
TEST_F(RingVocab, LanesOfInfinity) {
  Case c = {2, 5, 2, 6, 12};
  c.hasBias = true;
  Data data = draw(c);
  for (int64_t lane : {0, 1, 2, 3})
    data.bias[0][lane] = -HUGE_VAL;
  data.bias[1][5] = -HUGE_VAL;
  for (Numbers &labels : data.labels)
    labels = {4, 5, 6, -100, 10};
  std::vector<Form> forms = getForms({8, 40, 96, 1 << 20});
  check(c, data, forms);
  c.zLoss = 0.5;
  check(c, data, forms);
  c.softcap = 2; // The cap makes them finite again.
  check(c, data, forms);
  c.softcap = c.zLoss = 0;
  data.bias[0] = Numbers(6, -HUGE_VAL);
  for (Numbers &labels : data.labels)
    labels = {6, 7, 8, -100, 10};
  check(c, data, forms);
}

TEST_F(RingVocab, RanksWithoutLabels) {
  Case c = {4, 3, 2, 2, 8};
  Data data = draw(c);
  data.labels = {{1, -100, -100}, {0, 7, 3}, {-100, -100, -100}, {-100, 5, -100}};
  check(c, data, getForms({8, 24, 1 << 20}));
  data.labels.assign(4, Numbers(3, -100));
  check(c, data, getForms({24}));
}

// Each rank has 8 / P logits 0 … 7; the label is 3. log Σ e^k − 3 = 4.458340, and with smoothing 0.1 it is 4.408340.
TEST_F(RingVocab, KnownLosses) {
  for (auto [smoothing, expected] : {std::pair{0., 4.458340}, {0.1, 4.408340}})
    for (const Form &form : getForms({8, 1 << 20})) {
      Case c = {2, 1, 1, 4, 8};
      c.smoothing = smoothing;
      Data data = {{{1}, {1}}, {{0, 1, 2, 3}, {4, 5, 6, 7}}, {{3}, {3}}, {{}, {}}, {{1}, {1}}};
      for (const std::vector<Numbers> &results : evaluateOnRanks(rewrite(c, form), data.arguments(false)))
        EXPECT_NEAR(results[0][0], expected, 1e-6) << form.move;
    }
}

// A bad label is an error of the row of the rank that has it.
TEST_F(RingVocab, BadLabels) {
  for (const Form &form : getForms({96})) {
    Case c = {2, 5, 2, 4, 7};
    Data data = draw(c);
    data.labels = {{0, 1, 2, 3, 4}, {0, 1, 2, 7, 4}};
    func::FuncOp function = rewrite(c, form);
    errors.clear();
    EXPECT_TRUE(failed(tryOnRanks(function, Mode::Float64, data.arguments(false))));
    EXPECT_NE(errors.find("row 3 has label 7"), std::string::npos) << form.move << "\n" << errors;
  }
}

// What a rank has read from the wrong place, or not received, is seen in some result.
TEST_F(RingVocab, ComparisonSeesFaults) {
  Case c = {2, 5, 3, 4, 8};
  c.hasBias = true;
  Data data = draw(c);
  RankNumbers expected = computeDensely(c, data), arguments = data.arguments(true);
  for (const Form &form : getForms({96})) {
    auto getTargets = [](func::FuncOp function) {
      SmallVector<Operation *> targets;
      function.walk([&](Operation *op) {
        if (isa<moe::ShiftOp, moe::ShardStartOp, moe::EmbeddingShardGradOp>(op))
          targets.push_back(op);
      });
      return targets;
    };
    size_t count = getTargets(rewrite(c, form)).size();
    EXPECT_GE(count, form.move == "none" ? 3u : 10u);
    for (size_t index = 0; index < count; ++index) {
      func::FuncOp function = rewrite(c, form);
      Operation *target = getTargets(function)[index];
      SCOPED_TRACE(llvm::formatv("{0} {1}: {2} {3}", form.move, form.hop, index, target->getName()).str());
      if (auto start = dyn_cast<moe::ShardStartOp>(target))
        start.setHops(start.getHops() + 1);
      else // The shift's input, or the sums that rows are added to.
        target->getResult(0).replaceAllUsesWith(target->getOperand(isa<moe::ShiftOp>(target) ? 0 : 3));
      EXPECT_NE(findDifference(evaluateOnRanks(function, arguments), expected, 1e-12), "");
    }
  }
}

// --- What is sent and multiplied ---

/// How often an op runs.
int64_t countRuns(Operation *op) {
  int64_t runs = 1;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>()) {
    APInt from, to, step;
    EXPECT_TRUE(matchPattern(loop.getLowerBound(), m_ConstantInt(&from)) &&
                matchPattern(loop.getUpperBound(), m_ConstantInt(&to)) &&
                matchPattern(loop.getStep(), m_ConstantInt(&step)));
    runs *= int64_t(llvm::divideCeil((to - from).getSExtValue(), step.getSExtValue()));
  }
  return runs;
}

int64_t countSentBytes(func::FuncOp function, int64_t ranks) {
  int64_t bytes = 0;
  function.walk([&](CollectiveOpInterface op) { bytes += countRuns(op) * op.getSentBytes(ranks); });
  return bytes;
}

int64_t countFlops(func::FuncOp function) {
  int64_t flops = 0;
  function.walk([&](linalg::MatmulOp op) {
    int64_t size = 2;
    for (int64_t range : op.getStaticLoopRanges())
      size *= range;
    flops += countRuns(op) * size;
  });
  return flops;
}

int64_t getLargestLogits(func::FuncOp function) {
  int64_t largest = 0;
  function.walk([&](Operation *op) {
    if (isa<moe::FoldLogitsOp, moe::LogitsGradOp>(op)) {
      auto type = cast<RankedTensorType>(op->getOperand(0).getType());
      largest = std::max(largest, type.getNumElements());
    }
  });
  return largest;
}

TEST_F(RingVocab, SentBytesAndFlops) {
  for (int64_t p : {1, 2, 4, 8})
    for (const char *type : {"f32", "bf16"})
      for (bool hasBias : {false, true})
        for (double smoothing : {0., 0.5}) {
          Case c = {p, 13, 3, 5, 5 * p};
          c.type = type;
          c.hasBias = hasBias;
          c.smoothing = smoothing;
          int64_t b = c.type == "f32" ? 4 : 2, n = c.tokens, h = c.hidden, r = c.rows, state = smoothing != 0 ? 16 : 12;
          int64_t bias = hasBias ? 4 * r : 0, product = 2 * n * h * r * p, home = p > 1 ? p : 0;
          for (const Form &form : getForms({64 * p, 1 << 20})) {
            SCOPED_TRACE(llvm::formatv("{0} {1} {2}\n{3}", form.move, form.hop, form.tileBytes, c.text()).str());
            int64_t forward = 0, both = 0, products = 4;
            if (form.move == "weights") {
              forward = (p - 1) * (h * r * b + bias);
              both = 2 * forward + home * (h * r * 4 + bias);
            } else if (form.move == "activations") {
              forward = (p - 1) * (n * h * b + n * 4) + home * n * state;
              both = forward + (p - 1) * (n * h * b + n * 12) + home * n * h * 4;
            } else {
              forward = (p - 1) * (n * h * b + n * 4) + (p - 1) * p * n * state;
              both = forward + (p - 1) * (n * 4 + n * h * 4);
              products = 3;
            }
            func::FuncOp function = rewrite(c, form);
            EXPECT_EQ(countSentBytes(function, p), both);
            EXPECT_EQ(countFlops(function), products * product);
            EXPECT_LE(getLargestLogits(function) * (b == 2 ? 6 : 4), form.tileBytes);
            func::FuncOp alone = rewrite(c, form, /*hasGrad=*/false);
            EXPECT_EQ(countSentBytes(alone, p), forward);
            EXPECT_EQ(countFlops(alone), product);
          }
        }
}
} // namespace
