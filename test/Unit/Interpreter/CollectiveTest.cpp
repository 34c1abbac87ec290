//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Sums and gathers over the ranks of a grid.
//===----------------------------------------------------------------------===//

#include "RanksTest.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class Collective : public RanksTest {};

/// `op` applied to the function's argument, on ranks that form a 2x2 grid and a line.
std::string getText(StringRef op, StringRef from, StringRef to) {
  return ("shard.grid @square(shape = 2x2)\nshard.grid @line(shape = 4)\nfunc.func @f(%x: " + from + ") -> " + to +
          " {\n%r = " + op + " : " + from + " -> " + to + "\nreturn %r : " + to + "\n}")
      .str();
}

TEST_F(Collective, AllReduce) {
  RankNumbers arguments = {{{1, 2}}, {{10, 20}}, {{100, 200}}, {{1000, 2000}}};
  auto reduce = [&](StringRef where) {
    return evaluateOnRanks(getText(("shard.all_reduce %x on " + where).str(), "tensor<2xf32>", "tensor<2xf32>"),
                           arguments);
  };
  EXPECT_EQ(reduce("@square grid_axes = [1]"), RankNumbers({{{11, 22}}, {{11, 22}}, {{1100, 2200}}, {{1100, 2200}}}));
  EXPECT_EQ(reduce("@square grid_axes = [0]"),
            RankNumbers({{{101, 202}}, {{1010, 2020}}, {{101, 202}}, {{1010, 2020}}}));
  for (StringRef all : {"@square grid_axes = [0, 1]", "@line grid_axes = [0]"})
    EXPECT_EQ(reduce(all), RankNumbers(4, {{1111, 2222}}));
  EXPECT_EQ(reduce("@square"), arguments); // no axes: each rank alone
}

// 2^53 + 1 is even less than the next number: from the left the ones are lost, from the right they count.
TEST_F(Collective, SumsAreInRankOrder) {
  double big = std::ldexp(1.0, 53);
  StringRef op = "shard.all_reduce %x on @square grid_axes = [1, 0]";
  EXPECT_EQ(evaluateOnRanks(getText(op, "tensor<f64>", "tensor<f64>"), {{{big}}, {{1}}, {{1}}, {{-big}}}),
            RankNumbers(4, {{0}}));
  EXPECT_EQ(evaluateOnRanks(getText(op, "tensor<f64>", "tensor<f64>"), {{{1}}, {{1}}, {{big}}, {{-big}}}),
            RankNumbers(4, {{2}}));
}

TEST_F(Collective, SumsOfIntegersWrap) {
  EXPECT_EQ(evaluateOnRanks(getText("shard.all_reduce %x on @line grid_axes = [0]", "tensor<2xi32>", "tensor<2xi32>"),
                            {{{7, 2147483647}}, {{-9, 1}}, {{1, 0}}, {{0, 0}}}),
            RankNumbers(4, {{-1, -2147483648}}));
}

TEST_F(Collective, AllGather) {
  RankNumbers arguments = {{{1, 2}}, {{3, 4}}, {{5, 6}}, {{7, 8}}};
  EXPECT_EQ(evaluateOnRanks(getText("shard.all_gather %x on @square grid_axes = [1] gather_axis = 0", "tensor<1x2xf32>",
                                    "tensor<2x2xf32>"),
                            arguments),
            RankNumbers({{{1, 2, 3, 4}}, {{1, 2, 3, 4}}, {{5, 6, 7, 8}}, {{5, 6, 7, 8}}}));
  EXPECT_EQ(evaluateOnRanks(getText("shard.all_gather %x on @square grid_axes = [0] gather_axis = 0", "tensor<2xf32>",
                                    "tensor<4xf32>"),
                            arguments),
            RankNumbers({{{1, 2, 5, 6}}, {{3, 4, 7, 8}}, {{1, 2, 5, 6}}, {{3, 4, 7, 8}}}));
}

