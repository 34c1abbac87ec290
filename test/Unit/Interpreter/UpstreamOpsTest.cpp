//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// arith, math, tensor and func on small cases computed by hand.
//===----------------------------------------------------------------------===//

#include "InterpreterTest.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class UpstreamOps : public InterpreterTest {};

TEST_F(UpstreamOps, Arithmetic) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<3xf32>, %b: tensor<3xf32>)
        -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
      %0 = arith.addf %a, %b : tensor<3xf32>
      %1 = arith.subf %a, %b : tensor<3xf32>
      %2 = arith.mulf %a, %b : tensor<3xf32>
      %3 = arith.divf %a, %b : tensor<3xf32>
      %4 = arith.negf %a : tensor<3xf32>
      return %0, %1, %2, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    })mlir",
                          {{1, -6, 7}, {2, 3, -4}});
  EXPECT_EQ(results[0], Numbers({3, -3, 3}));
  EXPECT_EQ(results[1], Numbers({-1, -9, 11}));
  EXPECT_EQ(results[2], Numbers({2, -18, -28}));
  EXPECT_EQ(results[3], Numbers({0.5, -2, -1.75}));
  EXPECT_EQ(results[4], Numbers({-1, 6, -7}));
}

TEST_F(UpstreamOps, NarrowTypesAreNotRounded) {
  // 1 + 2^-30 is neither a bf16 nor an f32 number.
  double number = 1 + std::ldexp(1.0, -30);
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {
      %0 = arith.truncf %a : tensor<1xf32> to tensor<1xbf16>
      %1 = arith.extf %0 : tensor<1xbf16> to tensor<1xf32>
      return %1 : tensor<1xf32>
    })mlir",
                          {{number}});
  EXPECT_EQ(results[0], Numbers({number}));
}

TEST_F(UpstreamOps, MaximumAndMinimum) {
  double nan = std::nan("");
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<3xf32>, %b: tensor<3xf32>)
        -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
      %0 = arith.maximumf %a, %b : tensor<3xf32>
      %1 = arith.minimumf %a, %b : tensor<3xf32>
      %2 = arith.maxnumf %a, %b : tensor<3xf32>
      %3 = arith.minnumf %a, %b : tensor<3xf32>
      return %0, %1, %2, %3 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    })mlir",
                          {{1, -2, nan}, {2, -5, 3}});
  EXPECT_EQ(results[0][0], 2);
  EXPECT_EQ(results[0][1], -2);
  EXPECT_TRUE(std::isnan(results[0][2]));
  EXPECT_EQ(results[1][0], 1);
  EXPECT_EQ(results[1][1], -5);
  EXPECT_TRUE(std::isnan(results[1][2]));
  EXPECT_EQ(results[2], Numbers({2, -2, 3}));
  EXPECT_EQ(results[3], Numbers({1, -5, 3}));
}

TEST_F(UpstreamOps, CompareAndSelect) {
  double nan = std::nan("");
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>)
        -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) {
      %0 = arith.cmpf olt, %a, %b : tensor<4xf32>
      %1 = arith.cmpf uge, %a, %b : tensor<4xf32>
      %2 = arith.cmpf une, %a, %b : tensor<4xf32>
      %3 = arith.select %0, %a, %b : tensor<4xi1>, tensor<4xf32>
      %true = arith.constant true
      %4 = arith.select %true, %b, %a : tensor<4xf32>
      return %0, %1, %2, %3, %4 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
    })mlir",
                          {{1, 2, 3, nan}, {2, 2, 1, 4}});
  EXPECT_EQ(results[0], Numbers({1, 0, 0, 0}));
  EXPECT_EQ(results[1], Numbers({0, 1, 1, 1}));
  EXPECT_EQ(results[2], Numbers({1, 0, 1, 1}));
  EXPECT_EQ(results[3], Numbers({1, 2, 1, 4}));
  EXPECT_EQ(results[4], Numbers({2, 2, 1, 4}));
}

TEST_F(UpstreamOps, IntegersWrap) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<2xi32>, %b: tensor<2xi32>)
        -> (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi1>, tensor<2xi1>, tensor<2xf32>) {
      %0 = arith.addi %a, %b : tensor<2xi32>
      %1 = arith.subi %a, %b : tensor<2xi32>
      %2 = arith.muli %a, %b : tensor<2xi32>
      %3 = arith.cmpi slt, %a, %b : tensor<2xi32>
      %4 = arith.cmpi ult, %a, %b : tensor<2xi32>
      %5 = arith.sitofp %b : tensor<2xi32> to tensor<2xf32>
      return %0, %1, %2, %3, %4, %5
          : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi1>, tensor<2xi1>, tensor<2xf32>
    })mlir",
                          {{2147483647, 3}, {1, -5}});
  EXPECT_EQ(results[0], Numbers({-2147483648.0, -2}));
  EXPECT_EQ(results[1], Numbers({2147483646, 8}));
  EXPECT_EQ(results[2], Numbers({2147483647, -15}));
  EXPECT_EQ(results[3], Numbers({0, 0}));
  EXPECT_EQ(results[4], Numbers({0, 1}));
  EXPECT_EQ(results[5], Numbers({1, -5}));
}

