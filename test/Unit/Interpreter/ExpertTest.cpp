//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What experts compute on rows whose number follows from the routing, and on plain rows.
//===----------------------------------------------------------------------===//

#include "RanksTest.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class Expert : public RanksTest {};

// Four tokens with one slot; two experts.
constexpr StringLiteral grouped = R"mlir(
    !plan = !moe.plan<experts = 2, ranks = 1, tokens = 4, top_k = 1>
    shard.grid @experts(shape = 1)
    func.func @f(%rows: tensor<?x2xf32>, %w: tensor<2x2x3xf32>, %ids: tensor<4x1xi32>) -> tensor<?x3xf32> {
      %plan = moe.plan %ids on @experts : tensor<4x1xi32> -> !moe.plan<experts = 2, ranks = 1, tokens = 4, top_k = 1>
      %r = moe.grouped_matmul %rows, %w by %plan : (tensor<?x2xf32>, tensor<2x2x3xf32>, !plan) -> tensor<?x3xf32>
      return %r : tensor<?x3xf32>
    }
    func.func @transposed(%rows: tensor<?x2xf32>, %w: tensor<2x3x2xf32>, %ids: tensor<4x1xi32>) -> tensor<?x3xf32> {
      %plan = moe.plan %ids on @experts : tensor<4x1xi32> -> !moe.plan<experts = 2, ranks = 1, tokens = 4, top_k = 1>
      %r = moe.grouped_matmul %rows, %w transpose by %plan
          : (tensor<?x2xf32>, tensor<2x3x2xf32>, !plan) -> tensor<?x3xf32>
      return %r : tensor<?x3xf32>
    }
    func.func @grad(%a: tensor<?x2xf32>, %b: tensor<?x3xf32>, %ids: tensor<4x1xi32>) -> tensor<2x2x3xf32> {
      %plan = moe.plan %ids on @experts : tensor<4x1xi32> -> !moe.plan<experts = 2, ranks = 1, tokens = 4, top_k = 1>
      %r = moe.grouped_matmul_grad %a, %b by %plan : (tensor<?x2xf32>, tensor<?x3xf32>, !plan) -> tensor<2x2x3xf32>
      return %r : tensor<2x2x3xf32>
    }
    func.func @grad_onto(%a: tensor<?x2xf32>, %b: tensor<?x3xf32>, %ids: tensor<4x1xi32>, %init: tensor<2x2x3xf32>)
        -> tensor<2x2x3xf32> {
      %plan = moe.plan %ids on @experts : tensor<4x1xi32> -> !moe.plan<experts = 2, ranks = 1, tokens = 4, top_k = 1>
      %r = moe.grouped_matmul_grad %a, %b by %plan onto %init
          : (tensor<?x2xf32>, tensor<?x3xf32>, !plan, tensor<2x2x3xf32>) -> tensor<2x2x3xf32>
      return %r : tensor<2x2x3xf32>
    })mlir";

const Numbers threeRows = {1, 2, 3, 4, 5, 6},
              oneOfFirst = {1, 0, -1, 1}; // rows 0 of expert 0, rows 1 and 2 of expert 1
// Of expert 0: (1 2 3; 4 5 6). Of expert 1: (1 0 −1; 0 2 0).
const Numbers weights = {1, 2, 3, 4, 5, 6, 1, 0, -1, 0, 2, 0},
              transposedWeights = {1, 4, 2, 5, 3, 6, 1, 0, 0, 2, -1, 0};
const Numbers products = {9, 12, 15, 3, 8, -3, 5, 12, -5};
const Numbers cotangents = {1, 0, 2, 0, 1, 0, 1, 0, -1};
// (1; 2) · (1 0 2), and (3; 4) · (0 1 0) + (5; 6) · (1 0 −1).
const Numbers weightGradients = {1, 0, 2, 2, 0, 4, 5, 3, -5, 6, 4, -6};

