//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A vocabulary loss in the forms it has in the IR, and computed here from its definition.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_INTERPRETER_VOCABULARYTEST_H
#define PLATEAU_TEST_UNIT_INTERPRETER_VOCABULARYTEST_H

#include "RanksTest.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::plateau::test {

struct Vocabulary {
  int64_t size;
  int64_t ignored = -100;
  float smoothing = 0, zLoss = 0, softcap = 0;

  std::string getAttribute() const {
    char text[200];
    snprintf(text, sizeof text,
             "vocabulary<size = %lld, ignore_index = %lld, label_smoothing = %#.9g, z_loss = %#.9g, softcap = "
             "%#.9g>",
             static_cast<long long>(size), static_cast<long long>(ignored), smoothing, zLoss, softcap);
    return text;
  }

  /// The logarithm of the sum of exponentials of a row's logits, and the loss, from the definition.
  std::pair<double, double> getLse(ArrayRef<double> logits, int64_t label) const {
    std::vector<long double> y;
    long double largest = -HUGE_VALL, sum = 0, total = 0;
    for (double logit : logits.take_front(size)) {
      y.push_back(softcap > 0 ? softcap * std::tanh(static_cast<long double>(logit) / softcap) : logit);
      largest = std::max(largest, y.back());
      total += y.back();
    }
    for (long double element : y)
      sum += std::exp(element - largest);
    long double lse = largest + std::log(sum), loss = 0, epsilon = smoothing;
    if (label != ignored) {
      loss = (1 - epsilon) * (lse - y[label]) + zLoss * lse * lse;
      if (smoothing > 0)
        loss += epsilon * (lse - total / size);
    }
    return {lse, loss};
  }
};

/// Tokens of `ranks` ranks, `rows` each of `width` numbers, against a table in shards of `shardRows` rows.
struct VocabularyCase {
  int ranks;
  int64_t rows, width, shardRows;
  bool hasBias;
  Vocabulary vocabulary;

  std::string getGrid() const { return llvm::formatv("shard.grid @vocab(shape = {0})\n", ranks); }
  std::string getX() const { return llvm::formatv("tensor<{0}x{1}xf32>", rows, width); }
  std::string getTable() const { return llvm::formatv("tensor<{0}x{1}xf32>", shardRows, width); }
  std::string getBias() const { return llvm::formatv("tensor<{0}xf32>", shardRows); }
  std::string getRows() const { return llvm::formatv("tensor<{0}xf32>", rows); }
  std::string getLabels() const { return llvm::formatv("tensor<{0}xi32>", rows); }
  std::string getParameters() const {
    return "%x: " + getX() + ", %t: " + getTable() + (hasBias ? ", %b: " + getBias() : "") +
           ", %labels: " + getLabels();
  }

  /// @f(x, table, bias if any, labels) -> (losses, lse) by moe.vocab_loss.
  std::string getLossText() const {
    return getGrid() + "func.func @f(" + getParameters() + ") -> (" + getRows() + ", " + getRows() + ") {\n" +
           getLoss() + "  return %losses, %lse : " + getRows() + ", " + getRows() + "\n}\n";
  }

  /// @f(x, table, bias if any, labels, cotangents) -> (losses, lse, and the gradients of x, table, bias if any) by
  /// moe.vocab_loss and its adjoint.
  std::string getStepText() const {
    std::string grad = "  %dx, %dt" + std::string(hasBias ? ", %db" : "") +
                       " = moe.vocab_loss_grad %g, %x, %t, %labels, %lse" + (hasBias ? " bias %b" : "") +
                       " on @vocab " + vocabulary.getAttribute() + " : (" + getRows() + ", " + getX() + ", " +
                       getTable() + ", " + getLabels() + ", " + getRows() + (hasBias ? ", " + getBias() : "") +
                       ") -> (" + getX() + ", " + getTable() + (hasBias ? ", " + getBias() : "") + ")\n";
    return getGrid() + wrapStep(getLoss() + grad);
  }

