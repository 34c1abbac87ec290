

#include "plateau/Pipelines/LowerDynamic.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "plateau/Conversion/Passes.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::plateau;

void mlir::plateau::buildLowerDynamicPipeline(OpPassManager &manager) {
  // Tensors. No pass from here on merges equal ops: recomputation stays.
  manager.addNestedPass<func::FuncOp>(moe::createMoEInlineCheckpoints());
  manager.addNestedPass<func::FuncOp>(moe::createMoEFoldMatmul());
  manager.addNestedPass<func::FuncOp>(moe::createMoEFuseElementwise());
  // Calls and kernels.
  manager.addPass(createConvertMoEToRuntime());
  // LLVM.
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

void mlir::plateau::registerLowerDynamicPipeline() {
  PassPipelineRegistration<>("plateau-lower-dynamic", "Lower to LLVM calls of the runtime, with memory from a pool",
                             [](OpPassManager &manager) { buildLowerDynamicPipeline(manager); });
}
