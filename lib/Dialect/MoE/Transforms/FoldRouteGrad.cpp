//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEFOLDROUTEGRAD
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
/// With u = a · W and the row scale p: ⟨d, u⟩ becomes ⟨d · Wᵀ, a⟩, and (p ∘ d) · Wᵀ becomes p ∘ (d · Wᵀ). Only when the
/// second product is there, so that both share one and u is not needed.
struct FoldRouteGradPattern : OpRewritePattern<RowDotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RowDotOp op, PatternRewriter &rewriter) const override {
    for (auto [d, u] : {std::pair(op.getA(), op.getB()), {op.getB(), op.getA()}}) {
      auto forward = u.getDefiningOp<GroupedMatmulOp>();
      if (!forward)
        continue;
      GroupedMatmulOp backward = findBackward(d, forward);
      if (!backward)
        continue;
      auto scaled = backward.getRows().getDefiningOp<ScaleRowsOp>();
      rewriter.setInsertionPoint(backward->isBeforeInBlock(op) ? backward : op.getOperation());
      Value g =
          GroupedMatmulOp::create(rewriter, backward.getLoc(), backward.getType(), d, backward.getWeights(),
                                  backward.getPlan(), /*helpers=*/Value(), /*index=*/Value(), backward.getTranspose());
      rewriter.setInsertionPoint(op); // Only there are the rows of `forward` surely computed.
      rewriter.replaceOpWithNewOp<RowDotOp>(op, op.getType(), g, forward.getRows());
      rewriter.setInsertionPoint(backward);
      rewriter.replaceOpWithNewOp<ScaleRowsOp>(backward, g, scaled.getFactors());
      return success();
    }
    return failure();
  }

  /// The product of scaled rows of `d` with the weights of `forward`, turned round.
  static GroupedMatmulOp findBackward(Value d, GroupedMatmulOp forward) {
    for (Operation *user : d.getUsers()) {
      auto scale = dyn_cast<ScaleRowsOp>(user);
      if (!scale || scale.getInput() != d || scale->getBlock() != forward->getBlock())
        continue;
      for (Operation *next : scale->getUsers()) {
        auto matmul = dyn_cast<GroupedMatmulOp>(next);
        if (matmul && matmul.getRows() == scale.getResult() && matmul.getWeights() == forward.getWeights() &&
            matmul.getPlan() == forward.getPlan() && !matmul.getHelpers() && !matmul.getIndex() &&
            matmul.getTranspose() != forward.getTranspose() && matmul->getBlock() == forward->getBlock())
          return matmul;
      }
    }
    return {};
  }
};

struct FoldRouteGrad : moe::impl::MoEFoldRouteGradBase<FoldRouteGrad> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldRouteGradPattern>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
