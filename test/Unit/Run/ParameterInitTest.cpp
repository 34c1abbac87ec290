//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/ParameterInit.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <vector>

using namespace mlir::plateau::run;

// The numbers of the first three tests come from a Python program of the rules in ParameterInit.h.

TEST(ParameterInitTest, Words) {
  NumberStream a(0, "model.embed_tokens.weight"), b(7, "lm_head.weight"), c(~uint64_t(0), "");
  EXPECT_EQ(a.getWord(0), 0x0edf01f8869e1d37u);
  EXPECT_EQ(a.getWord(1), 0x55ee8881106f490bu);
  EXPECT_EQ(a.getWord(1000000000000), 0xb893a5bd0fa0dc94u);
  EXPECT_EQ(b.getWord(0), 0xf308c602c802b8a6u);
  EXPECT_EQ(c.getWord(0), 0x709709941c1d6831u);
  EXPECT_EQ(c.getWord(1000000000000), 0x2015cad5b59e1b0du);
  EXPECT_EQ(a.getBelow(1, 1000), 0x55ee8881106f490bu % 1000);
}

TEST(ParameterInitTest, Normals) {
  NumberStream a(0, "model.embed_tokens.weight"), b(7, "lm_head.weight");
  EXPECT_NEAR(a.getNormal(0), -1.223060863281673, 1e-14);
  EXPECT_NEAR(a.getNormal(1), 2.0483247656313046, 1e-14);
  EXPECT_NEAR(a.getNormal(2), 0.6102828135187215, 1e-14);
  EXPECT_NEAR(a.getNormal(1000001), -0.4138281000180729, 1e-14);
  EXPECT_NEAR(b.getNormal(0), -0.17157664513193913, 1e-14);
}

TEST(ParameterInitTest, ValuesRoundOnce) {
  std::vector<float> values(3);
  NumberStream(7, "lm_head.weight").fillNormal(1.5, 0.02, values);
  EXPECT_EQ(values, (std::vector<float>{0x1.7f1f1cp+0f, 0x1.7e9a38p+0f, 0x1.88cde0p+0f}));
}

TEST(ParameterInitTest, NoDeviationGivesTheMean) {
  std::vector<float> values(5);
  NumberStream(1, "norm").fillNormal(1, 0, values);
  EXPECT_EQ(values, std::vector<float>(5, 1.0f));
}

// The parts of a tensor are drawn as the whole is, wherever they begin.
TEST(ParameterInitTest, PartsAreThoseOfTheWhole) {
  NumberStream stream(7, "lm_head.weight");
  std::vector<float> whole(11);
  stream.fillNormal(1.5, 0.02, whole);
  EXPECT_EQ(whole[5], static_cast<float>(1.5 + 0.02 * stream.getNormal(5)));
  for (size_t first = 0; first <= whole.size(); ++first)
    for (size_t count = 0; first + count <= whole.size(); ++count) {
      std::vector<float> part(count);
      stream.fillNormal(1.5, 0.02, part, first);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << first << " " << count;
    }
  std::vector<float> means(2);
  stream.fillNormal(1, 0, means, 3);
  EXPECT_EQ(means, std::vector<float>(2, 1.0f));
  // Element 1000001 is the second of its pair, known from the test above.
  std::vector<float> far(2);
  NumberStream(0, "model.embed_tokens.weight").fillNormal(0, 1, far, 1000001);
  EXPECT_NEAR(far[0], -0.4138281000180729, 1e-7);
}

TEST(ParameterInitTest, MomentsOfTheNormalDistribution) {
  constexpr int64_t count = 1 << 20;
  std::vector<float> values(count);
  NumberStream(3, "statistics").fillNormal(0, 1, values);
  double sum = 0, squares = 0, cubes = 0, fourths = 0, neighbours = 0;
  int64_t beyondTwo = 0;
  for (int64_t i = 0; i < count; ++i) {
    double z = values[i];
    sum += z;
    squares += z * z;
    cubes += z * z * z;
    fourths += z * z * z * z;
    neighbours += i > 0 ? z * values[i - 1] : 0;
    beyondTwo += std::fabs(z) > 2;
  }
  // Five standard errors each.
  double error = 5 / std::sqrt(double(count));
  EXPECT_NEAR(sum / count, 0, error);
  EXPECT_NEAR(squares / count, 1, error * std::sqrt(2));
  EXPECT_NEAR(cubes / count, 0, error * std::sqrt(15));
  EXPECT_NEAR(fourths / count, 3, error * std::sqrt(96));
  EXPECT_NEAR(neighbours / count, 0, error);
  double share = std::erfc(std::sqrt(2.0));
  EXPECT_NEAR(double(beyondTwo) / count, share, error * std::sqrt(share * (1 - share)));
}

TEST(ParameterInitTest, BF16RoundsToNearestEven) {
  EXPECT_EQ(roundToBF16(1.0f), 0x3F80);
  EXPECT_EQ(roundToBF16(1.0f + 0x1p-8f), 0x3F80);            // a tie, to the even one below
  EXPECT_EQ(roundToBF16(1.0f + 3 * 0x1p-8f), 0x3F82);        // a tie, to the even one above
  EXPECT_EQ(roundToBF16(1.0f + 0x1p-8f + 0x1p-20f), 0x3F81); // above the tie
  EXPECT_EQ(roundToBF16(-std::numeric_limits<float>::infinity()), 0xFF80);
  EXPECT_EQ(roundToBF16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(extendBF16(roundToBF16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(extendBF16(0x4049), 3.140625f);
}
