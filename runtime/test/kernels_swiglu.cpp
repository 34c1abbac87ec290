//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels_support.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

double silu(double gate) { return gate / (1 + std::exp(-gate)); }

/// The equations, in double.
struct Reference {
  int64_t rows, columns;
  std::vector<double> input;

  std::vector<double> forward() const {
    std::vector<double> result(rows * columns);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < columns; ++j)
        result[row * columns + j] = silu(input[2 * row * columns + j]) * input[(2 * row + 1) * columns + j];
    return result;
  }
};

struct Problem {
  plr_type type;
  int64_t rows, columns;
  Tensor input, cotangent, result, inputGrad;

  Problem(plr_type type, int64_t rows, int64_t columns)
      : type(type), rows(rows), columns(columns), input(randomTensor(type, 2 * rows * columns, 1, 3)),
        cotangent(randomTensor(type, rows * columns, 2)), result(type, rows * columns),
        inputGrad(type, 2 * rows * columns) {}
  void run(const host::Variant &variant) {
    variant.swiglu(type, rows, columns, input.data(), result.data());
    variant.swigluGrad(type, rows, columns, cotangent.data(), input.data(), inputGrad.data());
    EXPECT_TRUE(result.endIsIntact());
    EXPECT_TRUE(inputGrad.endIsIntact());
  }
};

class SwiGLU : public KernelTest {};

TEST_P(SwiGLU, AgreesWithTheEquations) {
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {0, 9}, {9, 0}, {2, 16}, {5, 33}, {7, 64}, {2, 1003}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << columns);
    Problem problem(type, rows, columns);
    problem.run(*variant);
    Reference reference{rows, columns, problem.input.values()};
    expectClose(type, problem.result, reference.forward(), 3e-7, "result");
  }
}

TEST_P(SwiGLU, GradientIsThatOfTheForwardEquations) {
  Problem problem(type, 4, 21);
  problem.run(*variant);
  Reference reference{4, 21, problem.input.values()};
  std::vector<double> cotangent = problem.cotangent.values();
  auto loss = [&] {
    std::vector<double> result = reference.forward();
    double sum = 0;
    for (size_t i = 0; i < result.size(); ++i)
      sum += result[i] * cotangent[i];
    return sum;
  };
  expectClose(type, problem.inputGrad, differences(loss, reference.input), 1e-6, "gradient");
}

// Far below zero silu and its slope vanish, far above they are the gate and 1, whatever the other numbers are.
TEST_P(SwiGLU, LargeGates) {
  const std::vector<double> gates = {-3e38, -1e30, -1e4, -200, -104, -90, -88,  -80,
                                     -50,   0,     50,   90,   200,  1e4, 1e30, 3e38};
  int64_t count = static_cast<int64_t>(gates.size());
  Problem problem(type, 1, count);
  for (int64_t j = 0; j < count; ++j) {
    problem.input.set(j, gates[j]);
    problem.input.set(count + j, j % 2 ? 1 : -0.5);
    problem.cotangent.set(j, j % 3 ? 2 : -1);
  }
  problem.run(*variant);
  for (int64_t j = 0; j < count; ++j) {
    double gate = problem.input[j], up = problem.input[count + j], dy = problem.cotangent[j];
    double value = gate < -80 ? 0 : silu(gate), sigmoid = 1 / (1 + std::exp(-gate));
    double slope = gate < -80 ? 0 : sigmoid * (1 + gate / (1 + std::exp(gate)));
    double unit = type == PLR_BF16 ? 0x1p-8 : 0x1p-22;
    EXPECT_NEAR(problem.result[j], value * up, 1e-30 + unit * std::abs(value * up)) << gate;
    EXPECT_NEAR(problem.inputGrad[j], dy * slope * up, 1e-30 + unit * std::abs(dy * slope * up)) << gate;
    EXPECT_NEAR(problem.inputGrad[count + j], dy * value, 1e-30 + unit * std::abs(dy * value)) << gate;
  }
}

TEST_P(SwiGLU, NotANumberStaysInItsElement) {
  Problem problem(type, 1, 40);
  problem.input.set(3, NAN);
  problem.input.set(40 + 37, NAN);
  problem.run(*variant);
  for (int64_t j = 0; j < 40; ++j) {
    EXPECT_EQ(std::isnan(problem.result[j]), j == 3 || j == 37) << j;
    EXPECT_EQ(std::isnan(problem.inputGrad[j]), j == 3 || j == 37) << j;
    EXPECT_EQ(std::isnan(problem.inputGrad[40 + j]), j == 3) << j;
  }
}

// A row's bits do not hang on where it lies, nor an element's on whether it falls into the last vector.
TEST_P(SwiGLU, ElementsKeepTheirBits) {
  Problem wide(type, 1, 64), narrow(type, 1, 37);
  for (int64_t j = 0; j < 37; ++j) {
    narrow.input.set(j, wide.input[j]);
    narrow.input.set(37 + j, wide.input[64 + j]);
    narrow.cotangent.set(j, wide.cotangent[j]);
  }
  wide.run(*variant);
  narrow.run(*variant);
  EXPECT_TRUE(narrow.result.sameBits(wide.result.slice(0, 37)));
  EXPECT_TRUE(narrow.inputGrad.slice(0, 37).sameBits(wide.inputGrad.slice(0, 37)));
  EXPECT_TRUE(narrow.inputGrad.slice(37, 37).sameBits(wide.inputGrad.slice(64, 37)));
}

PLATEAU_KERNEL_TEST(SwiGLU);

} // namespace
