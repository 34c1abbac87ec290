//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEINLINECHECKPOINTS
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
struct InlineCheckpoints : moe::impl::MoEInlineCheckpointsBase<InlineCheckpoints> {
  void runOnOperation() override {
    SmallVector<CheckpointOp> regions;
    getOperation()->walk([&](CheckpointOp op) { regions.push_back(op); }); // inner ones first
    for (CheckpointOp op : regions) {
      Block &body = op.getBody().front();
      Operation *yield = body.getTerminator();
      for (auto [argument, input] : llvm::zip_equal(body.getArguments(), op.getInputs()))
        argument.replaceAllUsesWith(input);
      for (auto [result, value] : llvm::zip_equal(op->getResults(), yield->getOperands()))
        result.replaceAllUsesWith(value);
      yield->erase();
      op->getBlock()->getOperations().splice(op->getIterator(), body.getOperations());
      op->erase();
    }
  }
};
} // namespace
