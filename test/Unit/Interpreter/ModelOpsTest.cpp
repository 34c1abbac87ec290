//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The moe ops in float64 on small cases computed by hand, and the data errors they report.
//===----------------------------------------------------------------------===//

#include "InterpreterTest.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class ModelOps : public InterpreterTest {};

constexpr StringLiteral embedding = R"mlir(
    func.func @f(%t: tensor<3x2xf32>, %ids: tensor<4xi32>, %dx: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<3x2xf32>) {
      %x = moe.embedding %t, %ids : (tensor<3x2xf32>, tensor<4xi32>) -> tensor<4x2xf32>
      %dt = moe.embedding_grad %dx, %ids : (tensor<4x2xf32>, tensor<4xi32>) -> tensor<3x2xf32>
      return %x, %dt : tensor<4x2xf32>, tensor<3x2xf32>
    })mlir";

TEST_F(ModelOps, Embedding) {
  auto results = evaluate(embedding, {{0, 1, 10, 11, 20, 21}, {2, 0, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}});
  EXPECT_EQ(results[0], Numbers({20, 21, 0, 1, 20, 21, 20, 21}));
  EXPECT_EQ(results[1], Numbers({3, 4, 0, 0, 13, 16}));
}

TEST_F(ModelOps, EmbeddingRefusesIds) {
  EXPECT_EQ(getErrors(embedding, {{0, 1, 10, 11, 20, 21}, {2, 0, 3, 2}, Numbers(8, 0)}),
            "'moe.embedding' op rank 0: row 2 has token id 3, but the table has 3 rows\n");
  EXPECT_EQ(getErrors(embedding, {{0, 1, 10, 11, 20, 21}, {2, -1, 3, 2}, Numbers(8, 0)}),
            "'moe.embedding' op rank 0: row 1 has token id -1, but the table has 3 rows\n");
}

TEST_F(ModelOps, RMSNorm) {
  // mean(3², 4²) = 12.5; with epsilon 3.5 the root is 4. The second row is zero: 1 / sqrt(3.5).
  auto results = evaluate(R"mlir(
    func.func @f(%x: tensor<2x2xf32>, %w: tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>) {
      %y, %inverse = moe.rms_norm %x, %w epsilon(3.5)
          : (tensor<2x2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
      return %y, %inverse : tensor<2x2xf32>, tensor<2xf32>
    })mlir",
                          {{3, 4, 0, 0}, {1, 2}});
  EXPECT_EQ(results[0], Numbers({0.75, 2, 0, 0}));
  expectNear(results[1], {0.25, 1 / std::sqrt(3.5)});
}

TEST_F(ModelOps, RotaryTable) {
  // Phases by the definition: f32(position) · f32(theta^(-j/2)), rounded to f32: 0, 1, 0.01f, 1048575, 10485.75.
  auto results = evaluate(R"mlir(
    func.func @f(%p: tensor<3xi32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
      %cos, %sin = moe.rotary_table %p theta(1.0e+04) : (tensor<3xi32>) -> (tensor<3x2xf32>, tensor<3x2xf32>)
      return %cos, %sin : tensor<3x2xf32>, tensor<3x2xf32>
    })mlir",
                          {{0, 1, 1048575}});
  expectNear(results[0], {1, 1, 0.5403023058681398, 0.9999500004189004, 0.7880422395289275, 0.632300167030053});
  expectNear(results[1], {0, 0, 0.8414709848078965, 0.009999833110660423, -0.6156211730587509, -0.7747234982713297});
}

TEST_F(ModelOps, Rotary) {
  // One head (1, 2 | 3, 4), turned by 90 degrees and by none.
  auto results = evaluate(R"mlir(
    func.func @f(%x: tensor<1x1x4xf32>, %c: tensor<1x2xf32>, %s: tensor<1x2xf32>)
        -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
      %y = moe.rotary %x, %c, %s : (tensor<1x1x4xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x1x4xf32>
      %z = moe.rotary %x, %c, %s inverse : (tensor<1x1x4xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x1x4xf32>
      return %y, %z : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    })mlir",
                          {{1, 2, 3, 4}, {0, 1}, {1, 0}});
  EXPECT_EQ(results[0], Numbers({-3, 2, 1, 4}));
  EXPECT_EQ(results[1], Numbers({3, 2, -1, 4}));
}

