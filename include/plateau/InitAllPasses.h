//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Registers every pass and pipeline of Plateau.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INITALLPASSES_H
#define PLATEAU_INITALLPASSES_H

#include "plateau/Conversion/Passes.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"
#include "plateau/Dialect/Sched/Verify/Passes.h"
#include "plateau/Pipelines/LowerDynamic.h"
#include "plateau/Pipelines/Schedule.h"
#include "plateau/Pipelines/TrainingStep.h"

namespace mlir::plateau {

inline void registerAllPasses() {
  moe::registerMoEPasses();
  sched::registerSchedPasses();
  sched::registerSchedVerifyPasses();
  registerPlateauConversionPasses();
  registerLowerDynamicPipeline();
  registerSchedulePipelines();
  registerTrainingStepPipeline();
}

} // namespace mlir::plateau

#endif // PLATEAU_INITALLPASSES_H
