//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/VocabData.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir::plateau::bench;

/// The message, or nothing when all agrees.
static std::string compare(std::vector<VocabValues> a, std::vector<VocabValues> b, bool isBF16 = false) {
  return llvm::toString(compareVocabValues(a, "one", b, "other", isBF16));
}

/// Two ranks; the largest loss of the second is 8, its largest gradient 2.
static std::vector<VocabValues> getValues() { return {{{1, 2}, {0.5, -1}}, {{4, -8}, {1, -2}}}; }

TEST(VocabData, EqualValuesAgree) { EXPECT_EQ(compare(getValues(), getValues()), ""); }

TEST(VocabData, LossesMayDifferByRounding) {
  auto other = getValues();
  other[1].losses[0] += 7e-5;
  EXPECT_EQ(compare(getValues(), other), "");
  other[1].losses[0] += 2e-5;
  EXPECT_NE(compare(getValues(), other).find("rank 1: loss 0 is 4 by one and"), std::string::npos);
}

// The bound of each rank is of its own largest loss.
TEST(VocabData, EachRankHasItsOwnBound) {
  auto other = getValues();
  other[0].losses[1] += 7e-5;
  EXPECT_NE(compare(getValues(), other).find("rank 0: loss 1 is"), std::string::npos);
}

TEST(VocabData, NaNIsNoLoss) {
  auto other = getValues();
  other[0].losses[0] = NAN;
  EXPECT_NE(compare(getValues(), other).find("rank 0: loss 0 is 1 by one and nan by other"), std::string::npos);
  EXPECT_NE(compare(other, getValues()), "");
}

TEST(VocabData, GradientsMayDifferByTheRoundingOfTheirType) {
  auto other = getValues();
  other[1].gradients[1] += 1e-3;
  EXPECT_NE(compare(getValues(), other).find("rank 1: gradient sample 1 is -2 by one and"), std::string::npos);
  EXPECT_EQ(compare(getValues(), other, /*isBF16=*/true), "");
  other[1].gradients[1] += 0.1;
  EXPECT_NE(compare(getValues(), other, /*isBF16=*/true), "");
}