TEST_F(Expert, GroupedMatmul) {
  EXPECT_EQ(evaluateOnRanks(parse(grouped), {{threeRows, weights, oneOfFirst}}), RankNumbers({{products}}));
  EXPECT_EQ(evaluateOnRanks(parse(grouped, "transposed"), {{threeRows, transposedWeights, oneOfFirst}}),
            RankNumbers({{products}}));
  EXPECT_EQ(evaluateOnRanks(parse(grouped, "grad"), {{threeRows, cotangents, oneOfFirst}}),
            RankNumbers({{weightGradients}}));
  Numbers onto = weightGradients;
  for (double &number : onto)
    number += 10;
  EXPECT_EQ(evaluateOnRanks(parse(grouped, "grad_onto"), {{threeRows, cotangents, oneOfFirst, Numbers(12, 10)}}),
            RankNumbers({{onto}}));
}

TEST_F(Expert, GroupedMatmulExactly) {
  auto toIntegers = [](const Numbers &numbers) { return std::vector<int64_t>(numbers.begin(), numbers.end()); };
  auto run = [&](StringRef name, std::vector<Numbers> arguments) {
    return getIntegers(evaluateOnRanks(parse(grouped, name), Mode::Exact, {std::move(arguments)})[0][0]);
  };
  EXPECT_EQ(run("f", {threeRows, weights, oneOfFirst}), toIntegers(products));
  EXPECT_EQ(run("transposed", {threeRows, transposedWeights, oneOfFirst}), toIntegers(products));
  EXPECT_EQ(run("grad", {threeRows, cotangents, oneOfFirst}), toIntegers(weightGradients));
}

TEST_F(Expert, ExpertsWithoutRows) {
  Numbers none(4, -1), allToSecond(4, 1);
  EXPECT_EQ(evaluateOnRanks(parse(grouped), {{Numbers(), weights, none}}), RankNumbers({{Numbers()}}));
  EXPECT_EQ(evaluateOnRanks(parse(grouped, "grad"), {{Numbers(), Numbers(), none}}), RankNumbers({{Numbers(12, 0)}}));
  Numbers gradients = evaluateOnRanks(parse(grouped, "grad"), {{Numbers(8, 1), Numbers(12, 1), allToSecond}})[0][0];
  EXPECT_EQ(gradients, Numbers({0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4}));
}

TEST_F(Expert, RefusesOtherRows) {
  EXPECT_EQ(getErrorsOnRanks(grouped, {{Numbers(4), weights, oneOfFirst}}),
            "'moe.grouped_matmul' op rank 0: has an operand of 2 rows, and by the plan the rank receives 3\n");
  func::FuncOp grad = parse(grouped, "grad");
  errors.clear();
  EXPECT_TRUE(failed(tryOnRanks(grad, Mode::Float64, {{threeRows, Numbers(6), oneOfFirst}})));
  EXPECT_EQ(errors, "'moe.grouped_matmul_grad' op rank 0: has operands of 3 and of 2 rows\n");
}

// --- Row by row ---

constexpr StringLiteral rowWise = R"mlir(
    func.func @f(%x: tensor<?x4xbf16>) -> tensor<?x2xbf16> {
      %r = moe.swiglu %x : tensor<?x4xbf16> -> tensor<?x2xbf16>
      return %r : tensor<?x2xbf16>
    }
    func.func @swiglu_grad(%d: tensor<?x2xf32>, %x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %r = moe.swiglu_grad %d, %x : tensor<?x2xf32>, tensor<?x4xf32>
      return %r : tensor<?x4xf32>
    }
    func.func @scale(%x: tensor<?x4xf32>, %p: tensor<?xf32>) -> tensor<?x4xf32> {
      %r = moe.scale_rows %x, %p : tensor<?x4xf32>, tensor<?xf32>
      return %r : tensor<?x4xf32>
    }
    func.func @dot(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<?xf32> {
      %r = moe.row_dot %a, %b : tensor<?x4xf32> -> tensor<?xf32>
      return %r : tensor<?xf32>
    }
    func.func @add(%a: tensor<?x4xbf16>, %b: tensor<?x4xf32>) -> tensor<?x4xbf16> {
      %wide = arith.extf %a : tensor<?x4xbf16> to tensor<?x4xf32>
      %sum = arith.addf %wide, %b : tensor<?x4xf32>
      %r = arith.truncf %sum : tensor<?x4xf32> to tensor<?x4xbf16>
      return %r : tensor<?x4xbf16>
    })mlir";

