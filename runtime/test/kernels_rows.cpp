//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels_support.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

class Rows : public KernelTest {};

// A product of two numbers of f32 is exact in double: what is stored is its one rounding to f32, and that to the type.
TEST_P(Rows, Scale) {
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {0, 9}, {9, 0}, {3, 5}, {4, 16}, {5, 33}, {2, 1003}}) {
    Tensor input = randomTensor(type, rows * columns, 1), factors = randomTensor(PLR_F32, rows, 2);
    Tensor result(type, rows * columns);
    variant->scaleRows(type, rows, columns, input.data(), factors.floats(), result.data());
    EXPECT_TRUE(result.endIsIntact());
    for (int64_t i = 0; i < rows * columns; ++i)
      ASSERT_EQ(result[i], roundTo(type, static_cast<float>(input[i] * factors[i / columns]))) << i;
  }
}

TEST_P(Rows, ScaleInPlace) {
  Tensor input = randomTensor(type, 3 * 37, 1), factors = randomTensor(PLR_F32, 3, 2), result(type, 3 * 37);
  variant->scaleRows(type, 3, 37, input.data(), factors.floats(), result.data());
  variant->scaleRows(type, 3, 37, input.data(), factors.floats(), input.data());
  EXPECT_TRUE(result.sameBits(input));
}

TEST_P(Rows, Dot) {
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {0, 9}, {9, 0}, {3, 5}, {4, 16}, {5, 33}, {3, 512}, {2, 10007}}) {
    Tensor a = randomTensor(type, rows * columns, 1), b = randomTensor(type, rows * columns, 2), result(PLR_F32, rows);
    variant->rowDot(type, rows, columns, a.data(), b.data(), result.floats());
    EXPECT_TRUE(result.endIsIntact());
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0, size = 0;
      for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
        sum += a[i] * b[i];
        size += std::abs(a[i] * b[i]);
      }
      // In f32, also for bf16 rows; a few roundings whatever the length.
      ASSERT_NEAR(result[row], sum, 1e-6 * size) << columns;
    }
  }
}

TEST_P(Rows, DotOfEqualNumbersStaysExact) {
  Tensor a(type, 8192), result(PLR_F32, 1);
  for (int64_t i = 0; i < a.size(); ++i)
    a.set(i, 1.1);
  variant->rowDot(type, 1, a.size(), a.data(), a.data(), result.floats());
  EXPECT_NEAR(result[0] / (8192 * a[0] * a[0]), 1, 1e-6);
}

TEST_P(Rows, RoundSums) {
  for (int64_t count : {0, 1, 5, 16, 37, 1003}) {
    Tensor sums = randomTensor(PLR_F32, count, 1), before = randomTensor(type, count, 2), result(type, count);
    variant->roundSums(type, count, false, sums.floats(), result.data());
    EXPECT_TRUE(result.endIsIntact());
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(result[i], roundTo(type, sums[i]));
    result = before;
    variant->roundSums(type, count, true, sums.floats(), result.data());
    EXPECT_TRUE(result.endIsIntact());
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(result[i], roundTo(type, static_cast<float>(before[i] + sums[i])));
  }
}

// One row after the other, in f32: the order shows in the bits.
TEST_P(Rows, ColumnSums) {
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {0, 9}, {9, 0}, {3, 5}, {4, 16}, {7, 33}, {11, 1003}}) {
    Tensor input = randomTensor(type, rows * columns, 1), sums = randomTensor(PLR_F32, columns, 2), before = sums;
    variant->columnSums(type, rows, columns, input.data(), sums.floats());
    EXPECT_TRUE(sums.endIsIntact());
    for (int64_t j = 0; j < columns; ++j) {
      float sum = static_cast<float>(before[j]);
      for (int64_t row = 0; row < rows; ++row)
        sum += static_cast<float>(input[row * columns + j]);
      ASSERT_EQ(sums[j], sum) << columns;
    }
  }
}

PLATEAU_KERNEL_TEST(Rows);

} // namespace