constexpr StringLiteral attention = R"mlir(
    func.func @f(%q: tensor<3x2x1xf32>, %k: tensor<3x1x1xf32>, %v: tensor<3x1x1xf32>, %s: tensor<3xi32>)
        -> (tensor<3x2x1xf32>, tensor<3x2xf32>) {
      %o, %lse = moe.attention %q, %k, %v, %s scale(2.0) : (tensor<3x2x1xf32>, tensor<3x1x1xf32>, tensor<3x1x1xf32>,
          tensor<3xi32>) -> (tensor<3x2x1xf32>, tensor<3x2xf32>)
      return %o, %lse : tensor<3x2x1xf32>, tensor<3x2xf32>
    })mlir";

TEST_F(ModelOps, Attention) {
  // Keys 0, ln 3 / 2 and 0: with query 1 and scale 2 the second weighs 3 times the first; with query 0 all weigh the
  // same. The third token is a document of its own.
  double key = std::log(3.0) / 2;
  auto results = evaluate(attention, {{1, 0, 1, 0, 1, 0}, {0, key, 0}, {8, 16, 5}, {0, 0, 2}});
  expectNear(results[0], {8, 8, 14, 12, 5, 5});
  expectNear(results[1], {0, 0, std::log(4.0), std::log(2.0), 0, 0});
}

TEST_F(ModelOps, AttentionOfLargeScores) {
  auto results = evaluate(attention, {{1000, 0, 1000, 0, 1, 0}, {1, 2, 0}, {8, 16, 5}, {0, 0, 2}});
  expectNear(results[0], {8, 8, 16, 12, 5, 5});
  expectNear(results[1], {2000, 0, 4000, std::log(2.0), 0, 0});
}

TEST_F(ModelOps, AttentionRefusesStarts) {
  EXPECT_EQ(getErrors(attention, {Numbers(6, 0), Numbers(3, 0), Numbers(3, 0), {0, 2, 2}}),
            "'moe.attention' op rank 0: row 1 has document start 2, which is not in 0 ... 1\n");
  EXPECT_EQ(getErrors(attention, {Numbers(6, 0), Numbers(3, 0), Numbers(3, 0), {0, -1, 2}}),
            "'moe.attention' op rank 0: row 1 has document start -1, which is not in 0 ... 1\n");
}

TEST_F(ModelOps, LogSoftmax) {
  double infinity = std::numeric_limits<double>::infinity();
  auto results = evaluate(R"mlir(
    func.func @f(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
      %y, %y_lse = moe.log_softmax %x vocabulary<size = 2>
        : (tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3xf32>)
      return %y : tensor<3x2xf32>
    })mlir",
                          {{0, std::log(3.0), 1e4, 1e4, 7, -infinity}});
  expectNear(Numbers(results[0].begin(), results[0].begin() + 4),
             {-std::log(4.0), std::log(0.75), -std::log(2.0), -std::log(2.0)});
  EXPECT_EQ(results[0][4], 0);
  EXPECT_EQ(results[0][5], -infinity);
}

constexpr StringLiteral loss = R"mlir(
    func.func @f(%p: tensor<3x2xf32>, %p_lse: tensor<3xf32>, %labels: tensor<3xi32>)
        -> (tensor<f32>, tensor<f32>, tensor<3x2xf32>) {
      %count = moe.count_labels %labels ignore_index(-100) : tensor<3xi32>
      %loss_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 2>
        : (tensor<3x2xf32>, tensor<3xf32>, tensor<3xi32>) -> tensor<3xf32>
      %loss = moe.mean_loss %loss_rows over %count : tensor<3xf32>
      %two = arith.constant dense<2.0> : tensor<f32>
      %two_rows = moe.mean_loss_grad %two over %count : tensor<3xf32>
      %dp, %dp_lse = moe.nll_grad %two_rows, %p_lse, %labels vocabulary<size = 2>
        : (tensor<3xf32>, tensor<3xf32>, tensor<3xi32>) -> (tensor<3x2xf32>, tensor<3xf32>)
      return %count, %loss, %dp : tensor<f32>, tensor<f32>, tensor<3x2xf32>
    })mlir";

