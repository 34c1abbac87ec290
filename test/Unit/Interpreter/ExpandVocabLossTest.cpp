//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What moe-expand-vocab-loss and moe-expand-embedding make of their ops, against the ops themselves and against
// definitions.
//===----------------------------------------------------------------------===//

#include "VocabularyTest.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class ExpandVocabLoss : public VocabularyTest {
protected:
  func::FuncOp expand(StringRef text, StringRef form, int64_t tileBytes = 1) {
    func::FuncOp function = parse(text);
    PassManager manager(&context);
    moe::MoEExpandVocabLossOptions loss;
    loss.form = form.str();
    manager.addNestedPass<func::FuncOp>(moe::createMoEExpandVocabLoss(loss));
    moe::MoEExpandEmbeddingOptions embedding;
    embedding.tileBytes = tileBytes;
    manager.addNestedPass<func::FuncOp>(moe::createMoEExpandEmbedding(embedding));
    EXPECT_TRUE(succeeded(manager.run(*modules.back()))) << errors;
    function.walk([](Operation *op) {
      EXPECT_FALSE((isa<moe::VocabLossOp, moe::VocabLossGradOp, moe::EmbeddingOp, moe::EmbeddingGradOp>(op)));
    });
    return function;
  }

  template <typename OpTy>
  static int64_t count(func::FuncOp function) {
    int64_t found = 0;
    function.walk([&](OpTy) { ++found; });
    return found;
  }
};

constexpr StringLiteral forms[] = {"standard", "in-place", "vocab-parallel"};

TEST_F(ExpandVocabLoss, EachFormGivesLossAndGradients) {
  for (const VocabularyCase &test : getVocabularyCases())
    for (StringRef form : forms) {
      SCOPED_TRACE((form + "\n" + test.getStepText()).str());
      RankNumbers arguments = getStepArguments(test);
      expectAllNear(evaluateOnRanks(expand(test.getStepText(), form), arguments),
                    evaluateOnRanks(test.getStepText(), arguments), 1e-13);
    }
}

TEST_F(ExpandVocabLoss, EachFormGivesTheLossAlone) {
  for (const VocabularyCase &test : getVocabularyCases())
    for (StringRef form : forms) {
      SCOPED_TRACE((form + "\n" + test.getLossText()).str());
      RankNumbers arguments = getArguments(test);
      expectAllNear(evaluateOnRanks(expand(test.getLossText(), form), arguments), test.getExpected(arguments), 1e-12);
    }
}

// The op takes the steps of its standard form, so no bit of an exact value differs.
TEST_F(ExpandVocabLoss, StandardFormHasTheExactValue) {
  for (const VocabularyCase &test : getVocabularyCases()) {
    SCOPED_TRACE(test.getStepText());
    RankNumbers arguments = getStepArguments(test);
    expectAllEqual(evaluateOnRanks(expand(test.getStepText(), "standard"), Mode::Exact, arguments),
                   evaluateOnRanks(parse(test.getStepText()), Mode::Exact, arguments));
  }
}

// One row; none; and one column.
TEST_F(ExpandVocabLoss, SmallestShapes) {
  for (StringRef form : forms)
    for (auto [ranks, rows, size] : {std::tuple(1, 1, 3), {2, 1, 3}, {2, 0, 3}, {1, 0, 3}, {2, 3, 1}, {1, 3, 1}}) {
      VocabularyCase test = {ranks, rows, 2, llvm::divideCeil(size, ranks), true, {size, -100, 0.1f, 0.1f, 2}};
      SCOPED_TRACE((form + "\n" + test.getStepText()).str());
      RankNumbers arguments = getStepArguments(test);
      expectAllNear(evaluateOnRanks(expand(test.getStepText(), form), arguments),
                    evaluateOnRanks(test.getStepText(), arguments), 1e-13);
    }
}