  /// The same by the ops of the standard form, on all columns of the gathered shards.
  std::string getStandardText() const {
    int64_t columns = ranks * shardRows;
    std::string table = llvm::formatv("tensor<{0}x{1}xf32>", columns, width);
    std::string logits = llvm::formatv("tensor<{0}x{1}xf32>", rows, columns);
    std::string all = llvm::formatv("tensor<{0}xf32>", columns);
    bool hasZLoss = vocabulary.zLoss > 0;
    std::string text = R"mlir(
  %zero = arith.constant 0.0 : f32
  %table = shard.all_gather %t on @vocab grid_axes = [0] gather_axis = 0 : $shard -> $table
  %e0 = tensor.empty() : $logits
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : $logits) -> $logits
  %y = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %table : $x, $table) outs(%z0 : $logits) -> $logits
)mlir";
    if (hasBias)
      text += R"mlir(
  %bias = shard.all_gather %b on @vocab grid_axes = [0] gather_axis = 0 : $bias -> $all
  %p, %lse = moe.log_softmax %y bias %bias $voc : ($logits, $all) -> ($logits, $rows)
)mlir";
    else
      text += "  %p, %lse = moe.log_softmax %y $voc : ($logits) -> ($logits, $rows)\n";
    text += R"mlir(
  %losses = moe.nll %p, %lse, %labels $voc : ($logits, $rows, $labels) -> $rows
  %dp, %dlse = moe.nll_grad %g, %lse, %labels $voc : ($rows, $rows, $labels) -> ($logits, $rows)
)mlir";
    text += std::string("  %dy") + (hasBias ? ", %dbias" : "") + " = moe.log_softmax_grad %dp, %p, %lse" +
            (hasZLoss ? " lse_cotangent %dlse" : "") + " $voc : ($logits, $logits, $rows" +
            (hasZLoss ? ", $rows" : "") + (hasBias ? ") -> ($logits, $all)\n" : ") -> $logits\n");
    text += R"mlir(
  %e1 = tensor.empty() : $x
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : $x) -> $x
  %dx = linalg.matmul ins(%dy, %table : $logits, $table) outs(%z1 : $x) -> $x
  %e2 = tensor.empty() : $table
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : $table) -> $table
  %dtable = linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%dy, %x : $logits, $x) outs(%z2 : $table) -> $table
  %dt = shard.reduce_scatter %dtable on @vocab grid_axes = [0] scatter_axis = 0 : $table -> $shard
)mlir";
    if (hasBias)
      text += "  %db = shard.reduce_scatter %dbias on @vocab grid_axes = [0] scatter_axis = 0 : $all -> $bias\n";
    for (auto [name, type] : {std::pair<StringRef, std::string>{"$shard", getTable()},
                              {"$table", table},
                              {"$logits", logits},
                              {"$labels", getLabels()},
                              {"$bias", getBias()},
                              {"$rows", getRows()},
                              {"$all", all},
                              {"$voc", vocabulary.getAttribute()},
                              {"$x", getX()}})
      replaceAll(text, name, type);
    return "#mk = affine_map<(m, n, k) -> (m, k)>\n#nk = affine_map<(m, n, k) -> (n, k)>\n"
           "#mn = affine_map<(m, n, k) -> (m, n)>\n#km = affine_map<(m, n, k) -> (k, m)>\n"
           "#kn = affine_map<(m, n, k) -> (k, n)>\n" +
           getGrid() + wrapStep(text);
  }

  /// A function with `body`, which makes %losses, %lse, %dx, %dt and %db.
  std::string wrapStep(StringRef body) const {
    std::string types =
        getRows() + ", " + getRows() + ", " + getX() + ", " + getTable() + (hasBias ? ", " + getBias() : "");
    return "func.func @f(" + getParameters() + ", %g: " + getRows() + ") -> (" + types + ") {\n" + body.str() +
           "  return %losses, %lse, %dx, %dt" + (hasBias ? ", %db" : "") + " : " + types + "\n}\n";
  }

  /// What the losses and lse of `arguments` are, from the definition: of a rank, [losses, lse].
  RankNumbers getExpected(const RankNumbers &arguments) const {
    RankNumbers expected;
    for (const std::vector<Numbers> &ofRank : arguments) {
      const Numbers &labels = ofRank[hasBias ? 3 : 2];
      Numbers losses, all;
      for (int64_t i = 0; i < rows; ++i) {
        Numbers logits;
        for (int64_t v = 0; v < vocabulary.size; ++v) {
          const std::vector<Numbers> &owner = arguments[v / shardRows];
          double logit = hasBias ? owner[2][v % shardRows] : 0;
          for (int64_t h = 0; h < width; ++h)
            logit += ofRank[0][i * width + h] * owner[1][v % shardRows * width + h];
          logits.push_back(logit);
        }
        auto [lse, loss] = vocabulary.getLse(logits, static_cast<int64_t>(labels[i]));
        losses.push_back(loss);
        all.push_back(lse);
      }
      expected.push_back({losses, all});
    }
    return expected;
  }

  static void replaceAll(std::string &text, StringRef from, StringRef to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }

