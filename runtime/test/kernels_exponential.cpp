//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels_support.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

class Exponential : public KernelTest {};

TEST_P(Exponential, WithinTwoUnitsInTheLastPlace) {
  std::vector<float> values, results;
  for (double x = -104; x < 89; x += 1e-4)
    values.push_back(static_cast<float>(x));
  results.assign(values.size(), NAN);
  variant->exponentials(values.size(), values.data(), results.data());
  for (size_t i = 0; i < values.size(); ++i) {
    double expected = std::exp(static_cast<double>(values[i]));
    if (expected > std::numeric_limits<float>::max()) {
      ASSERT_TRUE(std::isinf(results[i])) << values[i];
      continue;
    }
    int exponent;
    std::frexp(expected, &exponent);
    double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
    ASSERT_LT(std::abs(results[i] - expected), 2 * unit) << values[i];
  }
}

TEST_P(Exponential, AtTheEdges) {
  const float largest = std::numeric_limits<float>::max();
  std::vector<float> values = {0, -0.0f, -INFINITY, -largest, -1000, INFINITY, largest, 1000, NAN, -NAN}, results(10);
  variant->exponentials(values.size(), values.data(), results.data());
  EXPECT_EQ(results[0], 1);
  EXPECT_EQ(results[1], 1);
  for (int i = 2; i < 5; ++i)
    EXPECT_EQ(results[i], 0) << i;
  for (int i = 5; i < 8; ++i)
    EXPECT_EQ(results[i], INFINITY) << i;
  EXPECT_TRUE(std::isnan(results[8]) && std::isnan(results[9]));
}

// An element has the same bits wherever it stands.
TEST_P(Exponential, DoesNotDependOnThePosition) {
  Tensor values = randomTensor(PLR_F32, 50, 1, 20), together(PLR_F32, 50);
  variant->exponentials(50, values.floats(), together.floats());
  EXPECT_TRUE(together.endIsIntact());
  for (int64_t i = 0; i < 50; ++i) {
    float alone;
    variant->exponentials(1, values.floats() + i, &alone);
    EXPECT_EQ(alone, together.floats()[i]);
  }
}

PLATEAU_KERNEL_TEST_F32(Exponential);

class HyperbolicTangent : public KernelTest {};

// Of the smallest numbers too: a logit far below its cap is hardly changed.
TEST_P(HyperbolicTangent, WithinFourUnitsInTheLastPlace) {
  std::vector<float> values, results;
  for (double x = 0x1p-140; x < 1e30; x *= 1.0003)
    for (double sign : {-1.0, 1.0})
      values.push_back(static_cast<float>(sign * x));
  for (double x = -12; x < 12; x += 1e-4)
    values.push_back(static_cast<float>(x));
  results.assign(values.size(), NAN);
  variant->hyperbolicTangents(values.size(), values.data(), results.data());
  for (size_t i = 0; i < values.size(); ++i) {
    double expected = std::tanh(static_cast<double>(values[i]));
    int exponent;
    std::frexp(expected, &exponent);
    double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
    ASSERT_LT(std::abs(results[i] - expected), 4 * unit) << values[i];
    ASSERT_LE(std::abs(results[i]), 1) << values[i];
  }
}

TEST_P(HyperbolicTangent, AtTheEdges) {
  std::vector<float> values = {0, -0.0f, -INFINITY, INFINITY, -1e38f, 1e38f, NAN, -NAN}, results(8);
  variant->hyperbolicTangents(values.size(), values.data(), results.data());
  EXPECT_EQ(results[0], 0);
  EXPECT_EQ(results[1], 0);
  for (int i = 2; i < 6; ++i)
    EXPECT_EQ(results[i], i % 2 ? 1 : -1) << i;
  EXPECT_TRUE(std::isnan(results[6]) && std::isnan(results[7]));
}

PLATEAU_KERNEL_TEST_F32(HyperbolicTangent);

} // namespace
