//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "kernels_support.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

// Computed apart from this code with 80 decimal digits: the frequency rounded to f32, its product with the position
// rounded to f32, and the cosine and sine of that number.
TEST(RotaryTable, IsRightFarOut) {
  struct Case {
    int32_t position;
    double theta;
    int64_t half, frequency;
    double cos, sin;
  };
  const Case cases[] = {
      {1048575, 1e4, 32, 0, 0.7880422395, -0.6156211731},    {1048575, 1e4, 32, 1, 0.0915304346, -0.9958022793},
      {1048575, 1e4, 32, 5, 0.7449031701, -0.6671725917},    {1048575, 1e6, 64, 3, 0.0518343877, 0.9986556945},
      {1048575, 1e4, 32, 31, -0.0288500845, 0.9995837497},   {-7, 1e4, 32, 2, -0.7004298139, 0.7137212872},
      {2147483647, 1e4, 32, 0, 0.2378161946, -0.9713101758}, {1048575, 5e5, 40, 17, -0.9894000948, 0.1452151938}};
  for (const Case &c : cases) {
    Tensor cos(PLR_F32, 2 * c.half), sin(PLR_F32, 2 * c.half);
    const int32_t positions[] = {0, c.position};
    host::rotaryTable(2, c.half, c.theta, positions, cos.floats(), sin.floats());
    EXPECT_TRUE(cos.endIsIntact() && sin.endIsIntact());
    for (int64_t j = 0; j < c.half; ++j) {
      EXPECT_EQ(cos[j], 1);
      EXPECT_EQ(sin[j], 0);
    }
    EXPECT_NEAR(cos[c.half + c.frequency], c.cos, 1e-6) << c.position << " " << c.frequency;
    EXPECT_NEAR(sin[c.half + c.frequency], c.sin, 1e-6) << c.position << " " << c.frequency;
  }
}

TEST(RotaryTable, NegativePositionsTurnBack) {
  const int32_t positions[] = {-12345, 12345};
  Tensor cos(PLR_F32, 10), sin(PLR_F32, 10);
  host::rotaryTable(2, 5, 1e4, positions, cos.floats(), sin.floats());
  for (int64_t j = 0; j < 5; ++j) {
    EXPECT_EQ(cos[j], cos[5 + j]);
    EXPECT_EQ(sin[j], -sin[5 + j]);
  }
}

class Rotary : public KernelTest {};

TEST_P(Rotary, TurnsBothWays) {
  for (int64_t half : {1, 3, 16, 20, 37, 64})
    for (int64_t rows : {0, 1, 5}) {
      const int64_t heads = 3;
      Tensor input = randomTensor(type, rows * heads * 2 * half, 1), cos(PLR_F32, rows * half),
             sin(PLR_F32, rows * half);
      for (int64_t i = 0; i < rows * half; ++i) {
        cos.set(i, std::cos(0.7 * i));
        sin.set(i, std::sin(0.7 * i));
      }
      for (bool inverse : {false, true}) {
        Tensor result(type, input.size());
        variant->rotary(type, rows, heads, half, inverse, input.data(), cos.floats(), sin.floats(), result.data());
        std::vector<double> expected(input.size());
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t head = 0; head < heads; ++head)
            for (int64_t j = 0; j < half; ++j) {
              int64_t at = (row * heads + head) * 2 * half + j;
              double a = input[at], b = input[at + half];
              double c = cos[row * half + j], s = inverse ? -sin[row * half + j] : sin[row * half + j];
              expected[at] = a * c - b * s;
              expected[at + half] = b * c + a * s;
            }
        expectClose(type, result, expected, 2e-7, inverse ? "inverse" : "forward");
      }
    }
}

PLATEAU_KERNEL_TEST(Rotary);

} // namespace