// Each pair has logits of its own, whatever the order; a gradient whose lse is an argument multiplies for itself.
TEST_F(ExpandVocabLoss, PairsByTheirLse) {
  constexpr StringLiteral text = R"mlir(
    func.func @f(%x: tensor<3x2xf32>, %t: tensor<4x2xf32>, %l: tensor<3xi32>, %g: tensor<3xf32>, %given: tensor<3xf32>)
        -> (tensor<3xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
      %y = arith.negf %x : tensor<3x2xf32>
      %a, %a_lse = moe.vocab_loss %x, %t, %l vocabulary<size = 4> : (tensor<3x2xf32>, tensor<4x2xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
      %b, %b_lse = moe.vocab_loss %y, %t, %l vocabulary<size = 4> : (tensor<3x2xf32>, tensor<4x2xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
      %da, %ta = moe.vocab_loss_grad %g, %x, %t, %l, %a_lse vocabulary<size = 4> : (tensor<3xf32>, tensor<3x2xf32>, tensor<4x2xf32>, tensor<3xi32>, tensor<3xf32>) -> (tensor<3x2xf32>, tensor<4x2xf32>)
      %db, %tb = moe.vocab_loss_grad %a, %y, %t, %l, %b_lse vocabulary<size = 4> : (tensor<3xf32>, tensor<3x2xf32>, tensor<4x2xf32>, tensor<3xi32>, tensor<3xf32>) -> (tensor<3x2xf32>, tensor<4x2xf32>)
      %dc, %tc = moe.vocab_loss_grad %g, %x, %t, %l, %given vocabulary<size = 4> : (tensor<3xf32>, tensor<3x2xf32>, tensor<4x2xf32>, tensor<3xi32>, tensor<3xf32>) -> (tensor<3x2xf32>, tensor<4x2xf32>)
      %losses = arith.addf %a, %b : tensor<3xf32>
      return %losses, %da, %db, %dc : tensor<3xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
    })mlir";
  std::vector<double> x = getRandom(6), table = getRandom(8), given;
  for (int row = 0; row < 3; ++row) { // What a loss of the same operands would have given.
    double sum = 0;
    for (int column = 0; column < 4; ++column)
      sum += std::exp(x[2 * row] * table[2 * column] + x[2 * row + 1] * table[2 * column + 1]);
    given.push_back(std::log(sum));
  }
  RankNumbers arguments = {{x, table, {0, 3, -100}, getRandom(3), given}};
  for (StringRef form : forms) {
    SCOPED_TRACE(form.str());
    expectAllNear(evaluateOnRanks(expand(text, form), arguments), evaluateOnRanks(text, arguments), 1e-13);
  }
}

TEST_F(ExpandVocabLoss, RefusesAFormItDoesNotKnow) {
  parse(VocabularyCase{1, 3, 2, 4, false, {4}}.getLossText());
  PassManager manager(&context);
  moe::MoEExpandVocabLossOptions options;
  options.form = "dense";
  manager.addNestedPass<func::FuncOp>(moe::createMoEExpandVocabLoss(options));
  EXPECT_TRUE(failed(manager.run(*modules.back())));
  EXPECT_EQ(errors, "moe-expand-vocab-loss: form is \"dense\": it must be standard, in-place or vocab-parallel\n");
}

// The label of the last row is no column.
TEST_F(ExpandVocabLoss, LabelsOutsideAreErrorsOfTheirRank) {
  VocabularyCase test = {2, 2, 1, 2, false, {3}};
  for (StringRef form : forms) {
    func::FuncOp function = expand(test.getLossText(), form);
    errors.clear();
    EXPECT_TRUE(failed(tryOnRanks(function, Mode::Float64, {{{1, 2}, {3, 4}, {0, 1}}, {{1, 2}, {3, 4}, {2, 3}}})));
    EXPECT_TRUE(StringRef(errors).contains("rank 1: row 1 has label 3")) << errors;
  }
}

/// Look-ups and their adjoint on three ranks, 5 rows of the table in shards of 2, 7 tokens a rank.
constexpr StringLiteral lookUp = R"mlir(
    shard.grid @vocab(shape = 3)
    func.func @f(%t: tensor<2x3xf32>, %ids: tensor<7xi32>, %d: tensor<7x3xf32>) -> (tensor<7x3xf32>, tensor<2x3xf32>) {
      %x = moe.embedding %t, %ids on @vocab size(5) : (tensor<2x3xf32>, tensor<7xi32>) -> tensor<7x3xf32>
      %dt = moe.embedding_grad %d, %ids on @vocab size(5) : (tensor<7x3xf32>, tensor<7xi32>) -> tensor<2x3xf32>
      return %x, %dt : tensor<7x3xf32>, tensor<2x3xf32>
    })mlir";

// A row of the group's three ranks has 36 bytes: tiles of 1, 2 (no: 7 = 4 + 3, so 2, 2, 2, 1), 3, 4 and 7 tokens.
TEST_F(ExpandVocabLoss, EmbeddingByTiles) {
  RankNumbers arguments;
  for (int rank = 0; rank < 3; ++rank) {
    Numbers ids;
    for (int i = 0; i < 7; ++i)
      ids.push_back((3 * i + rank) % 5);
    arguments.push_back({getRandom(6), ids, getRandom(21)});
  }
  struct Tiles {
    int64_t bytes, loops, gathersOutside;
  };
  // Loops of both ops, and what is outside them: ids for the look-up, ids and rows for the gradient.
  for (Tiles tiles : {Tiles{1, 2, 0}, {71, 2, 0}, {72, 2, 3}, {108, 2, 3}, {144, 0, 6}, {251, 0, 6}, {252, 0, 3}}) {
    SCOPED_TRACE(tiles.bytes);
    func::FuncOp function = expand(lookUp, "standard", tiles.bytes);
    EXPECT_EQ(count<scf::ForOp>(function), tiles.loops);
    int64_t outside = 0;
    function.walk([&](Operation *op) {
      if (op->getName().getStringRef() == "shard.all_gather")
        outside += !op->getParentOfType<scf::ForOp>();
    });
    EXPECT_EQ(outside, tiles.gathersOutside);
    expectAllNear(evaluateOnRanks(function, arguments), evaluateOnRanks(lookUp, arguments), 1e-14);
    expectAllEqual(evaluateOnRanks(function, Mode::Exact, arguments),
                   evaluateOnRanks(parse(lookUp), Mode::Exact, arguments));
  }
}
} // namespace