TEST_F(UpstreamOps, IntegerWidths) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<2xi64>) -> (tensor<2xi32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) {
      %0 = arith.trunci %a : tensor<2xi64> to tensor<2xi32>
      %1 = arith.extsi %0 : tensor<2xi32> to tensor<2xi64>
      %2 = arith.extui %0 : tensor<2xi32> to tensor<2xi64>
      %3 = arith.trunci %a : tensor<2xi64> to tensor<2xi1>
      %4 = arith.extsi %3 : tensor<2xi1> to tensor<2xi64>
      return %0, %1, %2, %4 : tensor<2xi32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>
    })mlir",
                          {{4294967295, 2}});
  EXPECT_EQ(results[0], Numbers({-1, 2}));
  EXPECT_EQ(results[1], Numbers({-1, 2}));
  EXPECT_EQ(results[2], Numbers({4294967295, 2}));
  EXPECT_EQ(results[3], Numbers({-1, 0}));
}

TEST_F(UpstreamOps, Functions) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<2xf32>)
        -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %0 = math.exp %a : tensor<2xf32>
      %1 = math.log %a : tensor<2xf32>
      %2 = math.sqrt %a : tensor<2xf32>
      %3 = math.rsqrt %a : tensor<2xf32>
      %4 = math.tanh %a : tensor<2xf32>
      %n = arith.negf %a : tensor<2xf32>
      %5 = math.absf %n : tensor<2xf32>
      return %0, %1, %2, %3, %4, %5
          : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    })mlir",
                          {{1, 4}});
  expectNear(results[0], {2.718281828459045, 54.598150033144236});
  expectNear(results[1], {0, 1.3862943611198906});
  expectNear(results[2], {1, 2});
  expectNear(results[3], {1, 0.5});
  expectNear(results[4], {0.7615941559557649, 0.9993292997390670});
  EXPECT_EQ(results[5], Numbers({1, 4}));
}

TEST_F(UpstreamOps, Constants) {
  auto results = evaluate(R"mlir(
    func.func @f() -> (tensor<2x2xf32>, tensor<3xbf16>, tensor<2xi32>, tensor<2xi1>, f32, index) {
      %0 = arith.constant dense<[[1.0, 2.0], [3.0, -4.5]]> : tensor<2x2xf32>
      %1 = arith.constant dense<2.5> : tensor<3xbf16>
      %2 = arith.constant dense<[-7, 9]> : tensor<2xi32>
      %3 = arith.constant dense<[true, false]> : tensor<2xi1>
      %4 = arith.constant 0.75 : f32
      %5 = arith.constant -3 : index
      return %0, %1, %2, %3, %4, %5 : tensor<2x2xf32>, tensor<3xbf16>, tensor<2xi32>, tensor<2xi1>, f32, index
    })mlir",
                          {});
  EXPECT_EQ(results[0], Numbers({1, 2, 3, -4.5}));
  EXPECT_EQ(results[1], Numbers({2.5, 2.5, 2.5}));
  EXPECT_EQ(results[2], Numbers({-7, 9}));
  EXPECT_EQ(results[3], Numbers({1, 0}));
  EXPECT_EQ(results[4], Numbers({0.75}));
  EXPECT_EQ(results[5], Numbers({-3}));
}

TEST_F(UpstreamOps, Slices) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<3x4xf32>, %b: tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<3x4xf32>) {
      %0 = tensor.extract_slice %a[0, 1] [2, 2] [2, 2] : tensor<3x4xf32> to tensor<2x2xf32>
      %1 = tensor.extract_slice %a[1, 2] [1, 2] [1, 1] : tensor<3x4xf32> to tensor<2xf32>
      %2 = tensor.insert_slice %b into %a[1, 3] [2, 1] [1, 1] : tensor<2xf32> into tensor<3x4xf32>
      return %0, %1, %2 : tensor<2x2xf32>, tensor<2xf32>, tensor<3x4xf32>
    })mlir",
                          {{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, {-1, -2}});
  EXPECT_EQ(results[0], Numbers({1, 3, 21, 23}));
  EXPECT_EQ(results[1], Numbers({12, 13}));
  EXPECT_EQ(results[2], Numbers({0, 1, 2, 3, 10, 11, 12, -1, 20, 21, 22, -2}));
}