TEST_F(ModelOps, NegativeLogLikelihood) {
  auto results = evaluate(loss, {{-1, -2, -3, -4, -5, -6}, {7, 8, 9}, {1, -100, 0}});
  EXPECT_EQ(results[0], Numbers({2}));
  EXPECT_EQ(results[1], Numbers({3.5}));
  EXPECT_EQ(results[2], Numbers({0, -1, 0, 0, -1, 0}));
}

TEST_F(ModelOps, NegativeLogLikelihoodOfNothing) {
  auto results = evaluate(loss, {{-1, -2, -3, -4, -5, -6}, {7, 8, 9}, {-100, -100, -100}});
  EXPECT_EQ(results[0], Numbers({0}));
  EXPECT_EQ(results[1], Numbers({0}));
  EXPECT_EQ(results[2], Numbers(6, 0));
}

TEST_F(ModelOps, NegativeLogLikelihoodRefusesLabels) {
  EXPECT_EQ(getErrors(loss, {Numbers(6, 0), Numbers(3, 0), {1, 2, 0}}),
            "'moe.nll' op rank 0: row 1 has label 2, which is neither -100 (ignored) nor one of the 2 columns\n");
  EXPECT_EQ(getErrors(loss, {Numbers(6, 0), Numbers(3, 0), {1, 0, -1}}),
            "'moe.nll' op rank 0: row 2 has label -1, which is neither -100 (ignored) nor one of the 2 columns\n");
}

