//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The exact mode: the field, and what it must not and must tell apart.
//===----------------------------------------------------------------------===//

#include "InterpreterTest.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
TEST(ExactField, Integers) {
  EXPECT_EQ((Field::fromInteger(7) - Field::fromInteger(12)).getSigned(), -5);
  EXPECT_EQ((Field::fromInteger(-3) * Field::fromInteger(11)).getSigned(), -33);
  EXPECT_EQ((-Field::fromInteger(0)).getValue(), 0u);
  EXPECT_EQ(Field::fromInteger(INT64_MIN).getSigned(), -4); // 2^63 = 4 · 2^61 = 4
}

TEST(ExactField, Inverses) {
  for (int64_t integer : {1, 2, 3, -1, 1000003}) {
    Field element = Field::fromInteger(integer);
    EXPECT_EQ((element * element.inverse()).getSigned(), 1);
    EXPECT_EQ((Field::fromInteger(integer * 15) / element).getSigned(), 15);
  }
  EXPECT_EQ((Field::fromInteger(5) / Field::fromInteger(0)).getValue(), 0u);
}

TEST(ExactField, DyadicNumbers) {
  EXPECT_EQ(Field::fromDouble(-5).getSigned(), -5);
  EXPECT_EQ((Field::fromDouble(0.375) * Field::fromInteger(8)).getSigned(), 3);
  EXPECT_EQ((Field::fromDouble(-0.1) + Field::fromDouble(0.1)).getValue(), 0u);
  EXPECT_EQ(Field::fromDouble(std::ldexp(1.0, 61)).getSigned(), 1);
  EXPECT_EQ((Field::fromDouble(std::ldexp(1.0, -1074)) * Field::fromDouble(std::ldexp(1.0, 1000)) *
             Field::fromDouble(std::ldexp(1.0, 74)))
                .getSigned(),
            1);
  EXPECT_EQ((Field::fromDouble(INFINITY) + Field::fromDouble(-INFINITY)).getValue(), 0u);
  EXPECT_NE(Field::fromDouble(NAN).getValue(), Field::fromDouble(INFINITY).getValue());
}

TEST(ExactField, LargestProducts) {
  Field largest = Field::fromInteger(-1);
  EXPECT_EQ(largest.getValue(), Field::prime - 1);
  EXPECT_EQ((largest * largest).getSigned(), 1);
  EXPECT_EQ((largest + largest).getSigned(), -2);
  EXPECT_EQ(Field::fromWide(~Field::Wide(0)).getSigned(), 63); // 2^128 - 1 = 2^6 - 1
}

class Exact : public InterpreterTest {};

TEST_F(Exact, ArithmeticIsThatOfIntegers) {
  auto results = evaluateExactly(R"mlir(
    func.func @f(%a: tensor<3xf32>, %b: tensor<3xf32>)
        -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<3xf32>) {
      %0 = arith.mulf %a, %b : tensor<3xf32>
      %half = arith.constant dense<0.5> : tensor<3xf32>
      %1 = arith.mulf %0, %half : tensor<3xf32>
      %2 = arith.divf %0, %b : tensor<3xf32>
      %3 = arith.cmpf olt, %a, %b : tensor<3xf32>
      %4 = arith.maximumf %a, %b : tensor<3xf32>
      return %1, %2, %0, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<3xf32>
    })mlir",
                                 {{6, -5, 7}, {2, 4, -4}});
  EXPECT_EQ(getIntegers(results[0]), std::vector<int64_t>({6, -10, -14}));
  EXPECT_EQ(getIntegers(results[1]), std::vector<int64_t>({6, -5, 7}));
  EXPECT_EQ(results[3].get<int64_t>(), ArrayRef<int64_t>({0, 1, 0}));
  EXPECT_EQ(getIntegers(results[4]), std::vector<int64_t>({6, 4, 7}));
}

TEST_F(Exact, FunctionsAreHashes) {
  auto results = evaluateExactly(R"mlir(
    func.func @f(%a: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %0 = math.exp %a : tensor<3xf32>
      %1 = math.tanh %a : tensor<3xf32>
      return %0, %1 : tensor<3xf32>, tensor<3xf32>
    })mlir",
                                 {{2, 3, 2}});
  auto exp = getIntegers(results[0]), tanh = getIntegers(results[1]);
  EXPECT_EQ(exp[0], exp[2]);
  EXPECT_NE(exp[0], exp[1]);
  EXPECT_NE(exp[0], tanh[0]);
}

