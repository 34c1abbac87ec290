//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Pipelines/Schedule.h"
#include "mlir/Pass/PassRegistry.h"
#include "plateau/Conversion/Passes.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"
#include "plateau/Dialect/Sched/Verify/Passes.h"
#include "plateau/Pipelines/LowerToLLVM.h"

using namespace mlir;
using namespace mlir::plateau;

void mlir::plateau::buildSchedulePipeline(OpPassManager &manager, const ScheduleOptions &options) {
  // Tensors to calls: the values that calls read are fixed from here on.
  buildPrepareTensorsPipeline(manager);
  ConvertMoEToSchedOptions toSched;
  toSched.reference = options.referenceGemm;
  manager.addPass(createConvertMoEToSched(toSched));
  OpPassManager &programs = manager.nest<sched::ProgramOp>();
  // When: stages of loops, lanes, order, waits.
  if (options.inFlight > 0) {
    sched::SchedSplitStagesOptions split;
    split.inFlight = options.inFlight;
    programs.addPass(sched::createSchedSplitStages(split));
  }
  programs.addPass(sched::createSchedPipelineLoops());
  programs.addPass(sched::createSchedAssignLanes());
  programs.addPass(sched::createSchedHoist());
  programs.addPass(sched::createSchedPlaceWaits());
  programs.addPass(sched::createSchedElideWaits());
  // Where: offsets of slots, along the order that is there now.
  programs.addPass(sched::createSchedPlanArenas());
  programs.addPass(sched::createSchedElideWaits()); // Those that only shared bytes could have needed.
  // Proof: none of the passes above is trusted.
  sched::SchedVerifyOptions verify;
  verify.hbmBytes = options.hbmBytes;
  verify.hostBytes = options.hostBytes;
  programs.addPass(sched::createSchedVerify(verify));
}

void mlir::plateau::buildLowerSchedulePipeline(OpPassManager &manager) {
  manager.addPass(createConvertSchedToLLVM());
  buildLowerToLLVMPipeline(manager);
}

void mlir::plateau::registerSchedulePipelines() {
  PassPipelineRegistration<ScheduleOptions>(
      "plateau-schedule", "Turn functions on tensors into programs whose memory is planned and proven",
      buildSchedulePipeline);
  PassPipelineRegistration<>("plateau-lower-schedule", "Lower verified programs to LLVM calls of the runtime",
                             [](OpPassManager &manager) { buildLowerSchedulePipeline(manager); });
}
