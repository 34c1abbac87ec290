//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEHOISTSUMS
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;

namespace {
struct HoistSums : plateau::moe::impl::MoEHoistSumsBase<HoistSums> {
  void runOnOperation() override {
    SmallVector<shard::AllReduceOp> sums;
    getOperation().walk([&](shard::AllReduceOp sum) { sums.push_back(sum); });
    llvm::DenseMap<Operation *, Operation *> last; // Behind each source: sums of one op's results stay in order.
    for (shard::AllReduceOp sum : sums) {
      Operation *source = sum.getInput().getDefiningOp();
      if (!source || source->getBlock() != sum->getBlock())
        continue;
      Operation *&behind = last.try_emplace(source, source).first->second;
      sum->moveAfter(behind);
      behind = sum;
    }
  }
};
} // namespace