TEST_F(Exact, MatmulOfIntegers) {
  auto results = evaluateExactly(R"mlir(
    func.func @f(%a: tensor<3x2xf32>, %b: tensor<2x4xf32>, %c: tensor<3x4xf32>) -> tensor<3x4xf32> {
      %0 = linalg.matmul ins(%a, %b : tensor<3x2xf32>, tensor<2x4xf32>) outs(%c : tensor<3x4xf32>) -> tensor<3x4xf32>
      return %0 : tensor<3x4xf32>
    })mlir",
                                 {{1, 2, 3, 4, 5, 6}, {1, 0, 2, -1, 3, 1, 0, 2}, Numbers(12, -1)});
  EXPECT_EQ(getIntegers(results[0]), std::vector<int64_t>({6, 1, 1, 2, 14, 3, 5, 4, 22, 5, 9, 6}));
}

// Enough terms to pass the point at which sums are reduced, split unevenly.
TEST_F(Exact, MatmulSplitsByTermsAndRows) {
  std::vector<Numbers> arguments = {getRandom(4 * 150), getRandom(150 * 300)};
  auto whole = evaluateExactly(R"mlir(
    func.func @f(%a: tensor<4x150xf32>, %b: tensor<150x300xf32>) -> tensor<4x300xf32> {
      %z = arith.constant dense<0.0> : tensor<4x300xf32>
      %0 = linalg.matmul ins(%a, %b : tensor<4x150xf32>, tensor<150x300xf32>)
                         outs(%z : tensor<4x300xf32>) -> tensor<4x300xf32>
      return %0 : tensor<4x300xf32>
    })mlir",
                               arguments);
  auto byTerms = evaluateExactly(R"mlir(
    func.func @f(%a: tensor<4x150xf32>, %b: tensor<150x300xf32>) -> tensor<4x300xf32> {
      %z = arith.constant dense<0.0> : tensor<4x300xf32>
      %a0 = tensor.extract_slice %a[0, 0] [4, 47] [1, 1] : tensor<4x150xf32> to tensor<4x47xf32>
      %a1 = tensor.extract_slice %a[0, 47] [4, 103] [1, 1] : tensor<4x150xf32> to tensor<4x103xf32>
      %b0 = tensor.extract_slice %b[0, 0] [47, 300] [1, 1] : tensor<150x300xf32> to tensor<47x300xf32>
      %b1 = tensor.extract_slice %b[47, 0] [103, 300] [1, 1] : tensor<150x300xf32> to tensor<103x300xf32>
      %0 = linalg.matmul ins(%a1, %b1 : tensor<4x103xf32>, tensor<103x300xf32>)
                         outs(%z : tensor<4x300xf32>) -> tensor<4x300xf32>
      %1 = linalg.matmul ins(%a0, %b0 : tensor<4x47xf32>, tensor<47x300xf32>)
                         outs(%z : tensor<4x300xf32>) -> tensor<4x300xf32>
      %2 = arith.addf %0, %1 : tensor<4x300xf32>
      return %2 : tensor<4x300xf32>
    })mlir",
                                 arguments);
  auto byRows = evaluateExactly(R"mlir(
    func.func @f(%a: tensor<4x150xf32>, %b: tensor<150x300xf32>) -> tensor<4x300xf32> {
      %e = tensor.empty() : tensor<4x300xf32>
      %z = arith.constant dense<0.0> : tensor<2x300xf32>
      %a0 = tensor.extract_slice %a[0, 0] [2, 150] [2, 1] : tensor<4x150xf32> to tensor<2x150xf32>
      %a1 = tensor.extract_slice %a[1, 0] [2, 150] [2, 1] : tensor<4x150xf32> to tensor<2x150xf32>
      %0 = linalg.matmul ins(%a0, %b : tensor<2x150xf32>, tensor<150x300xf32>)
                         outs(%z : tensor<2x300xf32>) -> tensor<2x300xf32>
      %1 = linalg.matmul ins(%a1, %b : tensor<2x150xf32>, tensor<150x300xf32>)
                         outs(%z : tensor<2x300xf32>) -> tensor<2x300xf32>
      %2 = tensor.insert_slice %0 into %e[0, 0] [2, 300] [2, 1] : tensor<2x300xf32> into tensor<4x300xf32>
      %3 = tensor.insert_slice %1 into %2[1, 0] [2, 300] [2, 1] : tensor<2x300xf32> into tensor<4x300xf32>
      return %3 : tensor<4x300xf32>
    })mlir",
                                arguments);
  EXPECT_TRUE(areEqual(whole[0], byTerms[0]));
  EXPECT_TRUE(areEqual(whole[0], byRows[0]));
}

