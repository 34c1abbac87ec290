//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// All checkers, on one timeline.
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/Verify/Checkers.h"
#include "plateau/Dialect/Sched/Verify/Passes.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDVERIFY
#include "plateau/Dialect/Sched/Verify/Passes.h.inc"
} // namespace mlir::plateau::sched

namespace {
struct Verify : plateau::sched::impl::SchedVerifyBase<Verify> {
  using Base::Base;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    Timeline::Options options;
    options.prefix = !unrollLoops;
    FailureOr<Timeline> timeline = Timeline::get(program, options);
    if (failed(timeline))
      return signalPassFailure();
    Order order(*timeline);
    // Each speaks, whatever the others say.
    bool isRight = succeeded(verifyArenas(program));
    isRight &= succeeded(verifyHazards(program, *timeline, order));
    isRight &= succeeded(verifyValues(program, *timeline));
    isRight &= succeeded(verifyCollectives(program, *timeline, order));
    isRight &= succeeded(verifyFences(program, *timeline, order));
    isRight &= succeeded(verifyBudget(program, *timeline, hbmBytes, hostBytes));
    if (reportFences)
      plateau::sched::reportFences(program, *timeline);
    if (!isRight)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
