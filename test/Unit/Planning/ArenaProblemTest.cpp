//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"
#include "plateau/Planning/LowerBound.h"
#include "gtest/gtest.h"

using namespace mlir::plateau::planning;

namespace {

/// The largest sum of sizes of buffers that pairwise meet `conflicts`, by looking at all sets.
int64_t enumerate(int64_t numBuffers, llvm::function_ref<int64_t(int64_t)> bytes,
                  llvm::function_ref<bool(int64_t, int64_t)> conflicts) {
  std::vector<uint32_t> masks(numBuffers, 0);
  for (int64_t a = 0; a < numBuffers; ++a)
    for (int64_t b = 0; b < numBuffers; ++b)
      if (a != b && conflicts(a, b))
        masks[a] |= 1u << b;
  int64_t most = 0;
  for (uint32_t set = 0; set < 1u << numBuffers; ++set) {
    int64_t sum = 0;
    bool isClique = true;
    for (int64_t a = 0; a < numBuffers && isClique; ++a)
      if (set >> a & 1) {
        sum += bytes(a);
        isClique = ((set & ~(1u << a)) & ~masks[a]) == 0;
      }
    if (isClique)
      most = std::max(most, sum);
  }
  return most;
}

TEST(ArenaProblem, AgreesWithReachability) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    RandomProblem made = makeRandomProblem(seed, {8, 14, /*mostLives=*/1 + int(seed % 3), /*oneStart=*/seed % 2 == 0});
    ArenaProblem &problem = made.problem;
    for (int32_t a = 0; a < problem.getNumBuffers(); ++a) {
      std::vector<bool> conflicts(problem.getNumBuffers(), false);
      problem.forEachConflict(a, [&](int32_t b) {
        EXPECT_FALSE(conflicts[b]) << "listed twice";
        conflicts[b] = true;
      });
      for (int32_t b = 0; b < problem.getNumBuffers(); ++b)
        if (a != b)
          ASSERT_EQ(conflicts[b], !made.mayShare(a, b)) << "seed " << seed << ", buffers " << a << " and " << b;
    }
  }
}

TEST(LowerBound, IsTheLargestAntichain) {
  int64_t larger = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    RandomProblem made = makeRandomProblem(seed, {10, 14, 1, true});
    ASSERT_TRUE(made.hasOneStart);
    LowerBound bound = computeLowerBound(made.problem, 1 << 20);
    EXPECT_TRUE(bound.isExact);
    int64_t most = enumerate(
        made.problem.getNumBuffers(), [&](int64_t i) { return made.problem.getBytes(i); },
        [&](int64_t a, int64_t b) { return !made.mayShare(a, b); });
    ASSERT_EQ(bound.bytes, most) << "seed " << seed;
    ASSERT_LE(bound.liveBytes, bound.bytes);
    larger += bound.bytes > bound.liveBytes;
    int64_t sum = 0;
    for (int32_t a : bound.buffers) {
      sum += made.problem.getBytes(a);
      for (int32_t b : bound.buffers)
        EXPECT_TRUE(a == b || !made.mayShare(a, b));
    }
    EXPECT_EQ(sum, bound.bytes);
  }
  EXPECT_GT(larger, 100); // Else the live bytes would do.
}

/// Of buffers that several lanes write first, or that live several times, it is a bound still.
TEST(LowerBound, HoldsWhereItIsNotTheLargest) {
  int64_t smaller = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    RandomProblem made = makeRandomProblem(seed, {10, 14, 1 + int(seed % 3), seed % 2 == 0});
    LowerBound bound = computeLowerBound(made.problem, 1 << 20);
    EXPECT_TRUE(bound.isExact || !made.hasOneStart);
    int64_t most = enumerate(
        made.problem.getNumBuffers(), [&](int64_t i) { return made.problem.getBytes(i); },
        [&](int64_t a, int64_t b) { return !made.mayShare(a, b); });
    ASSERT_LE(bound.bytes, most) << "seed " << seed;
    smaller += bound.bytes < most;
    for (int32_t a : bound.buffers)
      for (int32_t b : bound.buffers)
        EXPECT_TRUE(a == b || !made.mayShare(a, b));
  }
  EXPECT_LT(smaller, 200);
}

/// Two lanes without waits: all of one lane meets all of the other, and needs twice what is live at any call.
TEST(LowerBound, SeesWhatIssueOrderHides) {
  ArenaProblem problem(2);
  for (unsigned lane : {0, 1})
    for (int i = 0; i < 4; ++i)
      problem.addLife(problem.addBuffer(1024), {problem.addCall(lane), problem.addCall(lane)});
  problem.finalize();
  LowerBound bound = computeLowerBound(problem, 1 << 20);
  EXPECT_EQ(bound.liveBytes, 1024);
  EXPECT_EQ(bound.bytes, 2048);
}

TEST(LowerBound, SaysWhenItStops) {
  RandomProblem made = makeRandomProblem(7, {12, 20, 1, true});
  LowerBound bound = computeLowerBound(made.problem, 1);
  EXPECT_FALSE(bound.isExact);
  EXPECT_LE(bound.liveBytes, bound.bytes);
}

} // namespace
