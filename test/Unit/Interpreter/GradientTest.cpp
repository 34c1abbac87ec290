//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The gradient of each op against central differences of its forward op, in float64: once by the op's adjoint op as it
// stands in the text of a test, once by the adjoint that DifferentiableOpInterface builds.
//===----------------------------------------------------------------------===//

#include "AdjointTest.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class Gradient : public AdjointTest {
protected:
  /// ⟨cotangent, first result of `forward`⟩
  double contract(func::FuncOp forward, ArrayRef<Numbers> arguments, const Numbers &cotangent) {
    Numbers result = evaluate(forward, arguments)[0];
    double sum = 0;
    for (size_t i = 0; i < result.size(); ++i)
      sum += cotangent[i] * result[i];
    return sum;
  }

  /// Central differences by argument `index`. Their error is of order step², a third derivative, and eps/step.
  Numbers getDifferences(func::FuncOp forward, std::vector<Numbers> arguments, unsigned index,
                         const Numbers &cotangent) {
    constexpr double step = 1e-5;
    Numbers differences;
    for (double &number : arguments[index]) {
      double middle = number;
      number = middle + step;
      double above = contract(forward, arguments, cotangent);
      number = middle - step;
      double below = contract(forward, arguments, cotangent);
      number = middle;
      differences.push_back((above - below) / (2 * step));
    }
    return differences;
  }

  static void expectGradient(const Numbers &actual, const Numbers &expected, unsigned index) {
    ASSERT_EQ(actual.size(), expected.size());
    double largest = 0;
    for (double number : expected)
      largest = std::max(largest, std::abs(number));
    EXPECT_GT(largest, 1e-3) << "the test says nothing about argument " << index;
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-8 * largest) << "argument " << index << ", element " << i;
  }

  /// @forward(arguments) has one result that counts, its first; @gradient(cotangent, arguments) gives the gradient of
  /// each floating-point argument in `wanted`.
  void checkGradientOp(StringRef text, const std::vector<Numbers> &arguments, ArrayRef<unsigned> wanted) {
    func::FuncOp forward = parse(text, "forward");
    auto gradient = forward->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>("gradient");
    std::vector<Numbers> withCotangent = {
        getRandom(cast<RankedTensorType>(forward.getResultTypes()[0]).getNumElements())};
    withCotangent.insert(withCotangent.end(), arguments.begin(), arguments.end());
    std::vector<Numbers> gradients = evaluate(gradient, withCotangent);
    ASSERT_EQ(gradients.size(), wanted.size());
    for (auto [index, actual] : llvm::zip_equal(wanted, gradients))
      expectGradient(actual, getDifferences(forward, arguments, index, withCotangent[0]), index);
  }

  /// The gradients that DifferentiableOpInterface builds for @f(arguments) -> result, against central differences.
  void checkAdjoint(StringRef text, const std::vector<Numbers> &arguments) {
    func::FuncOp function = parse(text);
    func::FuncOp adjoint = buildAdjoint(function);
    if (!adjoint)
      return;
    std::vector<Numbers> withCotangent = arguments;
    withCotangent.push_back(getRandom(cast<RankedTensorType>(function.getResultTypes()[0]).getNumElements()));
    std::vector<Numbers> gradients = evaluate(adjoint, withCotangent);
    for (auto [index, actual] : llvm::zip_equal(getFloatArguments(function), gradients))
      expectGradient(actual, getDifferences(function, arguments, index, withCotangent.back()), index);
  }
};

TEST_F(Gradient, RMSNormOfRows) {
  std::vector<Numbers> arguments = {getRandom(15), getRandom(5)};
  checkGradientOp(R"mlir(
    func.func @forward(%x: tensor<3x5xf32>, %w: tensor<5xf32>) -> tensor<3x5xf32> {
      %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-02)
          : (tensor<3x5xf32>, tensor<5xf32>) -> (tensor<3x5xf32>, tensor<3xf32>)
      return %y : tensor<3x5xf32>
    }
    func.func @gradient(%dy: tensor<3x5xf32>, %x: tensor<3x5xf32>, %w: tensor<5xf32>)
        -> (tensor<3x5xf32>, tensor<5xf32>) {
      %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-02)
          : (tensor<3x5xf32>, tensor<5xf32>) -> (tensor<3x5xf32>, tensor<3xf32>)
      %dx, %dw = moe.rms_norm_grad %dy, %x, %w, %inverse
          : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<5xf32>, tensor<3xf32>) -> (tensor<3x5xf32>, tensor<5xf32>)
      return %dx, %dw : tensor<3x5xf32>, tensor<5xf32>
    })mlir",
                  arguments, {0, 1});
}