private:
  std::string getLoss() const {
    return "  %losses, %lse = moe.vocab_loss %x, %t, %labels" + std::string(hasBias ? " bias %b" : "") + " on @vocab " +
           vocabulary.getAttribute() + " : (" + getX() + ", " + getTable() + ", " + getLabels() +
           (hasBias ? ", " + getBias() : "") + ") -> (" + getRows() + ", " + getRows() + ")\n";
  }
};

class VocabularyTest : public RanksTest {
protected:
  /// x, table, bias if any, and labels of each rank; every third label is ignored.
  RankNumbers getArguments(const VocabularyCase &test) {
    RankNumbers arguments;
    int64_t next = 1;
    for (int rank = 0; rank < test.ranks; ++rank) {
      arguments.push_back({getRandom(test.rows * test.width), getRandom(test.shardRows * test.width)});
      for (double &number : arguments.back()[0])
        number *= 3;
      if (test.hasBias)
        arguments.back().push_back(getRandom(test.shardRows));
      Numbers labels;
      for (int64_t i = 0; i < test.rows; ++i, next += 5)
        labels.push_back(static_cast<double>(next % 3 == 0 ? test.vocabulary.ignored : next % test.vocabulary.size));
      arguments.back().push_back(labels);
    }
    return arguments;
  }

  /// The same with a cotangent of each token.
  RankNumbers getStepArguments(const VocabularyCase &test) {
    RankNumbers arguments = getArguments(test);
    for (std::vector<Numbers> &ofRank : arguments)
      ofRank.push_back(getRandom(test.rows));
    return arguments;
  }

  void expectAllNear(const RankNumbers &actual, const RankNumbers &expected, double tolerance) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t rank = 0; rank < actual.size(); ++rank)
      for (size_t index = 0; index < expected[rank].size(); ++index) {
        SCOPED_TRACE(llvm::formatv("rank {0}, result {1}", rank, index).str());
        expectNear(actual[rank][index], expected[rank][index], tolerance);
      }
  }

  void expectAllEqual(const RankTensors &actual, const RankTensors &expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t rank = 0; rank < actual.size(); ++rank)
      for (size_t index = 0; index < expected[rank].size(); ++index)
        EXPECT_TRUE(areEqual(actual[rank][index], expected[rank][index])) << "rank " << rank << ", result " << index;
  }
};

/// Every option alone, and all of them, on tables that do not divide by the ranks.
inline std::vector<VocabularyCase> getVocabularyCases() {
  std::vector<VocabularyCase> cases;
  for (auto [ranks, shardRows] : {std::pair(1, 7), {1, 9}, {2, 4}, {3, 3}, {4, 2}, {4, 3}})
    for (auto [hasBias, smoothing, zLoss, softcap] : {std::tuple(false, 0.0f, 0.0f, 0.0f),
                                                      {true, 0.0f, 0.0f, 0.0f},
                                                      {false, 0.1f, 0.0f, 0.0f},
                                                      {false, 0.0f, 0.01f, 0.0f},
                                                      {false, 0.0f, 0.0f, 1.5f},
                                                      {true, 0.3f, 0.25f, 2.0f}})
      cases.push_back({ranks, 3, 2, shardRows, hasBias, {7, hasBias ? -1 : -100, smoothing, zLoss, softcap}});
  return cases;
}

} // namespace mlir::plateau::test

#endif // PLATEAU_TEST_UNIT_INTERPRETER_VOCABULARYTEST_H
