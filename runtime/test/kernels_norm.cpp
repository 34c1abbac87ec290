//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels_support.h"
#include "plateau/runtime_footprint.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

/// The equations, in double.
struct Reference {
  int64_t rows, columns;
  double epsilon;
  std::vector<double> input, weight;

  double inverse(int64_t row) const {
    double squares = 0;
    for (int64_t j = 0; j < columns; ++j)
      squares += input[row * columns + j] * input[row * columns + j];
    return 1 / std::sqrt(squares / columns + epsilon);
  }
  std::vector<double> forward() const {
    std::vector<double> output(input.size());
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < columns; ++j)
        output[row * columns + j] = input[row * columns + j] * inverse(row) * weight[j];
    return output;
  }
  void backward(const std::vector<double> &cotangent, std::vector<double> &inputGrad,
                std::vector<double> &weightGrad) const {
    inputGrad.assign(input.size(), 0);
    weightGrad.assign(columns, 0);
    for (int64_t row = 0; row < rows; ++row) {
      double scale = inverse(row), mean = 0;
      for (int64_t j = 0; j < columns; ++j) {
        double n = input[row * columns + j] * scale;
        mean += cotangent[row * columns + j] * weight[j] * n / columns;
        weightGrad[j] += cotangent[row * columns + j] * n;
      }
      for (int64_t j = 0; j < columns; ++j)
        inputGrad[row * columns + j] =
            scale * (cotangent[row * columns + j] * weight[j] - input[row * columns + j] * scale * mean);
    }
  }
};

struct Problem {
  plr_type type;
  int64_t rows, columns;
  float epsilon = 1e-6f;
  Tensor input, weight, cotangent, output, inverse, inputGrad, weightGrad;

  Problem(plr_type type, int64_t rows, int64_t columns)
      : type(type), rows(rows), columns(columns), input(randomTensor(type, rows * columns, 1, 3)),
        weight(randomTensor(type, columns, 2)), cotangent(randomTensor(type, rows * columns, 3)),
        output(type, rows * columns), inverse(PLR_F32, rows), inputGrad(type, rows * columns),
        weightGrad(type, columns) {}
  void run(const host::Variant &variant) {
    variant.rmsNorm(type, rows, columns, epsilon, input.data(), weight.data(), output.data(), inverse.floats());
    Tensor workspace(PLR_F32, plr_footprint_rms_norm_grad(columns) / 4);
    variant.rmsNormGrad(type, rows, columns, cotangent.data(), input.data(), weight.data(), inverse.floats(),
                        inputGrad.data(), weightGrad.data(), workspace.floats());
    EXPECT_TRUE(workspace.endIsIntact());
  }
  Reference reference() const { return {rows, columns, epsilon, input.values(), weight.values()}; }
};

class Norm : public KernelTest {};

TEST_P(Norm, AgreesWithTheEquations) {
  const std::pair<int64_t, int64_t> shapes[] = {{1, 7},   {3, 5},    {7, 64},   {130, 33},
                                                {65, 96}, {2, 8192}, {300, 17}, {5, 1003}};
  for (auto [rows, columns] : shapes) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << columns);
    Problem problem(type, rows, columns);
    problem.run(*variant);
    Reference reference = problem.reference();
    expectClose(type, problem.output, reference.forward(), 5e-7, "output");
    for (int64_t row = 0; row < rows; ++row)
      ASSERT_NEAR(problem.inverse[row] / reference.inverse(row), 1, 5e-7);
    std::vector<double> inputGrad, weightGrad;
    reference.backward(problem.cotangent.values(), inputGrad, weightGrad);
    expectClose(type, problem.inputGrad, inputGrad, 1e-6, "input gradient");
    expectClose(type, problem.weightGrad, weightGrad, 1e-6, "weight gradient");
  }
}

TEST_P(Norm, GradientIsThatOfTheForwardEquations) {
  Problem problem(type, 3, 5);
  problem.run(*variant);
  Reference reference = problem.reference();
  std::vector<double> cotangent = problem.cotangent.values();
  auto loss = [&] {
    std::vector<double> output = reference.forward();
    double sum = 0;
    for (size_t i = 0; i < output.size(); ++i)
      sum += output[i] * cotangent[i];
    return sum;
  };
  expectClose(type, problem.inputGrad, differences(loss, reference.input), 1e-6, "input gradient");
  expectClose(type, problem.weightGrad, differences(loss, reference.weight), 1e-6, "weight gradient");
}

// With all numbers equal the sums are known: rounding errors would all point one way.
TEST_P(Norm, LongSumsStayExact) {
  Problem problem(type, 50000, 3);
  for (int64_t i = 0; i < problem.input.size(); ++i) {
    problem.input.set(i, 1.25);
    problem.cotangent.set(i, 0.3);
  }
  problem.epsilon = 0;
  problem.run(*variant);
  for (int64_t j = 0; j < 3; ++j)
    EXPECT_NEAR(problem.weightGrad[j] / (50000 * problem.cotangent[0]), 1, type == PLR_BF16 ? 4e-3 : 2e-6);
  Problem wide(type, 1, 8192);
  for (int64_t i = 0; i < 8192; ++i)
    wide.input.set(i, 1.1);
  wide.epsilon = 0;
  wide.run(*variant);
  EXPECT_NEAR(wide.inverse[0] * wide.input[0], 1, 5e-7);
}

// A row of one number is a sign: nothing depends on its size, but for epsilon.
TEST_P(Norm, OneNumber) {
  Problem problem(type, 1, 1);
  problem.run(*variant);
  EXPECT_NEAR(problem.output[0], std::copysign(problem.weight[0], problem.input[0] * problem.weight[0]),
              type == PLR_BF16 ? 4e-3 : 1e-6);
  EXPECT_NEAR(problem.inputGrad[0], 0, 1e-6);
}

TEST_P(Norm, ZerosGiveZeros) {
  Problem problem(type, 2, 20);
  for (int64_t i = 0; i < 40; ++i)
    problem.input.set(i, 0);
  problem.run(*variant);
  EXPECT_NEAR(problem.inverse[0], 1000, 1e-3);
  for (int64_t i = 0; i < 40; ++i)
    EXPECT_EQ(problem.output[i], 0);
  for (int64_t j = 0; j < 20; ++j)
    EXPECT_EQ(problem.weightGrad[j], 0);
}

TEST_P(Norm, NoRows) {
  Problem problem(type, 0, 6);
  problem.run(*variant);
  for (int64_t j = 0; j < 6; ++j)
    EXPECT_EQ(problem.weightGrad[j], 0);
}

PLATEAU_KERNEL_TEST(Norm);

} // namespace