// silu(ln 3) = ln 3 · 3/4, and its derivative is 3/4 · (1 + ln 3 / 4). Ranks of two rows, of one and of none.
TEST_F(Expert, SwiGLU) {
  double log3 = std::log(3);
  auto results = evaluateOnRanks(parse(rowWise), {{{0, log3, 5, 2, log3, -log3, 4, 1}}, {{0, 0, 1, 1}}, {{}}});
  expectNear(results[0][0], {0, 1.5 * log3, 3 * log3, -0.25 * log3});
  EXPECT_EQ(results[1][0], Numbers({0, 0}));
  EXPECT_EQ(results[2][0], Numbers());
  auto gradients = evaluateOnRanks(parse(rowWise, "swiglu_grad"), {{{10, 4}, {0, log3, 5, 2}}, {{}, {}}});
  expectNear(gradients[0][0], {25, 6 * (1 + log3 / 4), 0, 3 * log3});
  EXPECT_EQ(gradients[1][0], Numbers());
}

TEST_F(Expert, RowsAndNumbers) {
  EXPECT_EQ(evaluateOnRanks(parse(rowWise, "scale"), {{{1, 2, 3, 4, 5, 6, 7, 8}, {10, -1}}, {{}, {}}}),
            RankNumbers({{{10, 20, 30, 40, -5, -6, -7, -8}}, {{}}}));
  EXPECT_EQ(evaluateOnRanks(parse(rowWise, "dot"), {{{1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1, 1, 0, 0, 1, -1}}, {{}, {}}}),
            RankNumbers({{{10, -1}}, {{}}}));
  EXPECT_EQ(evaluateOnRanks(parse(rowWise, "add"), {{{1, 2, 3, 4}, {10, 20, 30, 40}}, {{}, {}}}),
            RankNumbers({{{11, 22, 33, 44}}, {{}}}));
}

TEST_F(Expert, RefusesRowsThatDoNotFit) {
  for (auto [name, op, arguments] : {std::tuple<StringRef, StringRef, std::vector<Numbers>>(
                                         "swiglu_grad", "moe.swiglu_grad", {Numbers(2), Numbers(8)}),
                                     {"scale", "moe.scale_rows", {Numbers(4), Numbers(2)}},
                                     {"dot", "moe.row_dot", {Numbers(4), Numbers(8)}},
                                     {"add", "arith.addf", {Numbers(4), Numbers(8)}}}) {
    func::FuncOp function = parse(rowWise, name);
    errors.clear();
    EXPECT_TRUE(failed(tryOnRanks(function, Mode::Float64, {arguments})));
    EXPECT_EQ(errors, ("'" + op + "' op rank 0: has operands of 1 and of 2 rows\n").str());
  }
}

TEST_F(Expert, OtherOpsNeedStaticShapes) {
  EXPECT_EQ(getErrorsOnRanks(R"mlir(
    func.func @f(%x: tensor<?xf32>, %init: tensor<f32>) -> tensor<f32> {
      %r = linalg.reduce ins(%x : tensor<?xf32>) outs(%init : tensor<f32>) dimensions = [0]
          (%a: f32, %b: f32) { %c = arith.addf %a, %b : f32 linalg.yield %c : f32 }
      return %r : tensor<f32>
    })mlir",
                             {{{1, 2}, {0}}}),
            "'linalg.reduce' op has an operand of type tensor<?xf32>: the interpreter needs static shapes\n");
}