constexpr StringLiteral normOfHeads = R"mlir(
    func.func @f(%x: tensor<3x2x5xbf16>, %w: tensor<5xbf16>) -> tensor<3x2x5xbf16> {
      %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-06)
          : (tensor<3x2x5xbf16>, tensor<5xbf16>) -> (tensor<3x2x5xbf16>, tensor<3x2xf32>)
      return %y : tensor<3x2x5xbf16>
    })mlir";

TEST_F(Gradient, RMSNormOfHeads) { checkAdjoint(normOfHeads, {getRandom(30), getRandom(5)}); }

TEST_F(Gradient, Rotary) {
  checkGradientOp(R"mlir(
    func.func @forward(%x: tensor<3x2x4xf32>, %p: tensor<3xi32>) -> tensor<3x2x4xf32> {
      %cos, %sin = moe.rotary_table %p theta(1.0e+02) : (tensor<3xi32>) -> (tensor<3x2xf32>, tensor<3x2xf32>)
      %y = moe.rotary %x, %cos, %sin : (tensor<3x2x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2x4xf32>
      return %y : tensor<3x2x4xf32>
    }
    func.func @gradient(%dy: tensor<3x2x4xf32>, %x: tensor<3x2x4xf32>, %p: tensor<3xi32>) -> tensor<3x2x4xf32> {
      %cos, %sin = moe.rotary_table %p theta(1.0e+02) : (tensor<3xi32>) -> (tensor<3x2xf32>, tensor<3x2xf32>)
      %dx = moe.rotary %dy, %cos, %sin inverse
          : (tensor<3x2x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2x4xf32>
      return %dx : tensor<3x2x4xf32>
    })mlir",
                  {getRandom(24), {0, 3, 17}}, {0});
}

TEST_F(Gradient, RotaryByItsInterface) {
  checkAdjoint(R"mlir(
    func.func @f(%x: tensor<3x2x4xf32>, %p: tensor<3xi32>) -> tensor<3x2x4xf32> {
      %cos, %sin = moe.rotary_table %p theta(1.0e+02) : (tensor<3xi32>) -> (tensor<3x2xf32>, tensor<3x2xf32>)
      %y = moe.rotary %x, %cos, %sin inverse
          : (tensor<3x2x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2x4xf32>
      return %y : tensor<3x2x4xf32>
    })mlir",
               {getRandom(24), {1, 5, 2}});
}

// Three documents of 3, 3 and 1 tokens; two query heads share each key head.
TEST_F(Gradient, Attention) {
  checkGradientOp(R"mlir(
    func.func @forward(%q: tensor<7x4x3xf32>, %k: tensor<7x2x3xf32>, %v: tensor<7x2x3xf32>, %s: tensor<7xi32>)
        -> tensor<7x4x3xf32> {
      %o, %lse = moe.attention %q, %k, %v, %s scale(1.5) : (tensor<7x4x3xf32>, tensor<7x2x3xf32>, tensor<7x2x3xf32>,
          tensor<7xi32>) -> (tensor<7x4x3xf32>, tensor<7x4xf32>)
      return %o : tensor<7x4x3xf32>
    }
    func.func @gradient(%do: tensor<7x4x3xf32>, %q: tensor<7x4x3xf32>, %k: tensor<7x2x3xf32>, %v: tensor<7x2x3xf32>,
                        %s: tensor<7xi32>) -> (tensor<7x4x3xf32>, tensor<7x2x3xf32>, tensor<7x2x3xf32>) {
      %o, %lse = moe.attention %q, %k, %v, %s scale(1.5) : (tensor<7x4x3xf32>, tensor<7x2x3xf32>, tensor<7x2x3xf32>,
          tensor<7xi32>) -> (tensor<7x4x3xf32>, tensor<7x4xf32>)
      %dq, %dk, %dv = moe.attention_grad %do, %q, %k, %v, %s, %o, %lse scale(1.5) : (tensor<7x4x3xf32>,
          tensor<7x4x3xf32>, tensor<7x2x3xf32>, tensor<7x2x3xf32>, tensor<7xi32>, tensor<7x4x3xf32>, tensor<7x4xf32>)
          -> (tensor<7x4x3xf32>, tensor<7x2x3xf32>, tensor<7x2x3xf32>)
      return %dq, %dk, %dv : tensor<7x4x3xf32>, tensor<7x2x3xf32>, tensor<7x2x3xf32>
    })mlir",
                  {getRandom(84), getRandom(42), getRandom(42), {0, 0, 0, 3, 3, 3, 6}}, {0, 1, 2});
}