TEST_F(Exact, SumsInAnyOrder) {
  auto results = evaluateExactly(R"mlir(
    func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = arith.addf %a, %b : tensor<4xf32>
      %1 = arith.addf %0, %c : tensor<4xf32>
      %2 = arith.addf %c, %b : tensor<4xf32>
      %3 = arith.addf %a, %2 : tensor<4xf32>
      return %1, %3 : tensor<4xf32>, tensor<4xf32>
    })mlir",
                                 {getRandom(4), getRandom(4), getRandom(4)});
  EXPECT_TRUE(areEqual(results[0], results[1]));
}

// The weight's gradient over all rows is the sum over two halves; the rows of the input's gradient are their own.
TEST_F(Exact, NormGradSplitsByRows) {
  auto results = evaluateExactly(R"mlir(
    func.func @f(%dy: tensor<4x3xf32>, %x: tensor<4x3xf32>, %w: tensor<3xf32>, %i: tensor<4xf32>)
        -> (tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
      %dx, %dw = moe.rms_norm_grad %dy, %x, %w, %i
          : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>, tensor<4xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
      %dy0 = tensor.extract_slice %dy[0, 0] [2, 3] [1, 1] : tensor<4x3xf32> to tensor<2x3xf32>
      %dy1 = tensor.extract_slice %dy[2, 0] [2, 3] [1, 1] : tensor<4x3xf32> to tensor<2x3xf32>
      %x0 = tensor.extract_slice %x[0, 0] [2, 3] [1, 1] : tensor<4x3xf32> to tensor<2x3xf32>
      %x1 = tensor.extract_slice %x[2, 0] [2, 3] [1, 1] : tensor<4x3xf32> to tensor<2x3xf32>
      %i0 = tensor.extract_slice %i[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
      %i1 = tensor.extract_slice %i[2] [2] [1] : tensor<4xf32> to tensor<2xf32>
      %dx0, %dw0 = moe.rms_norm_grad %dy0, %x0, %w, %i0
          : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
      %dx1, %dw1 = moe.rms_norm_grad %dy1, %x1, %w, %i1
          : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
      %sum = arith.addf %dw1, %dw0 : tensor<3xf32>
      %last = tensor.extract_slice %dx[2, 0] [2, 3] [1, 1] : tensor<4x3xf32> to tensor<2x3xf32>
      return %dw, %sum, %last, %dx1 : tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
    })mlir",
                                 {getRandom(12), getRandom(12), getRandom(3), getRandom(4)});
  EXPECT_TRUE(areEqual(results[0], results[1]));
  EXPECT_TRUE(areEqual(results[2], results[3]));
}

// Gradients of keys and values are sums over query heads: the two heads of one key head together, and one by one.
TEST_F(Exact, AttentionGradSplitsByQueryHeads) {
  auto head = [](int index) {
    return llvm::formatv(R"mlir(
      %q{0} = tensor.extract_slice %q[0, {0}, 0] [3, 1, 2] [1, 1, 1] : tensor<3x2x2xf32> to tensor<3x1x2xf32>
      %d{0} = tensor.extract_slice %d[0, {0}, 0] [3, 1, 2] [1, 1, 1] : tensor<3x2x2xf32> to tensor<3x1x2xf32>
      %o{0}, %l{0} = moe.attention %q{0}, %k, %v, %s scale(1.0) : (tensor<3x1x2xf32>, tensor<3x1x2xf32>,
          tensor<3x1x2xf32>, tensor<3xi32>) -> (tensor<3x1x2xf32>, tensor<3x1xf32>)
      %dq{0}, %dk{0}, %dv{0} = moe.attention_grad %d{0}, %q{0}, %k, %v, %s, %o{0}, %l{0} scale(1.0) : (
          tensor<3x1x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>, tensor<3xi32>, tensor<3x1x2xf32>,
          tensor<3x1xf32>)
          -> (tensor<3x1x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>))mlir",
                         index)
        .str();
  };
  std::string text = R"mlir(
    func.func @f(%d: tensor<3x2x2xf32>, %q: tensor<3x2x2xf32>, %k: tensor<3x1x2xf32>, %v: tensor<3x1x2xf32>,
                 %s: tensor<3xi32>) -> (tensor<3x1x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>) {
      %o, %l = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<3x2x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>,
          tensor<3xi32>) -> (tensor<3x2x2xf32>, tensor<3x2xf32>)
      %dq, %dk, %dv = moe.attention_grad %d, %q, %k, %v, %s, %o, %l scale(1.0) : (tensor<3x2x2xf32>,
          tensor<3x2x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>, tensor<3xi32>, tensor<3x2x2xf32>, tensor<3x2xf32>)
          -> (tensor<3x2x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>))mlir" +
                     head(0) + head(1) + R"mlir(
      %dks = arith.addf %dk1, %dk0 : tensor<3x1x2xf32>
      %dvs = arith.addf %dv1, %dv0 : tensor<3x1x2xf32>
      return %dk, %dv, %dks, %dvs : tensor<3x1x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>
    })mlir";
  auto results = evaluateExactly(text, {getRandom(12), getRandom(12), getRandom(6), getRandom(6), {0, 0, 1}});
  EXPECT_TRUE(areEqual(results[0], results[2]));
  EXPECT_TRUE(areEqual(results[1], results[3]));
}

