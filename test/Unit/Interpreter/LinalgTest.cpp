//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// linalg on small cases computed by hand.
//===----------------------------------------------------------------------===//

#include "InterpreterTest.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class Linalg : public InterpreterTest {};

// [1 2; 3 4; 5 6] and [1 0 2 -1; 3 1 0 2]
const Numbers a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 2, -1, 3, 1, 0, 2};
const Numbers product = {7, 2, 2, 3, 15, 4, 6, 5, 23, 6, 10, 7};

TEST_F(Linalg, MatmulAccumulates) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<3x2xf32>, %b: tensor<2x4xf32>, %c: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<3x4xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
      %0 = linalg.matmul ins(%a, %b : tensor<3x2xf32>, tensor<2x4xf32>) outs(%z : tensor<3x4xf32>) -> tensor<3x4xf32>
      %1 = linalg.matmul ins(%a, %b : tensor<3x2xf32>, tensor<2x4xf32>) outs(%c : tensor<3x4xf32>) -> tensor<3x4xf32>
      return %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>
    })mlir",
                          {a, b, Numbers(12, 100)});
  EXPECT_EQ(results[0], product);
  Numbers shifted = product;
  for (double &number : shifted)
    number += 100;
  EXPECT_EQ(results[1], shifted);
}

TEST_F(Linalg, MatmulTransposed) {
  auto results = evaluate(R"mlir(
    #k_m = affine_map<(m, n, k) -> (k, m)>
    #m_k = affine_map<(m, n, k) -> (m, k)>
    #n_k = affine_map<(m, n, k) -> (n, k)>
    #m_n = affine_map<(m, n, k) -> (m, n)>
    func.func @f(%at: tensor<2x3xbf16>, %bt: tensor<4x2xbf16>, %z: tensor<3x4xf32>) -> tensor<3x4xf32> {
      %0 = linalg.matmul indexing_maps = [#k_m, #n_k, #m_n]
          ins(%at, %bt : tensor<2x3xbf16>, tensor<4x2xbf16>) outs(%z : tensor<3x4xf32>) -> tensor<3x4xf32>
      return %0 : tensor<3x4xf32>
    })mlir",
                          {{1, 3, 5, 2, 4, 6}, {1, 3, 0, 1, 2, 0, -1, 2}, Numbers(12, 0)});
  EXPECT_EQ(results[0], product);
}

TEST_F(Linalg, MatmulOfOddSizes) {
  // Sizes beyond and between the blocks; the expected sums in the same order, one element after another.
  constexpr int64_t m = 3, n = 261, k = 67;
  Numbers x = getRandom(m * k), y = getRandom(k * n), expected(m * n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l)
        expected[i * n + j] += x[i * k + l] * y[l * n + j];
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<3x67xf32>, %b: tensor<67x261xf32>, %z: tensor<3x261xf32>) -> tensor<3x261xf32> {
      %0 = linalg.matmul ins(%a, %b : tensor<3x67xf32>, tensor<67x261xf32>)
                         outs(%z : tensor<3x261xf32>) -> tensor<3x261xf32>
      return %0 : tensor<3x261xf32>
    })mlir",
                          {x, y, Numbers(m * n, 0)});
  EXPECT_EQ(results[0], expected);
}

TEST_F(Linalg, MatmulWithoutTerms) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<2x0xf32>, %b: tensor<0x1xf32>, %c: tensor<2x1xf32>) -> tensor<2x1xf32> {
      %0 = linalg.matmul ins(%a, %b : tensor<2x0xf32>, tensor<0x1xf32>) outs(%c : tensor<2x1xf32>) -> tensor<2x1xf32>
      return %0 : tensor<2x1xf32>
    })mlir",
                          {{}, {}, {5, 6}});
  EXPECT_EQ(results[0], Numbers({5, 6}));
}

TEST_F(Linalg, MatmulOfIntegers) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<3x2xi32>, %b: tensor<2x4xi32>, %z: tensor<3x4xi32>) -> tensor<3x4xi32> {
      %0 = linalg.matmul ins(%a, %b : tensor<3x2xi32>, tensor<2x4xi32>) outs(%z : tensor<3x4xi32>) -> tensor<3x4xi32>
      return %0 : tensor<3x4xi32>
    })mlir",
                          {a, b, Numbers(12, 0)});
  EXPECT_EQ(results[0], product);
}