TEST_F(Gradient, AttentionByItsInterface) {
  checkAdjoint(R"mlir(
    func.func @f(%q: tensor<5x3x2xf32>, %k: tensor<5x1x2xf32>, %v: tensor<5x1x2xf32>, %s: tensor<5xi32>)
        -> tensor<5x3x2xf32> {
      %o, %lse = moe.attention %q, %k, %v, %s scale(0.5) : (tensor<5x3x2xf32>, tensor<5x1x2xf32>, tensor<5x1x2xf32>,
          tensor<5xi32>) -> (tensor<5x3x2xf32>, tensor<5x3xf32>)
      return %o : tensor<5x3x2xf32>
    })mlir",
               {getRandom(30), getRandom(10), getRandom(10), {0, 1, 1, 1, 1}});
}

TEST_F(Gradient, LogSoftmax) {
  checkGradientOp(R"mlir(
    func.func @forward(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
      %y, %y_lse = moe.log_softmax %x vocabulary<size = 4>
        : (tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>)
      return %y : tensor<3x4xf32>
    }
    func.func @gradient(%dy: tensor<3x4xf32>, %x: tensor<3x4xf32>) -> tensor<3x4xf32> {
      %y, %y_lse = moe.log_softmax %x vocabulary<size = 4>
        : (tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>)
      %dx = moe.log_softmax_grad %dy, %y, %y_lse vocabulary<size = 4>
        : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
      return %dx : tensor<3x4xf32>
    })mlir",
                  {getRandom(12)}, {0});
}

TEST_F(Gradient, NegativeLogLikelihood) {
  checkGradientOp(R"mlir(
    func.func @forward(%p: tensor<4x3xf32>, %p_lse: tensor<4xf32>, %labels: tensor<4xi32>) -> tensor<f32> {
      %count = moe.count_labels %labels ignore_index(-100) : tensor<4xi32>
      %loss_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 3>
        : (tensor<4x3xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
      %loss = moe.mean_loss %loss_rows over %count : tensor<4xf32>
      return %loss : tensor<f32>
    }
    func.func @gradient(%dl: tensor<f32>, %p: tensor<4x3xf32>, %p_lse: tensor<4xf32>, %labels: tensor<4xi32>)
        -> tensor<4x3xf32> {
      %count = moe.count_labels %labels ignore_index(-100) : tensor<4xi32>
      %dl_rows = moe.mean_loss_grad %dl over %count : tensor<4xf32>
      %dp, %dp_lse = moe.nll_grad %dl_rows, %p_lse, %labels vocabulary<size = 3>
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) -> (tensor<4x3xf32>, tensor<4xf32>)
      return %dp : tensor<4x3xf32>
    })mlir",
                  {getRandom(12), getRandom(4), {2, -100, 0, 2}}, {0});
}

TEST_F(Gradient, Embedding) {
  checkGradientOp(R"mlir(
    func.func @forward(%t: tensor<4x3xf32>, %ids: tensor<5xi32>) -> tensor<5x3xf32> {
      %x = moe.embedding %t, %ids : (tensor<4x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
      return %x : tensor<5x3xf32>
    }
    func.func @gradient(%dx: tensor<5x3xf32>, %t: tensor<4x3xf32>, %ids: tensor<5xi32>) -> tensor<4x3xf32> {
      %dt = moe.embedding_grad %dx, %ids : (tensor<5x3xf32>, tensor<5xi32>) -> tensor<4x3xf32>
      return %dt : tensor<4x3xf32>
    })mlir",
                  {getRandom(12), {1, 3, 1, 0, 3}}, {0});
}

// silu(a) · b − min(a, b) / exp(b), through bf16 and back: every elementwise op that has an adjoint.
TEST_F(Gradient, Elementwise) {
  checkAdjoint(R"mlir(
    func.func @f(%a: tensor<2x3xbf16>, %b: tensor<2x3xf32>) -> tensor<2x3xbf16> {
      %x = arith.extf %a : tensor<2x3xbf16> to tensor<2x3xf32>
      %one = arith.constant dense<1.0> : tensor<2x3xf32>
      %n = arith.negf %x : tensor<2x3xf32>
      %e = math.exp %n : tensor<2x3xf32>
      %d = arith.addf %one, %e : tensor<2x3xf32>
      %s = arith.divf %x, %d : tensor<2x3xf32>
      %y = arith.mulf %s, %b : tensor<2x3xf32>
      %m = arith.minimumf %x, %b : tensor<2x3xf32>
      %eb = math.exp %b : tensor<2x3xf32>
      %q = arith.divf %m, %eb : tensor<2x3xf32>
      %z = arith.subf %y, %q : tensor<2x3xf32>
      %r = arith.truncf %z : tensor<2x3xf32> to tensor<2x3xbf16>
      return %r : tensor<2x3xbf16>
    })mlir",
               {getRandom(6), getRandom(6)});
}

