//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// From a loss to the whole training step.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_PIPELINES_TRAININGSTEP_H
#define PLATEAU_PIPELINES_TRAININGSTEP_H

#include "mlir/Pass/PassManager.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

namespace mlir::plateau {

/// Adds to `manager` (a pass manager on modules) what turns `@loss` into `@step`: differentiate, attach the optimizer,
/// then remove what the backward pass computes in vain.
void buildTrainingStepPipeline(OpPassManager &manager, const moe::MoEAttachOptimizerOptions &options);

/// Registers the pipeline as `plateau-training-step`, with the options of `moe-attach-optimizer` at their defaults.
void registerTrainingStepPipeline();

} // namespace mlir::plateau

#endif // PLATEAU_PIPELINES_TRAININGSTEP_H