TEST_F(Linalg, GenericSumsAndIndices) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<2x3xf32>, %sum: tensor<2xf32>, %e: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x3xf32>) {
      %two = arith.constant 2.0 : f32
      %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%a : tensor<2x3xf32>) outs(%sum : tensor<2xf32>) {
      ^bb0(%x: f32, %s: f32):
        %t = arith.mulf %x, %two : f32
        %u = arith.addf %s, %t : f32
        linalg.yield %u : f32
      } -> tensor<2xf32>
      %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          outs(%e : tensor<2x3xf32>) {
      ^bb0(%unused: f32):
        %ten = arith.constant 10 : index
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %k = arith.muli %i, %ten : index
        %l = arith.addi %k, %j : index
        %m = arith.index_cast %l : index to i32
        %n = arith.sitofp %m : i32 to f32
        linalg.yield %n : f32
      } -> tensor<2x3xf32>
      return %0, %1 : tensor<2xf32>, tensor<2x3xf32>
    })mlir",
                          {{1, 2, 3, 4, 5, 6}, {100, 200}, Numbers(6, 0)});
  EXPECT_EQ(results[0], Numbers({112, 230}));
  EXPECT_EQ(results[1], Numbers({0, 1, 2, 10, 11, 12}));
}

TEST_F(Linalg, GenericStridedMap) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<5xf32>, %e: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i * 2 + j)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%a : tensor<5xf32>) outs(%e : tensor<2x2xf32>) {
      ^bb0(%x: f32, %unused: f32):
        linalg.yield %x : f32
      } -> tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    })mlir",
                          {{1, 2, 3, 4, 5}, Numbers(4, 0)});
  EXPECT_EQ(results[0], Numbers({1, 2, 3, 4}));
}

TEST_F(Linalg, NamedOps) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>)
        -> (tensor<3x2xf32>, tensor<2x2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2x3xf32>) {
      %e0 = tensor.empty() : tensor<3x2xf32>
      %0 = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e0 : tensor<3x2xf32>) permutation = [1, 0]
      %e1 = tensor.empty() : tensor<2x2x3xf32>
      %1 = linalg.broadcast ins(%a : tensor<2x3xf32>) outs(%e1 : tensor<2x2x3xf32>) dimensions = [0]
      %e2 = tensor.empty() : tensor<2x3xf32>
      %2 = linalg.add ins(%a, %b : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e2 : tensor<2x3xf32>) -> tensor<2x3xf32>
      %zero = arith.constant dense<0.0> : tensor<2xf32>
      %3 = linalg.reduce ins(%a : tensor<2x3xf32>) outs(%zero : tensor<2xf32>) dimensions = [1]
          (%x: f32, %s: f32) {
            %t = arith.addf %x, %s : f32
            linalg.yield %t : f32
          }
      %4 = linalg.map { arith.mulf } ins(%a, %b : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e2 : tensor<2x3xf32>)
      return %0, %1, %2, %3, %4 : tensor<3x2xf32>, tensor<2x2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2x3xf32>
    })mlir",
                          {{1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60}});
  EXPECT_EQ(results[0], Numbers({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(results[1], Numbers({1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(results[2], Numbers({11, 22, 33, 44, 55, 66}));
  EXPECT_EQ(results[3], Numbers({6, 15}));
  EXPECT_EQ(results[4], Numbers({10, 40, 90, 160, 250, 360}));
}

TEST_F(Linalg, RefusesUnknownOpsInABody) {
  std::string text = getErrors(R"mlir(
    func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          outs(%a : tensor<2xf32>) {
      ^bb0(%x: f32):
        %y = math.erf %x : f32
        linalg.yield %y : f32
      } -> tensor<2xf32>
      return %0 : tensor<2xf32>
    })mlir",
                               {{1, 2}});
  EXPECT_EQ(text, "'linalg.generic' op rank 0: the interpreter does not know 'math.erf' in its body\n");
}

TEST_F(Linalg, RefusesDivisionsInMaps) {
  std::string text = getErrors(R"mlir(
    func.func @f(%a: tensor<2xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
      %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i floordiv 2)>, affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
          ins(%a : tensor<2xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%x: f32, %unused: f32):
        linalg.yield %x : f32
      } -> tensor<4xf32>
      return %0 : tensor<4xf32>
    })mlir",
                               {{1, 2}, {0, 0, 0, 0}});
  EXPECT_NE(text.find("the interpreter knows indexing maps of sums and multiples only"), std::string::npos) << text;
}
} // namespace
