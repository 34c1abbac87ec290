//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SyntheticStep.h"
#include "plateau/Planning/PackArena.h"
#include "gtest/gtest.h"
#include <chrono>
#include <cstdio>

using namespace mlir::plateau::planning;

namespace {

double plan(SyntheticOptions options, double mostRatio = 1.02) {
  auto start = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  ArenaProblem problem = makeSyntheticStep(options);
  double made = seconds();
  LowerBound bound = computeLowerBound(problem, int64_t(1) << 30);
  double bounded = seconds();
  Packing packing = packArena(problem, bound);
  double total = seconds();
  EXPECT_EQ(problem.check(packing.offsets), "");
  EXPECT_TRUE(bound.isExact);
  EXPECT_LE(packing.bytes, mostRatio * bound.bytes);
  std::printf("%d layers: %zu calls, %lld buffers, %lld conflicts; slots %.1f MiB, live %.1f, bound %.1f%s, arena %.1f "
              "(%.4f, %s, %lld passes); problem %.2f s, bound %.2f s (work %lld), packing %.2f s\n",
              options.layers, problem.getCalls().size(), (long long)problem.getNumBuffers(),
              (long long)problem.getNumConflicts(), problem.getTotalBytes() / 1048576.0, bound.liveBytes / 1048576.0,
              bound.bytes / 1048576.0, bound.isExact ? "" : " (not exact)", packing.bytes / 1048576.0,
              double(packing.bytes) / bound.bytes, packing.solver.c_str(), (long long)packing.passes, made,
              bounded - made, (long long)bound.work, total - bounded);
  return total;
}

TEST(Scaling, TwoLanes) {
  plan({12, false, true});
  plan({48, false, true});
  EXPECT_LE(plan({96, false, true}), 20); // Seconds; about one where nothing else runs.
}

TEST(Scaling, FiveLanes) {
  plan({12, true, false});
  plan({48, true, false});
  EXPECT_LE(plan({96, true, false}), 20); // Seconds; about one where nothing else runs.
}

TEST(Scaling, ManyLagging) {
  plan({12, true, true}, 1.1);
  plan({48, true, true}, 1.1);
}

} // namespace