TEST_F(Collective, ReduceScatter) {
  RankNumbers arguments = {{{1, 2, 3, 4}}, {{10, 20, 30, 40}}, {{100, 200, 300, 400}}, {{1000, 2000, 3000, 4000}}};
  EXPECT_EQ(evaluateOnRanks(getText("shard.reduce_scatter %x on @line grid_axes = [0] scatter_axis = 0",
                                    "tensor<4xf32>", "tensor<1xf32>"),
                            arguments),
            RankNumbers({{{1111}}, {{2222}}, {{3333}}, {{4444}}}));
  EXPECT_EQ(evaluateOnRanks(getText("shard.reduce_scatter %x on @square grid_axes = [0] scatter_axis = 0",
                                    "tensor<2x2xf32>", "tensor<1x2xf32>"),
                            arguments),
            RankNumbers({{{101, 202}}, {{1010, 2020}}, {{303, 404}}, {{3030, 4040}}}));
}

TEST_F(Collective, ExactModeSumsInTheField) {
  func::FuncOp function =
      parse(getText("shard.all_reduce %x on @line grid_axes = [0]", "tensor<1xf32>", "tensor<1xf32>"));
  double big = std::ldexp(1.0, 60);
  for (ArrayRef<Tensor> results : evaluateOnRanks(function, Mode::Exact, {{{big}}, {{big}}, {{0.5}}, {{2.5}}}))
    EXPECT_EQ(getIntegers(results[0]), std::vector<int64_t>({4})); // 2^61 is 1
}

TEST_F(Collective, Adjoints) {
  for (auto [op, from, to] :
       {std::tuple("shard.all_reduce %x on @square grid_axes = [1]", "tensor<3x2xf32>", "tensor<3x2xf32>"),
        {"shard.all_reduce %x on @square grid_axes = [0, 1]", "tensor<3xbf16>", "tensor<3xbf16>"},
        {"shard.all_gather %x on @square grid_axes = [0] gather_axis = 0", "tensor<2x2xf32>", "tensor<4x2xf32>"},
        {"shard.all_gather %x on @line grid_axes = [0] gather_axis = 0", "tensor<2xf32>", "tensor<8xf32>"},
        {"shard.reduce_scatter %x on @square grid_axes = [1] scatter_axis = 0", "tensor<4x2xf32>", "tensor<2x2xf32>"},
        {"shard.reduce_scatter %x on @line grid_axes = [0] scatter_axis = 0", "tensor<8xf32>", "tensor<2xf32>"}}) {
    std::string text = getText(op, from, to);
    SCOPED_TRACE(text);
    size_t count = cast<RankedTensorType>(parse(text).getArgumentTypes()[0]).getNumElements();
    checkAdjointOnRanks(text, {{getRandom(count)}, {getRandom(count)}, {getRandom(count)}, {getRandom(count)}});
  }
}

// The check above on an adjoint that keeps each rank's cotangent to itself.
TEST_F(Collective, DifferencesSeeAWrongAdjoint) {
  std::string text = getText("shard.all_reduce %x on @line grid_axes = [0]", "tensor<3xf32>", "tensor<3xf32>");
  func::FuncOp function = parse(text);
  func::FuncOp wrong = parse("func.func @f(%x: tensor<3xf32>, %d: tensor<3xf32>) -> tensor<3xf32> {\n"
                             "return %d : tensor<3xf32>\n}");
  EXPECT_GT(getGradientError(function, wrong, {{getRandom(3)}, {getRandom(3)}, {getRandom(3)}, {getRandom(3)}}), 0.1);
}

TEST_F(Collective, RefusesWhatItCannotDo) {
  RankNumbers arguments = {{{1, 2}}, {{3, 4}}, {{5, 6}}, {{7, 8}}};
  StringRef row = "tensor<2xf32>", square = "tensor<2x1xf32>";
  EXPECT_EQ(
      getErrorsOnRanks(getText("shard.all_reduce %x on @line grid_axes = [0] reduction = max", row, row), arguments),
      "'shard.all_reduce' op rank 0: the interpreter knows sums only\n");
  EXPECT_EQ(getErrorsOnRanks(
                getText("shard.all_gather %x on @square grid_axes = [1] gather_axis = 1", square, "tensor<2x2xf32>"),
                arguments),
            "'shard.all_gather' op rank 0: the interpreter gathers and scatters along axis 0, not 1\n");
  arguments.resize(2);
  EXPECT_EQ(getErrorsOnRanks(getText("shard.all_reduce %x on @line grid_axes = [0]", row, row), arguments),
            "'shard.all_reduce' op rank 0: grid @line has 4 ranks, and the program runs on 2\n");
}
} // namespace
