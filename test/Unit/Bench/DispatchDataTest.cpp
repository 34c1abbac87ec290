//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/DispatchData.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir::plateau::bench;

static DispatchOptions getOptions(RoutingProfile profile) {
  DispatchOptions options;
  options.profile = profile;
  options.tokens = 4;
  options.topK = 3;
  options.experts = 8;
  options.ranks = 2;
  return options;
}

TEST(DispatchData, BalancedTokensChooseRoundRobin) {
  EXPECT_EQ(getProfileIds(getOptions({})), (std::vector<int32_t>{0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5}));
}

// Half of the tokens choose experts 0, 1 and, for the third slot, 0 again; the others 2 to 7.
TEST(DispatchData, HotTokensChooseTheFirstExperts) {
  EXPECT_EQ(getProfileIds(getOptions({50, 2})), (std::vector<int32_t>{0, 1, 0, 0, 1, 0, 4, 5, 6, 5, 6, 7}));
}

TEST(DispatchData, HotTokensAreRoundedDown) {
  EXPECT_EQ(getProfileIds(getOptions({49, 7})), (std::vector<int32_t>{0, 1, 2, 7, 7, 7, 7, 7, 7, 7, 7, 7}));
}

TEST(DispatchData, OneExpertMayHaveAll) { EXPECT_EQ(getProfileIds(getOptions({100, 1})), std::vector<int32_t>(12, 0)); }

TEST(DispatchOptions, CapacityIsRowsOrANumberOfTimesTheMean) {
  DispatchOptions options = getOptions({});
  options.tokens = 4096;
  options.topK = 4;
  options.chunks = 9;
  EXPECT_EQ(options.getMeanRows(), 1824); // 4 · 456
  EXPECT_EQ(options.getCapacityRows(), 2280);
  options.capacity = {11, 10, true};
  EXPECT_EQ(options.getCapacityRows(), 2006); // 2006.4
  options.capacity = {100, 1, false};
  EXPECT_EQ(options.getCapacityRows(), 100);
}

/// The message, or nothing when all agrees.
static std::string compare(std::vector<DispatchValues> a, std::vector<DispatchValues> b, bool isBF16 = false) {
  return llvm::toString(compareDispatchValues(a, "one", b, "other", isBF16));
}

/// Two ranks; the largest y of the second is 8, the largest element of its dW2 is 2.
static std::vector<DispatchValues> getValues() {
  return {{{{"y", {1, 2}}, {"dW2", {0.5, -1}}}}, {{{"y", {4, -8}}, {"dW2", {1, -2}}}}};
}

TEST(DispatchData, EqualValuesAgree) { EXPECT_EQ(compare(getValues(), getValues()), ""); }

TEST(DispatchData, ValuesMayDifferByTheRoundingOfTheirType) {
  auto other = getValues();
  other[1].results[0].second[0] += 7e-4;
  EXPECT_EQ(compare(getValues(), other), "");
  other[1].results[0].second[0] += 2e-4;
  EXPECT_NE(compare(getValues(), other).find("rank 1: y sample 0 is 4 by one and"), std::string::npos);
  EXPECT_EQ(compare(getValues(), other, /*isBF16=*/true), "");
  other[1].results[0].second[0] += 0.3;
  EXPECT_NE(compare(getValues(), other, /*isBF16=*/true), "");
}

// Each result of each rank has a bound of its own.
TEST(DispatchData, GradientsAreCompared) {
  auto other = getValues();
  other[1].results[1].second[1] += 7e-4;
  EXPECT_NE(compare(getValues(), other).find("rank 1: dW2 sample 1 is -2 by one and"), std::string::npos);
}

TEST(DispatchData, NaNIsNoValue) {
  auto other = getValues();
  other[0].results[0].second[0] = NAN;
  EXPECT_NE(compare(getValues(), other).find("rank 0: y sample 0 is 1 by one and nan by other"), std::string::npos);
  EXPECT_NE(compare(other, getValues()), "");
}
