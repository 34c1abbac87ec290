//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Pipelines/LowerDynamic.h"
#include "mlir/Pass/PassRegistry.h"
#include "plateau/Conversion/Passes.h"
#include "plateau/Pipelines/LowerToLLVM.h"

using namespace mlir;
using namespace mlir::plateau;

void mlir::plateau::buildLowerDynamicPipeline(OpPassManager &manager) {
  buildPrepareTensorsPipeline(manager);
  manager.addPass(createConvertMoEToSched());
  ConvertSchedToLLVMOptions options;
  options.pool = true;
  manager.addPass(createConvertSchedToLLVM(options));
  buildLowerToLLVMPipeline(manager);
}

void mlir::plateau::registerLowerDynamicPipeline() {
  PassPipelineRegistration<>("plateau-lower-dynamic", "Lower to LLVM calls of the runtime, with memory from a pool",
                             [](OpPassManager &manager) { buildLowerDynamicPipeline(manager); });
}