TEST_F(ModelOps, Groups) {
  auto results = evaluate(R"mlir(
    #w = #moe.member<<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>, offset = 1, shape = [2, 2]>
    #b = #moe.member<<"b", decay = false, mean = 0.0 : f64, deviation = 1.0 : f64>, offset = 6, shape = [1]>
    func.func @f(%group: tensor<8xf32>, %c: tensor<2x2xf32>, %d: tensor<1xf32>)
        -> (tensor<2x2xf32>, tensor<1xf32>, tensor<8xf32>, tensor<f32>) {
      %w, %b = moe.unpack %group layout <[#w, #b]> : tensor<8xf32> -> tensor<2x2xf32>, tensor<1xf32>
      %g = moe.pack %c, %d into %group layout <[#w, #b]> : tensor<2x2xf32>, tensor<1xf32> into tensor<8xf32>
      %squares = moe.sum_squares %g layout <[#w, #b]> : tensor<8xf32>
      %norm = moe.grad_norm %squares : tensor<f64>
      return %w, %b, %g, %norm : tensor<2x2xf32>, tensor<1xf32>, tensor<8xf32>, tensor<f32>
    })mlir",
                          {{10, 11, 12, 13, 14, 15, 16, 17}, {1, 1, 1, 2}, {3}});
  EXPECT_EQ(results[0], Numbers({11, 12, 13, 14}));
  EXPECT_EQ(results[1], Numbers({16}));
  EXPECT_EQ(results[2], Numbers({10, 1, 1, 1, 2, 15, 3, 17}));
  EXPECT_EQ(results[3], Numbers({4}));
}

TEST_F(ModelOps, ClipFactor) {
  StringRef text = R"mlir(
    func.func @f(%norm: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %0 = moe.clip_factor %norm max_norm(2.0)
      %1 = moe.clip_factor %norm max_norm(0x7F800000)
      return %0, %1 : tensor<f32>, tensor<f32>
    })mlir";
  EXPECT_EQ(evaluate(text, {{8}}), std::vector<Numbers>({{0.25}, {1}}));
  EXPECT_EQ(evaluate(text, {{1}}), std::vector<Numbers>({{1}, {1}}));
  EXPECT_EQ(evaluate(text, {{0}}), std::vector<Numbers>({{1}, {1}}));
  for (double norm : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    auto results = evaluate(text, {{norm}});
    EXPECT_TRUE(std::isnan(results[0][0]));
    EXPECT_TRUE(std::isnan(results[1][0]));
  }
}

constexpr StringLiteral adamw = R"mlir(
    #w = #moe.member<<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>, offset = 0, shape = [1]>
    #b = #moe.member<<"b", decay = false, mean = 0.0 : f64, deviation = 1.0 : f64>, offset = 1, shape = [1]>
    func.func @f(%p: tensor<3xf32>, %g: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>, %factor: tensor<f32>,
                 %rate: tensor<f32>, %t: tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
      %p1, %m1, %v1 = moe.adamw %p, %g, %m, %v scale %factor learning_rate %rate step %t
          beta1(0.5) beta2(0.75) epsilon(0.5) weight_decay(0.5) layout <[#w, #b]>
          : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
      return %p1, %m1, %v1 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    })mlir";

TEST_F(ModelOps, AdamW) {
  // Step 1, g = 4 · 0.5 = 2: m = 1, v = 1; m / (1 - 0.5) = 2, sqrt(v / 0.25) = 2, so p loses 0.1 · 2 / 2.5 = 0.08, with
  // decay after 1 · (1 - 0.1 · 0.5) = 0.95. The third element is padding.
  auto results = evaluate(adamw, {{1, 1, 7}, {4, 4, 4}, {0, 0, 0}, {0, 0, 0}, {0.5}, {0.1}, {1}});
  expectNear(results[0], {0.87, 0.92, 7});
  expectNear(results[1], {1, 1, 0});
  expectNear(results[2], {1, 1, 0});
  // Step 2, g = 0: m = 0.5 of 0.75, v = 0.75 of 0.4375: a step of 0.1 · (2/3) / (sqrt(12/7) + 0.5).
  results = evaluate(adamw, {{1, 1, 7}, {0, 0, 0}, {1, 1, 0}, {1, 1, 0}, {0.5}, {0.1}, {2}});
  double change = 0.1 * (2.0 / 3) / (std::sqrt(12.0 / 7) + 0.5);
  expectNear(results[0], {0.95 - change, 1 - change, 7});
  expectNear(results[1], {0.5, 0.5, 0});
  expectNear(results[2], {0.75, 0.75, 0});
}

TEST_F(ModelOps, AdamWSkips) {
  auto results = evaluate(adamw, {{1, 1, 7}, {4, 4, 4}, {2, 3, 4}, {5, 6, 7}, {std::nan("")}, {0.1}, {1}});
  EXPECT_EQ(results[0], Numbers({1, 1, 7}));
  EXPECT_EQ(results[1], Numbers({2, 3, 4}));
  EXPECT_EQ(results[2], Numbers({5, 6, 7}));
}

TEST_F(ModelOps, AdamWWithMaster) {
  auto results = evaluate(R"mlir(
    #w = #moe.member<<"w", decay = false, mean = 0.0 : f64, deviation = 1.0 : f64>, offset = 0, shape = [1]>
    func.func @f(%p: tensor<1xbf16>, %g: tensor<1xbf16>, %m: tensor<1xf32>, %v: tensor<1xf32>, %master: tensor<1xf32>,
                 %factor: tensor<f32>, %rate: tensor<f32>, %t: tensor<i32>) -> (tensor<1xbf16>, tensor<1xf32>) {
      %p1, %m1, %v1, %master1 = moe.adamw %p, %g, %m, %v master %master scale %factor learning_rate %rate step %t
          beta1(0.5) beta2(0.75) epsilon(0.5) weight_decay(0.5) layout <[#w]>
          : tensor<1xbf16>, tensor<1xbf16>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
          -> tensor<1xbf16>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
      return %p1, %master1 : tensor<1xbf16>, tensor<1xf32>
    })mlir",
                          {{1}, {4}, {0}, {0}, {1.001}, {0.5}, {0.1}, {1}});
  expectNear(results[0], {0.921});
  expectNear(results[1], {0.921});
}

TEST_F(ModelOps, Checkpoint) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = moe.checkpoint recompute (%x = %a : tensor<2xf32>) -> tensor<2xf32> {
        %1 = arith.mulf %x, %x : tensor<2xf32>
        moe.yield %1 : tensor<2xf32>
      }
      %2 = arith.addf %0, %a : tensor<2xf32>
      return %2 : tensor<2xf32>
    })mlir",
                          {{3, -4}});
  EXPECT_EQ(results[0], Numbers({12, 12}));
}
} // namespace
