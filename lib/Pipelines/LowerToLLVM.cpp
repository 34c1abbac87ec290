//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Pipelines/LowerToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "plateau/Conversion/Passes.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::plateau;

void mlir::plateau::buildPrepareTensorsPipeline(OpPassManager &manager) {
  // No pass from here on merges equal ops: recomputation stays.
  OpPassManager &functions = manager.nest<func::FuncOp>();
  auto add = [&](std::unique_ptr<Pass> pass) {
    functions.addPass(std::move(pass));
    functions.addPass(moe::createMoEVerifySpaces());
  };
  add(moe::createMoEExpandVocabLoss());
  add(moe::createMoEExpandEmbedding());
  add(moe::createMoEInlineCheckpoints());
  add(moe::createMoEFoldMatmul());
  add(moe::createMoEFuseElementwise());
  add(moe::createMoEHoistSums());
}

void mlir::plateau::buildLowerToLLVMPipeline(OpPassManager &manager) {
  manager.addPass(createPlateauApproximateMath());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true; // libgcc has no conversions of bf16.
  manager.addPass(arith::createArithExpandOpsPass(expand));
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}
