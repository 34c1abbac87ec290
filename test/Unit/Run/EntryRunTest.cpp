//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/EntryRun.h"
#include "FakeExecutor.h"
#include "plateau/Run/ParameterInit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

namespace {
class EntryRunTest : public RunTest {
protected:
  void setUp(const std::string &text) {
    module = parse(text);
    function = *module->getOps<func::FuncOp>().begin();
  }
  /// An executor that gives `values` as its only result, offset by `drift` in each later run.
  Executor give(std::vector<float> values, float drift = 0) {
    Executor executor;
    executor.step = std::make_unique<FakeExecutor>(function, 1, [=](FakeExecutor &fake, int, FakeBuffers &buffers) {
      llvm::copy(values, buffers.result<float>(0).begin());
      buffers.result<float>(0)[1] += drift * (fake.runs - 1);
      return llvm::Error::success();
    });
    return executor;
  }
  std::string compare(std::vector<float> tested, std::vector<float> reference, double tolerance, float drift = 0) {
    setUp("func.func @f() -> tensor<2x2xf32> { %0 = arith.constant dense<0.0> : tensor<2x2xf32> return %0 : "
          "tensor<2x2xf32> }");
    Executor a = give(tested, drift), b = give(reference);
    std::string text;
    llvm::raw_string_ostream os(text);
    if (auto error = compareEntry(a, b, RankBytes(1), tolerance, 3, os))
      return "error: " + llvm::toString(std::move(error));
    EXPECT_EQ(static_cast<FakeExecutor &>(*a.step).runs, 3);
    return text;
  }

  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};
} // namespace

TEST_F(EntryRunTest, DrawsArguments) {
  setUp(
      R"(func.func @f(%a: tensor<3xf32>, %b: tensor<2xbf16>, %c: tensor<100xi32> {moe.role = #moe.role<tokens>, plateau.below = 7 : i64},
                        %d: tensor<100xi32>, %e: tensor<3xi32> {moe.role = #moe.role<positions>}, %f: tensor<3xi32> {moe.role = #moe.role<starts>},
                        %g: tensor<2xi32> {plateau.values = dense<[5, -6]> : tensor<2xi32>}, %h: tensor<2xf32> {plateau.values = dense<2.0> : tensor<2xf32>}) { return })");
  FakeBuffers drawn{llvm::cantFail(drawArguments(function, 9, 1))[0], {}};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(drawn.argument<float>(0)[i], static_cast<float>(NumberStream(9, "argument0").getNormal(i)));
  EXPECT_EQ(drawn.argument<uint16_t>(1)[1], roundToBF16(NumberStream(9, "argument1").getNormal(1)));
  EXPECT_EQ(drawn.argument<int32_t>(2)[50], int32_t(NumberStream(9, "argument2").getWord(50) % 7));
  EXPECT_EQ(*llvm::max_element(drawn.argument<int32_t>(2)), 6);
  EXPECT_EQ(*llvm::max_element(drawn.argument<int32_t>(3)), 1);
  EXPECT_EQ(drawn.argument<int32_t>(4)[2], 2);
  EXPECT_EQ(drawn.argument<int32_t>(5)[2], 0);
  EXPECT_EQ(drawn.argument<int32_t>(6)[1], -6);
  EXPECT_EQ(drawn.argument<float>(7)[1], 2.0f);
}

