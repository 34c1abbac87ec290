//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Profile.h"
#include "FakeExecutor.h"

using namespace mlir::plateau::run;

namespace {
constexpr plr_tag product = {"linalg.matmul \"q\"", 3, PLR_ATTENTION, PLR_BACKWARD};
constexpr plr_tag attention = {"moe.attention", -1, PLR_ATTENTION, PLR_FORWARD};

RankSpans getSpans() {
  plr_span gemm = {&product, "plr_gemm", PLR_COMPUTE, 1000, 3000, 8000, {0, 1, 0, 0, 0, 2, 4, 8}, 1};
  plr_span longer = {&product, "plr_gemm", PLR_COMPUTE, 3000, 8000, 40000, {1, 0, 1, 0, 0, 16, 4, 8}, 1};
  plr_span again = gemm;
  plr_span forward = {&attention, "plr_attention", PLR_COMPUTE, 10000, 12000, 4000, {}, 0};
  return {{gemm, longer, again, forward}};
}
} // namespace

using ProfileTest = RunTest;

TEST_F(ProfileTest, CountsShapes) {
  ASSERT_EQ(getText(writeGemmShapes(getPath("s"), getSpans())), "");
  EXPECT_EQ(readFile("s"), "# transpose_a transpose_b accumulate type result_type m n k count nanoseconds\n"
                           "1 0 1 f32 f32 16 4 8 1 5000\n0 1 0 f32 f32 2 4 8 2 4000\n");
}

// A grouped product stands for one product of each expert that has rows, of their mean number to the next 256.
TEST_F(ProfileTest, CountsGroupedProducts) {
  plr_span forward = {&product, "plr_grouped_gemm", PLR_COMPUTE, 0, 100, 0, {0, 1, 0, 0, 0, 1500, 4, 8}, 3};
  plr_span gradient = {&product, "plr_grouped_gemm_grad", PLR_COMPUTE, 0, 50, 0, {1, 0, 1, 0, 0, 4, 8, 20}, 2};
  ASSERT_EQ(getText(writeGemmShapes(getPath("s"), {{forward, gradient}})), "");
  EXPECT_EQ(readFile("s"), "# transpose_a transpose_b accumulate type result_type m n k count nanoseconds\n"
                           "0 1 0 f32 f32 512 4 8 3 100\n1 0 1 f32 f32 4 8 64 2 50\n");
}

TEST_F(ProfileTest, PrintsSharesAndRates) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printProfile(os, getSpans(), 18e-6);
  // 9 of 18 microseconds; 56,000 flops in 9 microseconds; 4,000 in 2.
  EXPECT_NE(
      text.find("profile: GEMM share 50.0 %, GEMM 6.2 GFLOP/s, attention 2.0 GFLOP/s (32.1 % of the GEMM rate)\n"),
      std::string::npos)
      << text;
}

TEST_F(ProfileTest, RefusesPlacesThatCannotBeWritten) {
  EXPECT_NE(getText(writeGemmShapes(getPath("none/t"), getSpans())), "");
}
