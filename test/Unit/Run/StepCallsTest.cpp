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
  auto aligned = calls->align(spans);
  ASSERT_TRUE(static_cast<bool>(aligned)) << getText(aligned.takeError());
  EXPECT_EQ(aligned->size(), spans.size());
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
  EXPECT_EQ(getText(calls->align(spans).takeError()),
            "span 0 of the step is of plr_copy on lane h2d, but call 0 of its program is "
            "plr_zero on lane compute");
  spans = getSpans();
  spans.pop_back();
  EXPECT_EQ(getText(calls->align(spans).takeError()), "the step left 5 spans, but its program has 6 calls");
}

// A plan has one iteration of three: calls of the others leave no spans, or (those on no rows) may.
TEST_F(StepCallsTest, KnowsCallsOfEmptyIterations) {
  module = parse(R"(
#plan = #sched.tag<"moe.plan", routing, forward>
#send = #sched.tag<"moe.dispatch", dispatch, forward>
#back = #sched.tag<"moe.dispatch", dispatch, backward>
sched.program @p ranks(1) {
  sched.lane compute
  sched.arena device bytes(128) lower_bound(128)
  sched.arena host bytes(64) lower_bound(64)
  %t = sched.table dense<[[0], [1], [2]]> : tensor<3x1xi64> as memref<3x1xi64>
  %plan = sched.slot in host offset 0 tag #plan : memref<64xi8>
  %rows = sched.slot in device offset 0 tag #send : memref<16xf32>
  %half = sched.slot in device offset 64 tag #send : memref<8xf32>
  %e, %p = sched.launch "plr_plan_fill"([#sched.write<0>]) on compute writes(%plan : memref<64xi8>) tag #plan
  sched.fence %e
  sched.loop %i = 0 to 3 until(%p : memref<64xi8>, 1) {
    %e0, %r = sched.launch "plr_dispatch"([#sched.table<0>, #sched.cell<1, 0, 0>, #sched.write<0>]) on compute tables(%p, %t : memref<64xi8>, memref<3x1xi64>) writes(%rows : memref<16xf32>) tag #send
    %e1, %a = sched.launch "plr_swiglu"([#sched.rows<0, #sched.cell<1, 0, 0>>, #sched.read<0>, #sched.write<0>]) on compute reads(%r : memref<16xf32>) tables(%p, %t : memref<64xi8>, memref<3x1xi64>) writes(%half : memref<8xf32>) tag #send
  }
  %e2, %b = sched.launch "plr_dispatch"([#sched.table<0>, 0 : i64, #sched.write<0>]) on compute tables(%p : memref<64xi8>) writes(%rows : memref<16xf32>) tag #back
  sched.return
}
)");
  calls = StepCalls::get(*module->getOps<sched::ProgramOp>().begin());
  ASSERT_TRUE(succeeded(calls)) << diagnostics;
  static constexpr plr_tag plan = {"moe.plan", -1, PLR_ROUTING, PLR_FORWARD};
  static constexpr plr_tag send = {"moe.dispatch", -1, PLR_DISPATCH, PLR_FORWARD};
  static constexpr plr_tag back = {"moe.dispatch", -1, PLR_DISPATCH, PLR_BACKWARD};
  auto span = [](const plr_tag &tag, const char *call, int64_t start) {
    return plr_span{&tag, call, PLR_COMPUTE, start, start + 1, 0, {}, 0};
  };
  std::vector<plr_span> spans = {span(plan, "plr_plan_fill", 1), span(send, "plr_dispatch", 2),
                                 span(send, "plr_swiglu", 3), span(send, "plr_swiglu", 4),
                                 span(back, "plr_dispatch", 5)};
  auto aligned = calls->align(spans);
  ASSERT_TRUE(static_cast<bool>(aligned)) << getText(aligned.takeError());
  std::vector<int64_t> starts;
  for (const plr_span &one : *aligned)
    starts.push_back(one.call ? one.start_ns : 0);
  EXPECT_EQ(starts, (std::vector<int64_t>{1, 2, 3, 0, 4, 0, 0, 5}));
  std::swap(spans[0], spans[1]);
  EXPECT_EQ(getText(calls->align(spans).takeError()),
            "span 0 of the step is of plr_dispatch on lane compute, but call 0 "
            "of its program is plr_plan_fill on lane compute");
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