TEST_F(EntryRunTest, DrawsForEachRank) {
  setUp(R"(
    func.func @f(%a: tensor<2xf32>, %b: tensor<2xi32> {plateau.below = 1000 : i64}, %c: tensor<2xf32> {plateau.same},
                 %d: tensor<f32> {moe.role = #moe.role<learning_rate>},
                 %e: tensor<2xi32> {plateau.values = dense<[5, -6]> : tensor<2xi32>},
                 %f: tensor<2xi32> {plateau.values = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi32>}) { return }
  )");
  RankBytes all = llvm::cantFail(drawArguments(function, 9, 4));
  ASSERT_EQ(all.size(), 4u);
  FakeBuffers first{all[0], {}}, last{all[3], {}};
  EXPECT_EQ(first.argument<float>(0)[1], static_cast<float>(NumberStream(9, "argument0").getNormal(1)));
  EXPECT_EQ(last.argument<float>(0)[1], static_cast<float>(NumberStream(9, "argument0.3").getNormal(1)));
  EXPECT_EQ(first.argument<int32_t>(1)[1], int32_t(NumberStream(9, "argument1").getWord(1) % 1000));
  EXPECT_EQ(last.argument<int32_t>(1)[1], int32_t(NumberStream(9, "argument1.3").getWord(1) % 1000));
  for (int index : {2, 3, 4})
    EXPECT_EQ(all[0][index], all[3][index]);
  EXPECT_EQ(first.argument<int32_t>(5)[1], 1);
  EXPECT_EQ(last.argument<int32_t>(5)[1], 7);
}

TEST_F(EntryRunTest, DrawsPartsOfParameters) {
  setUp(R"(
    func.func @f(%a: tensor<2xf32> {moe.parameter = #moe.parameter<"all", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
                 %b: tensor<2xf32> {moe.parameter = #moe.parameter<"half", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @x>},
                 %c: tensor<8xf32> {moe.layout = #moe.layout<[
                     <<"all", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>, offset = 0, shape = [3]>,
                     <<"half", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @x>, offset = 3, shape = [4]>]>}) { return }
    shard.grid @x(shape = 2x2)
  )");
  RankBytes all = llvm::cantFail(drawArguments(function, 9, 4));
  for (int index : {0, 1, 2}) {
    EXPECT_EQ(all[0][index], all[2][index]); // Ranks 0 and 2 have the first part.
    EXPECT_EQ(all[1][index], all[3][index]);
  }
  EXPECT_EQ(all[0][0], all[1][0]);
  EXPECT_NE(all[0][1], all[1][1]);
  FakeBuffers first{all[0], {}}, second{all[1], {}};
  EXPECT_EQ(second.argument<float>(1)[1], static_cast<float>(NumberStream(9, "argument1.1").getNormal(1)));
  for (int element : {0, 1, 2, 7})
    EXPECT_EQ(second.argument<float>(2)[element], static_cast<float>(NumberStream(9, "argument2").getNormal(element)));
  for (int element : {3, 4, 5, 6}) {
    EXPECT_EQ(first.argument<float>(2)[element], static_cast<float>(NumberStream(9, "argument2").getNormal(element)));
    EXPECT_EQ(second.argument<float>(2)[element],
              static_cast<float>(NumberStream(9, "argument2.1").getNormal(element)));
  }
}

TEST_F(EntryRunTest, RefusesWhatItCannotPass) {
  auto refuse = [&](const std::string &text) {
    setUp(text);
    return getText(drawArguments(function, 0, 2));
  };
  EXPECT_EQ(
      refuse("func.func @f(%a: tensor<?xf32>) { return }"),
      "argument 0 is tensor<?xf32>; only static tensors of f32, bf16 and i32, of at most 2^60 elements, can be passed");
  EXPECT_EQ(refuse("func.func @f(%a: tensor<1xf32>, %b: f32) { return }"),
            "argument 1 is f32; only static tensors of f32, bf16 and i32, of at most 2^60 elements, can be passed");
  EXPECT_EQ(
      refuse("func.func @f(%a: tensor<1xf32> {plateau.values = dense<1> : tensor<1xi32>}) { return }"),
      "argument 0: plateau.values must be dense elements of the argument's own type, or of that type with a dimension "
      "for 2 ranks in front");
  EXPECT_EQ(
      refuse("func.func @f(%a: tensor<1xf32> {plateau.values = dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>}) { "
             "return }"),
      "argument 0: plateau.values must be dense elements of the argument's own type, or of that type with a dimension "
      "for 2 ranks in front");
  EXPECT_EQ(
      refuse("func.func @f(%a: tensor<1xf32> {moe.parameter = #moe.parameter<\"w\", decay = true, mean = 0.0 : f64, "
             "deviation = 1.0 : f64, shard = @x>}) { return }"),
      "argument 0: parameter 'w' is divided by grid x, and there is none of 2 ranks");
  EXPECT_EQ(refuse("func.func @f(%a: tensor<1xi32> {plateau.below = 0 : i64}) { return }"),
            "argument 0: plateau.below is 0; it must be from 1 to 2^31");
}

TEST_F(EntryRunTest, PrintsResults) {
  setUp("func.func @f() -> tensor<2x2xf32> { %0 = arith.constant dense<0.0> : tensor<2x2xf32> return %0 : "
        "tensor<2x2xf32> }");
  Executor executor = give({1, 0.1f, -INFINITY, 1e-8f});
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_EQ(getText(runEntry(executor, RankBytes(1), 1, os)), "");
  EXPECT_EQ(text, "f/0: tensor<2x2xf32> = [1, 0.100000001, -inf, 9.99999994e-09]\n");
}

TEST_F(EntryRunTest, PrintsLongResultsShort) {
  setUp("func.func @f() -> tensor<65xf32> { %0 = arith.constant dense<0.0> : tensor<65xf32> return %0 : tensor<65xf32> "
        "}");
  std::vector<float> values(65);
  values[7] = -3;
  Executor executor = give(values);
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_EQ(getText(runEntry(executor, RankBytes(1), 1, os)), "");
  EXPECT_EQ(text.find("f/0: tensor<65xf32> checksum "), 0u) << text;
  EXPECT_NE(text.find(" max-abs 3\n"), std::string::npos) << text;
}

TEST_F(EntryRunTest, ComparesRelativeToTheLargest) {
  EXPECT_EQ(compare({1, 2, 3, 4.5}, {1, 2, 3, 4}, 0.125), "f/0: tensor<2x2xf32> max|a-b|/max|b| 0.125\n");
  EXPECT_EQ(compare({1, 2, 3, 4.5}, {1, 2, 3, 4}, 0.12),
            "error: f/0: element [1, 1] is 4.5 compiled and 4 interpreted: max|a-b|/max|b| is 0.125, more than 0.12");
  EXPECT_EQ(compare({1, 2, 3, 4}, {1, 2, 3, 4}, 0), "f/0: tensor<2x2xf32> max|a-b|/max|b| 0\n");
}

TEST_F(EntryRunTest, ComparesNumbersThatAreNone) {
  EXPECT_EQ(compare({NAN, INFINITY, 3, 4}, {NAN, INFINITY, 3, 4}, 0),
            "f/0: tensor<2x2xf32> max|a-b|/max|b| 0, 2 of 4 elements not finite\n");
  EXPECT_EQ(compare({1, NAN, 3, 4}, {1, 2, 3, 4}, 1),
            "error: f/0: element [0, 1] is nan compiled and 2 interpreted: max|a-b|/max|b| is inf, more than 1");
  EXPECT_NE(compare({1, -INFINITY, 3, 4}, {1, INFINITY, 3, 4}, 1).find("error: "), std::string::npos);
  EXPECT_NE(compare({1, 0, 0, 0}, {0, 0, 0, 0}, 1).find("error: "), std::string::npos);
}

TEST_F(EntryRunTest, RunsMustGiveTheSameBits) {
  EXPECT_EQ(compare({1, 2, 3, 4}, {1, 2, 3, 4}, 1, 0.5), "error: f/0: element [0, 1] is 2 in run 1 and 2.5 in run 2");
}

TEST_F(EntryRunTest, DonatedResultsAreInTheirArguments) {
  setUp("func.func @f(%a: tensor<2xf32> {moe.donated = 0 : i64}) -> tensor<2xf32> { return %a : tensor<2xf32> }");
  Executor executor;
  executor.step = std::make_unique<FakeExecutor>(function, 1, [](FakeExecutor &, int, FakeBuffers &buffers) {
    buffers.argument<float>(0)[0] += 1;
    return llvm::Error::success();
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  RankBytes arguments = {{Bytes(8, 0)}};
  EXPECT_EQ(getText(runEntry(executor, arguments, 2, os)), ""); // each run begins with the same arguments
  EXPECT_EQ(text, "f/0: tensor<2xf32> = [1, 0]\n");
}