// A product in each of the four ways its operands may be stored, onto an accumulator; the result seen in two shapes.
TEST_F(Gradient, Matmul) {
  for (StringRef a : {"(m, k)", "(k, m)"})
    for (StringRef b : {"(k, n)", "(n, k)"}) {
      StringRef aType = a == "(m, k)" ? "tensor<4x3xf32>" : "tensor<3x4xf32>";
      StringRef bType = b == "(k, n)" ? "tensor<3x6xf32>" : "tensor<6x3xf32>";
      std::string text = llvm::formatv(R"mlir(
    func.func @f(%a: {2}, %b: {3}, %c: tensor<4x6xf32>) -> tensor<24xf32> {{
      %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> {0}>, affine_map<(m, n, k) -> {1}>,
                                          affine_map<(m, n, k) -> (m, n)>]
          ins(%a, %b : {2}, {3}) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
      %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [4, 2, 3] : tensor<4x6xf32> into tensor<4x2x3xf32>
      %2 = arith.mulf %1, %1 : tensor<4x2x3xf32>
      %3 = tensor.collapse_shape %2 [[0, 1, 2]] : tensor<4x2x3xf32> into tensor<24xf32>
      return %3 : tensor<24xf32>
    })mlir",
                                       a, b, aType, bType);
      SCOPED_TRACE(text);
      checkAdjoint(text, {getRandom(12), getRandom(18), getRandom(24)});
    }
}

/// A table, a norm, a log-softmax and the loss in a row.
constexpr StringLiteral smallLoss = R"mlir(
    func.func @f(%t: tensor<4x3xf32>, %w: tensor<3xf32>, %ids: tensor<5xi32>, %labels: tensor<5xi32>) -> tensor<f32> {
      %x = moe.embedding %t, %ids : (tensor<4x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
      %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-03)
          : (tensor<5x3xf32>, tensor<3xf32>) -> (tensor<5x3xf32>, tensor<5xf32>)
      %p, %p_lse = moe.log_softmax %y vocabulary<size = 3>
        : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<5xf32>)
      %count = moe.count_labels %labels ignore_index(-100) : tensor<5xi32>
      %loss_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 3>
        : (tensor<5x3xf32>, tensor<5xf32>, tensor<5xi32>) -> tensor<5xf32>
      %loss = moe.mean_loss %loss_rows over %count : tensor<5xf32>
      return %loss : tensor<f32>
    })mlir";

/// The same with the middle in a checkpoint region.
constexpr StringLiteral smallLossWithCheckpoint = R"mlir(
    func.func @f(%t: tensor<4x3xf32>, %w: tensor<3xf32>, %ids: tensor<5xi32>, %labels: tensor<5xi32>) -> tensor<f32> {
      %x = moe.embedding %t, %ids : (tensor<4x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
      %p, %p_lse = moe.checkpoint (%a = %x : tensor<5x3xf32>, %b = %w : tensor<3xf32>)
          -> (tensor<5x3xf32>, tensor<5xf32>) {
        %y, %inverse = moe.rms_norm %a, %b epsilon(1.0e-03)
            : (tensor<5x3xf32>, tensor<3xf32>) -> (tensor<5x3xf32>, tensor<5xf32>)
        %q, %q_lse = moe.log_softmax %y vocabulary<size = 3>
          : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<5xf32>)
        moe.yield %q, %q_lse : tensor<5x3xf32>, tensor<5xf32>
      }
      %count = moe.count_labels %labels ignore_index(-100) : tensor<5xi32>
      %loss_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 3>
        : (tensor<5x3xf32>, tensor<5xf32>, tensor<5xi32>) -> tensor<5xf32>
      %loss = moe.mean_loss %loss_rows over %count : tensor<5xf32>
      return %loss : tensor<f32>
    })mlir";

TEST_F(Gradient, SmallLoss) {
  checkAdjoint(smallLoss, {getRandom(12), getRandom(3), {1, 3, 1, 0, 2}, {2, 0, 1, -100, 0}});
}

TEST_F(Gradient, Checkpoint) {
  checkAdjoint(smallLossWithCheckpoint, {getRandom(12), getRandom(3), {1, 3, 1, 0, 2}, {2, 0, 1, -100, 0}});
}

TEST_F(Gradient, CheckpointChangesNoBit) {
  std::vector<Numbers> arguments = {getRandom(12), getRandom(3), {1, 3, 1, 0, 2}, {2, 0, 1, -100, 0}, {1}};
  func::FuncOp plain = buildAdjoint(parse(smallLoss)), region = buildAdjoint(parse(smallLossWithCheckpoint));
  ASSERT_TRUE(plain && region);
  EXPECT_EQ(evaluate(plain, arguments), evaluate(region, arguments));
  auto exactPlain = evaluateExactly(plain, arguments), exactRegion = evaluateExactly(region, arguments);
  ASSERT_EQ(exactPlain.size(), 2u);
  for (auto [a, b] : llvm::zip_equal(exactPlain, exactRegion))
    EXPECT_TRUE(areEqual(a, b));
}
} // namespace
