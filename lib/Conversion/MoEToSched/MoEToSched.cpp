//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "FunctionConversion.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "plateau/Conversion/Passes.h"

namespace mlir::plateau {
#define GEN_PASS_DEF_CONVERTMOETOSCHED
#include "plateau/Conversion/Passes.h.inc"
} // namespace mlir::plateau

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

/// A fence cannot stand in a loop, and a plan needs one: a loop with a plan becomes its iterations.
static LogicalResult unrollLoopsWithPlans(func::FuncOp function) {
  SmallVector<scf::ForOp> loops;
  function.walk([&](scf::ForOp loop) { // Inner ones first.
    if (loop.walk([](PlanOp) { return WalkResult::interrupt(); }).wasInterrupted())
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    if (failed(loopUnrollFull(loop)))
      return loop.emitOpError("makes a plan in each iteration, and its bounds are not constant");
  if (loops.empty())
    return success();
  // The counters are arithmetic on constants now.
  OpBuilder builder(function.getContext());
  function.walk([&](Operation *op) {
    if (op->getNumResults() != 1 || !op->getResult(0).getType().isIndex() || op->hasTrait<OpTrait::ConstantLike>())
      return;
    builder.setInsertionPoint(op);
    SmallVector<Value> folded;
    if (succeeded(builder.tryFold(op, folded))) {
      op->replaceAllUsesWith(folded);
      op->erase();
    }
  });
  return success();
}

namespace {
struct MoEToSched : plateau::impl::ConvertMoEToSchedBase<MoEToSched> {
  using Base::Base;

  void runOnOperation() override {
    KernelBuilder kernels(getOperation());
    plr_gemm_kind gemm = reference ? PLR_GEMM_REFERENCE : PLR_GEMM_ONEDNN;
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      if (function.isPublic() &&
          (failed(unrollLoopsWithPlans(function)) || failed(FunctionConversion(function, kernels, gemm).run())))
        return signalPassFailure();
      function.erase();
    }
  }
};
} // namespace