// A document does not depend on what stands before it.
TEST_F(Exact, AttentionOfADocument) {
  StringRef text = R"mlir(
    func.func @f(%q: tensor<4x1x2xf32>, %k: tensor<4x1x2xf32>, %v: tensor<4x1x2xf32>, %s: tensor<4xi32>)
        -> (tensor<4x1x2xf32>, tensor<2x1x2xf32>) {
      %o, %l = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<4x1x2xf32>, tensor<4x1x2xf32>, tensor<4x1x2xf32>,
          tensor<4xi32>) -> (tensor<4x1x2xf32>, tensor<4x1xf32>)
      %last = tensor.extract_slice %o[2, 0, 0] [2, 1, 2] [1, 1, 1] : tensor<4x1x2xf32> to tensor<2x1x2xf32>
      return %o, %last : tensor<4x1x2xf32>, tensor<2x1x2xf32>
    })mlir";
  std::vector<Numbers> arguments = {getRandom(8), getRandom(8), getRandom(8), {0, 0, 2, 2}};
  auto before = evaluateExactly(text, arguments);
  for (unsigned index : {0, 1, 2})
    arguments[index][1] += 1; // the first token
  auto after = evaluateExactly(text, arguments);
  EXPECT_FALSE(areEqual(before[0], after[0]));
  EXPECT_TRUE(areEqual(before[1], after[1]));
}

TEST_F(Exact, EveryElementOfARowCounts) {
  StringRef text = R"mlir(
    func.func @f(%x: tensor<2x3xf32>, %w: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>) {
      %y, %i = moe.rms_norm %x, %w epsilon(1.0) : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
      %z, %z_lse = moe.log_softmax %x vocabulary<size = 3>
        : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
      return %y, %z, %i : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>
    })mlir";
  std::vector<Numbers> arguments = {getRandom(6), getRandom(3)};
  auto before = evaluateExactly(text, arguments);
  arguments[0][5] += 1; // the last element of the second row
  auto after = evaluateExactly(text, arguments);
  for (unsigned result : {0, 1})
    for (unsigned i = 0; i < 6; ++i)
      EXPECT_EQ(before[result].get<Field>()[i] == after[result].get<Field>()[i], i < 3) << result << ", " << i;
  EXPECT_EQ(before[2].get<Field>()[0], after[2].get<Field>()[0]);
  EXPECT_NE(before[2].get<Field>()[1], after[2].get<Field>()[1]);
}

TEST_F(Exact, UndefinedElementsAreNotRead) {
  func::FuncOp function = parse(R"mlir(
    func.func @f(%a: tensor<1xf32>) -> tensor<3xf32> {
      %0 = tensor.empty() : tensor<3xf32>
      %1 = tensor.insert_slice %a into %0[0] [1] [1] : tensor<1xf32> into tensor<3xf32>
      %2 = arith.addf %1, %1 : tensor<3xf32>
      return %2 : tensor<3xf32>
    })mlir");
  errors.clear();
  EXPECT_TRUE(failed(Interpreter::evaluate(function, 1, Mode::Exact, {{Tensor::make({1}, Field())}})));
  EXPECT_EQ(errors, "'arith.addf' op rank 0: reads element 1 of a value to which nothing was stored\n");
}

TEST_F(Exact, UndefinedAccumulatorsAreNotRead) {
  func::FuncOp function = parse(R"mlir(
    func.func @f(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = tensor.empty() : tensor<2x2xf32>
      %1 = linalg.matmul ins(%a, %a : tensor<2x2xf32>, tensor<2x2xf32>) outs(%0 : tensor<2x2xf32>) -> tensor<2x2xf32>
      return %1 : tensor<2x2xf32>
    })mlir");
  errors.clear();
  EXPECT_TRUE(failed(Interpreter::evaluate(function, 1, Mode::Exact, {{Tensor::make({2, 2}, Field())}})));
  EXPECT_EQ(errors, "'linalg.matmul' op rank 0: reads element 0 of a value to which nothing was stored\n");
}
} // namespace