TEST_F(UpstreamOps, Reshapes) {
  func::FuncOp function = parse(R"mlir(
    func.func @f(%a: tensor<2x6xf32>) -> (tensor<2x3x2xf32>, tensor<12xf32>, tensor<2x2xf32>) {
      %0 = tensor.expand_shape %a [[0], [1, 2]] output_shape [2, 3, 2] : tensor<2x6xf32> into tensor<2x3x2xf32>
      %1 = tensor.collapse_shape %a [[0, 1]] : tensor<2x6xf32> into tensor<12xf32>
      %c = arith.constant 3.0 : f32
      %2 = tensor.splat %c : tensor<2x2xf32>
      return %0, %1, %2 : tensor<2x3x2xf32>, tensor<12xf32>, tensor<2x2xf32>
    })mlir");
  Numbers numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  auto results = Interpreter::evaluate(function, 1, Mode::Float64, {{Tensor::make({2, 6}, numbers)}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ((*results)[0][0].getShape(), ArrayRef<int64_t>({2, 3, 2}));
  EXPECT_EQ((*results)[0][0].get<double>(), ArrayRef(numbers));
  EXPECT_EQ((*results)[0][1].getShape(), ArrayRef<int64_t>({12}));
  EXPECT_EQ((*results)[0][2].get<double>(), ArrayRef<double>({3, 3, 3, 3}));
}

TEST_F(UpstreamOps, UndefinedElementsShow) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<1xf32>) -> tensor<2xf32> {
      %0 = tensor.empty() : tensor<2xf32>
      %1 = tensor.insert_slice %a into %0[1] [1] [1] : tensor<1xf32> into tensor<2xf32>
      %2 = arith.addf %1, %1 : tensor<2xf32>
      return %2 : tensor<2xf32>
    })mlir",
                          {{3}});
  EXPECT_TRUE(std::isnan(results[0][0]));
  EXPECT_EQ(results[0][1], 6);
}

TEST_F(UpstreamOps, CallsAndRanks) {
  func::FuncOp function = parse(R"mlir(
    func.func private @twice(%a: tensor<1xf32>) -> tensor<1xf32> {
      %0 = arith.addf %a, %a : tensor<1xf32>
      return %0 : tensor<1xf32>
    }
    func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {
      %0 = call @twice(%a) : (tensor<1xf32>) -> tensor<1xf32>
      %1 = call @twice(%0) : (tensor<1xf32>) -> tensor<1xf32>
      return %1 : tensor<1xf32>
    })mlir");
  SmallVector<SmallVector<Tensor>> arguments;
  for (double number : {1.0, -2.0, 5.0})
    arguments.push_back({Tensor::make({1}, number)});
  auto results = Interpreter::evaluate(function, 3, Mode::Float64, arguments);
  ASSERT_TRUE(succeeded(results));
  ASSERT_EQ(results->size(), 3u);
  EXPECT_EQ((*results)[0][0].get<double>()[0], 4);
  EXPECT_EQ((*results)[1][0].get<double>()[0], -8);
  EXPECT_EQ((*results)[2][0].get<double>()[0], 20);
}

TEST_F(UpstreamOps, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(getErrors(R"mlir(
    func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {
      %0 = math.erf %a : tensor<1xf32>
      return %0 : tensor<1xf32>
    })mlir",
                      {{1}}),
            "'math.erf' op the interpreter does not know 'math.erf'\n");
}

TEST_F(UpstreamOps, RefusesRecursion) {
  EXPECT_EQ(getErrors(R"mlir(
    func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {
      %0 = call @f(%a) : (tensor<1xf32>) -> tensor<1xf32>
      return %0 : tensor<1xf32>
    })mlir",
                      {{1}}),
            "'func.func' op calls itself\n");
}

TEST_F(UpstreamOps, RefusesDeclarations) {
  EXPECT_EQ(getErrors("func.func private @f(tensor<1xf32>) -> tensor<1xf32>", {{1}}),
            "'func.func' op has no body to interpret\n");
}

TEST_F(UpstreamOps, RefusesDynamicShapes) {
  std::string text = getErrors(R"mlir(
    func.func @f(%a: tensor<4xf32>) -> tensor<?xf32> {
      %0 = tensor.cast %a : tensor<4xf32> to tensor<?xf32>
      return %0 : tensor<?xf32>
    })mlir",
                               {{1, 2, 3, 4}});
  EXPECT_NE(text.find("'tensor.cast' op has a result of type tensor<?xf32>: the interpreter needs static shapes"),
            std::string::npos)
      << text;
}

TEST_F(UpstreamOps, RefusesHugeTensors) {
  std::string text = getErrors(R"mlir(
    func.func @f() {
      %0 = tensor.empty() : tensor<1000000x1000000x1000000x1000000xf32>
      return
    })mlir",
                               {});
  EXPECT_NE(text.find("that is more than 2^34 elements"), std::string::npos) << text;
}

TEST_F(UpstreamOps, RefusesArgumentsThatDoNotFit) {
  EXPECT_NE(getErrors("func.func @f(%a: tensor<2xf32>) { return }", {{1, 2, 3}}).find("is given 3 numbers"),
            std::string::npos);
  EXPECT_NE(getErrors("func.func @f(%a: tensor<2xf32>) { return }", {}).find("has 1 arguments and is given 0"),
            std::string::npos);
}
} // namespace
