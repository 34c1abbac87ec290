//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PlannedStep.h"

using namespace mlir::plateau;
using namespace mlir::plateau::run;

using StepCallsTest = PlannedStepTest;

TEST_F(StepCallsTest, NamesTheSpanOfEachNode) {
  ASSERT_TRUE(succeeded(calls)) << diagnostics;
  auto spans = getSpans();
  EXPECT_EQ(getText(calls->check(spans)), "");
  ASSERT_EQ(calls->getTimeline().nodes.size(), 8u);
  EXPECT_EQ(calls->getSpan(3, spans), &spans[3]);
  EXPECT_EQ(calls->getSpan(5, spans), nullptr);
  EXPECT_EQ(calls->getSpan(6, spans), &spans[5]);
  EXPECT_EQ(calls->getSpan(7, spans), nullptr);
}

TEST_F(StepCallsTest, RefusesSpansOfAnotherProgram) {
  ASSERT_TRUE(succeeded(calls)) << diagnostics;
  auto spans = getSpans();
  std::swap(spans[0], spans[1]);
  EXPECT_EQ(getText(calls->check(spans)), "span 0 of the step is of plr_copy on lane h2d, but call 0 of its program is "
                                          "plr_zero on lane compute");
  spans.pop_back();
  EXPECT_EQ(getText(calls->check(spans)), "the step left 5 spans, but its program has 6 calls");
}

// Both copies are read by the call behind them; what the last call writes is read by the end of the step alone.
TEST_F(StepCallsTest, ArrowsLeadFromCopiesToReaders) {
  ASSERT_TRUE(succeeded(calls)) << diagnostics;
  auto flows = calls->getFlows();
  ASSERT_EQ(flows.size(), 2u);
  EXPECT_EQ(std::pair(flows[0].from, flows[0].to), std::pair(int64_t(1), int64_t(2)));
  EXPECT_EQ(std::pair(flows[1].from, flows[1].to), std::pair(int64_t(3), int64_t(4)));
}

TEST_F(StepCallsTest, TimesLivesByAllCallsThatTouchThem) {
  ASSERT_TRUE(succeeded(calls)) << diagnostics;
  auto spans = getSpans();
  const auto &occupants = calls->getOccupancy().occupants;
  ASSERT_EQ(occupants.size(), 4u); // in, out, ring, made
  auto times = [&](size_t index) {
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (const StepCalls::Time &time : calls->getTimes(occupants[index], spans))
      pairs.emplace_back(time.start_ns, time.end_ns);
    return pairs;
  };
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  // Nobody reads the zeros and the first product.
  ASSERT_EQ(occupants[3].lives.size(), 3u);
  EXPECT_EQ(times(3), (Pairs{{1000, 2000}, {3000, 10000}}));
  // Two lives in issue order; the second copy begins before the first product ends, and so does its life.
  ASSERT_EQ(occupants[2].lives.size(), 2u);
  EXPECT_EQ(times(2), (Pairs{{1000, 9000}}));
}
