//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Pipelines/TrainingStep.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::plateau;

void mlir::plateau::buildTrainingStepPipeline(OpPassManager &manager, const moe::MoEAttachOptimizerOptions &options) {
  moe::MoEDifferentiateOptions differentiate;
  differentiate.function = options.function;
  auto add = [&](std::unique_ptr<Pass> pass) {
    manager.addPass(std::move(pass));
    manager.addPass(moe::createMoEVerifySpaces());
  };
  add(moe::createMoEDifferentiate(differentiate));
  add(moe::createMoEFoldRouteGrad());
  add(moe::createMoEAttachOptimizer(options));
  add(createCanonicalizerPass());
  add(createCSEPass());
}

void mlir::plateau::registerTrainingStepPipeline() {
  PassPipelineRegistration<>("plateau-training-step", "Differentiate @loss and attach the optimizer: @step",
                             [](OpPassManager &manager) { buildTrainingStepPipeline(manager, {}); });
}
