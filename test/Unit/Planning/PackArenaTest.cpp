//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Planning/PackArena.h"
#include "RandomProblem.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace mlir::plateau::planning;

namespace {

/// The smallest arena, from all orders: of the best packing, the buffers by offset, each as low as those before allow.
int64_t findSmallest(const RandomProblem &made) {
  const ArenaProblem &problem = made.problem;
  std::vector<int32_t> order(problem.getNumBuffers());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<bool>> conflicts(order.size(), std::vector<bool>(order.size()));
  for (int32_t a : order)
    for (int32_t b : order)
      conflicts[a][b] = a != b && !made.mayShare(a, b);
  int64_t smallest = problem.getTotalBytes();
  do {
    std::vector<int64_t> offsets(order.size(), 0);
    int64_t arena = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      int64_t top = 0;
      for (size_t j = 0; j < i; ++j)
        if (conflicts[order[i]][order[j]])
          top = std::max(top, offsets[order[j]] + problem.getBytes(order[j]));
      offsets[order[i]] = top;
      arena = std::max(arena, top + problem.getBytes(order[i]));
    }
    smallest = std::min(smallest, arena);
  } while (std::next_permutation(order.begin(), order.end()));
  return smallest;
}

TEST(PackArena, KeepsConflictsApart) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    RandomProblem made = makeRandomProblem(seed, {14, 20, 1 + int(seed % 3), seed % 2 == 0});
    LowerBound bound = computeLowerBound(made.problem, 1 << 20);
    Packing packing = packArena(made.problem, bound);
    EXPECT_EQ(made.problem.check(packing.offsets), "");
    EXPECT_EQ(made.problem.getArenaBytes(packing.offsets), packing.bytes);
    EXPECT_GE(packing.bytes, bound.bytes);
    for (int32_t a = 0; a < made.problem.getNumBuffers(); ++a)
      for (int32_t b = 0; b < a; ++b) {
        bool isApart = packing.offsets[a] + made.problem.getBytes(a) <= packing.offsets[b] ||
                       packing.offsets[b] + made.problem.getBytes(b) <= packing.offsets[a];
        ASSERT_TRUE(isApart || made.mayShare(a, b)) << "seed " << seed << ", buffers " << a << " and " << b;
      }
    EXPECT_EQ(packArena(made.problem, bound).offsets, packing.offsets);
  }
}

TEST(PackArena, IsNearTheSmallest) {
  int64_t larger = 0, total = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    RandomProblem made = makeRandomProblem(seed, {7, 16, 1 + int(seed % 2), true});
    Packing packing = packArena(made.problem, computeLowerBound(made.problem, 1 << 20));
    int64_t smallest = findSmallest(made);
    ASSERT_GE(packing.bytes, smallest) << "seed " << seed;
    EXPECT_LE(packing.bytes, smallest + smallest / 4) << "seed " << seed;
    larger += packing.bytes > smallest;
    ++total;
  }
  EXPECT_LE(larger, total / 100);
  RecordProperty("larger", larger);
}

/// Two packings that the check of this test must refuse.
TEST(PackArena, CheckRefuses) {
  ArenaProblem problem(1);
  int32_t call = problem.addCall(0);
  for (int i = 0; i < 2; ++i)
    problem.addLife(problem.addBuffer(100, "x"), call);
  problem.finalize();
  EXPECT_EQ(problem.check({0, 128}), "");
  EXPECT_NE(problem.check({0, 64}), "");
  EXPECT_NE(problem.check({0, 100}), "");
}

} // namespace