TEST_F(Expert, ExactRowsAreHashesOfTheirs) {
  for (auto [name, columns, changed] : {std::tuple("f", 2, 0), {"swiglu_grad", 4, 0}, {"swiglu_grad", 4, 1}}) {
    func::FuncOp function = parse(rowWise, name);
    std::vector<Numbers> arguments;
    for (Type type : function.getArgumentTypes())
      arguments.push_back(getRandom(3 * cast<RankedTensorType>(type).getDimSize(1)));
    auto before = evaluateOnRanks(function, Mode::Exact, {arguments})[0][0];
    Numbers &numbers = arguments[changed];
    auto lastRow = numbers.end() - numbers.size() / 3;
    std::vector<Numbers> alone; // the middle row
    for (const Numbers &argument : arguments)
      alone.emplace_back(argument.begin() + argument.size() / 3, argument.begin() + 2 * argument.size() / 3);
    *lastRow += 1;
    auto after = evaluateOnRanks(function, Mode::Exact, {arguments})[0][0];
    auto middle = evaluateOnRanks(function, Mode::Exact, {alone})[0][0];
    for (int i = 0; i < 3 * columns; ++i)
      EXPECT_EQ(before.get<Field>()[i] == after.get<Field>()[i], i < 2 * columns) << name << ", " << i;
    EXPECT_EQ(before.get<Field>().slice(columns, columns), middle.get<Field>());
  }
}

TEST_F(Expert, RowsAndNumbersExactly) {
  auto run = [&](StringRef name, std::vector<Numbers> arguments) {
    return getIntegers(evaluateOnRanks(parse(rowWise, name), Mode::Exact, {std::move(arguments)})[0][0]);
  };
  EXPECT_EQ(run("scale", {{1, 2, 3, 4}, {-2}}), std::vector<int64_t>({-2, -4, -6, -8}));
  EXPECT_EQ(run("dot", {{1, 2, 3, 4}, {5, 0, 0, -1}}), std::vector<int64_t>({1}));
  EXPECT_EQ(run("add", {{1, 2, 3, 4}, {5, 0, 0, -1}}), std::vector<int64_t>({6, 2, 3, 3}));
}

TEST_F(Expert, Adjoints) {
  checkAdjointOnRanks(rowWise, {{getRandom(12)}, {getRandom(4)}, {{}}});
  auto check = [&](StringRef name, const RankNumbers &arguments) {
    SCOPED_TRACE(name.str());
    func::FuncOp function = parse(rowWise, name), adjoint = buildAdjoint(function);
    ASSERT_TRUE(adjoint);
    EXPECT_LT(getGradientError(function, adjoint, arguments), 1e-8);
  };
  check("scale", {{getRandom(12), getRandom(3)}, {{}, {}}, {getRandom(4), getRandom(1)}});
  check("dot", {{getRandom(12), getRandom(12)}, {{}, {}}, {getRandom(4), getRandom(4)}});
  check("add", {{getRandom(12), getRandom(12)}, {{}, {}}});
}

TEST_F(Expert, AdjointsOnPlainRows) {
  checkAdjointOnRanks(R"mlir(
    func.func @f(%x: tensor<3x8xf32>, %p: tensor<3xf32>, %b: tensor<3x4xf32>) -> tensor<3xf32> {
      %0 = moe.swiglu %x : tensor<3x8xf32> -> tensor<3x4xf32>
      %1 = moe.scale_rows %0, %p : tensor<3x4xf32>, tensor<3xf32>
      %2 = moe.row_dot %1, %b : tensor<3x4xf32> -> tensor<3xf32>
      return %2 : tensor<3xf32>
    })mlir",
                      {{getRandom(24), getRandom(3), getRandom(12)}});
}

TEST_F(Expert, AdjointsOfGroupedMatmul) {
  for (StringRef name : {"f", "transposed"})
    for (const Numbers &ids : {oneOfFirst, Numbers{0, 0, 0, -1}, Numbers{1, 0, 1, 0}}) {
      func::FuncOp function = parse(grouped, name), adjoint = buildAdjoint(function);
      ASSERT_TRUE(adjoint);
      size_t rows = std::count_if(ids.begin(), ids.end(), [](double id) { return id >= 0; });
      EXPECT_LT(getGradientError(function, adjoint, {{getRandom(2 * rows), getRandom(12), ids}}), 1e-8);
    }
}
} // namespace
