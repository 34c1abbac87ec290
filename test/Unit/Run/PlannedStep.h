//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A small planned program, and the spans of a step of it.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_RUN_PLANNEDSTEP_H
#define PLATEAU_TEST_UNIT_RUN_PLANNEDSTEP_H

#include "FakeExecutor.h"
#include "plateau/Run/StepCalls.h"

namespace mlir::plateau::run {

class PlannedStepTest : public RunTest {
protected:
  /// Two rows come by h2d to a ring of two and are doubled, each in its iteration; a fence; then the last is stored.
  PlannedStepTest() {
    module = parse(R"(
#in = #sched.tag<"argument <in>", staging, forward>
#out = #sched.tag<"result 0", dense, forward>
#double = #sched.tag<"linalg.mul \"d\"", dense, backward, layer = 3>
sched.program @p ranks(1) {
  sched.lane compute
  sched.lane h2d
  sched.arena device bytes(192) lower_bound(192)
  %in = sched.buffer 0 in host tag #in : memref<2x16xf32>
  %out = sched.buffer 1 writable in device tag #out : memref<16xf32>
  %ring = sched.slot in device ring 2 offset 0 tag #in : memref<16xf32>
  %made = sched.slot in device offset 128 tag #double : memref<16xf32>
  %none = sched.no_event
  %start = sched.view %made[0] : memref<16xf32> to memref<16xf32>
  %e0, %zero = sched.launch "plr_zero"([#sched.write<0>, 64 : i64]) on compute writes(%made : memref<16xf32>) tag #double
  %last, %done = sched.loop %i = 0 to 2 iter(%v = %zero, %e = %e0) : memref<16xf32>, !sched.event {
    %row = sched.view %in[0] index(%i) stride(64) : memref<2x16xf32> to memref<16xf32>
    %place = sched.view %ring[0] index(%i) ring(0) : memref<16xf32> to memref<16xf32>
    %e1, %x = sched.copy on h2d reads(%row : memref<16xf32>) writes(%place : memref<16xf32>) tag #in
    %e2, %y = sched.launch "plr_double"([#sched.read<0>, #sched.write<0>]) on compute waits(%e1) reads(%x : memref<16xf32>)
      writes(%made : memref<16xf32>) tag #double
    sched.yield %y, %e2 : memref<16xf32>, !sched.event
  }
  sched.fence %done
  %e3, %r = sched.copy on compute reads(%last : memref<16xf32>) writes(%out : memref<16xf32>) tag #out
  sched.return %r : memref<16xf32>
}
)");
    program = *module->getOps<sched::ProgramOp>().begin();
    calls = StepCalls::get(program);
  }

  /// Nodes 0, 1, 2, 3, 4 and 6 of the timeline; 5 is the fence, 7 the end.
  std::vector<plr_span> getSpans() const {
    static constexpr plr_tag in = {"argument <in>", -1, PLR_STAGING, PLR_FORWARD};
    static constexpr plr_tag twice = {"linalg.mul \"d\"", 3, PLR_DENSE, PLR_BACKWARD};
    auto span = [](const plr_tag &tag, const char *call, plr_lane_kind lane, int64_t start, int64_t end) {
      return plr_span{&tag, call, lane, start, end, 0, {}, 0};
    };
    return {span(twice, "plr_zero", PLR_COMPUTE, 1000, 2000),   span(in, "plr_copy", PLR_H2D, 1000, 3000),
            span(twice, "plr_double", PLR_COMPUTE, 3000, 7000), span(in, "plr_copy", PLR_H2D, 3000, 5000),
            span(twice, "plr_double", PLR_COMPUTE, 7000, 9000), span(twice, "plr_copy", PLR_COMPUTE, 9500, 10000)};
  }

  OwningOpRef<ModuleOp> module;
  sched::ProgramOp program;
  FailureOr<StepCalls> calls = failure();
};

} // namespace mlir::plateau::run

#endif // PLATEAU_TEST_UNIT_RUN_PLANNEDSTEP_H
