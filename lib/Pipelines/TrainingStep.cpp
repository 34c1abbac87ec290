

#include "plateau/Pipelines/TrainingStep.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::plateau;

void mlir::plateau::buildTrainingStepPipeline(OpPassManager &manager, const moe::MoEAttachOptimizerOptions &options) {
  moe::MoEDifferentiateOptions differentiate;
  differentiate.function = options.function;
  manager.addPass(moe::createMoEDifferentiate(differentiate));
  manager.addPass(moe::createMoEFoldRouteGrad());
  manager.addPass(moe::createMoEAttachOptimizer(options));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void mlir::plateau::registerTrainingStepPipeline() {
  PassPipelineRegistration<>("plateau-training-step", "Differentiate @loss and attach the optimizer: @step",
                             [](OpPassManager &manager) { buildTrainingStepPipeline(manager, {}); });
}
