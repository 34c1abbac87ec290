//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "plateau/Interfaces/Matmul.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEFOLDMATMUL
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

/// Whether `sum` is computed, or carried by a loop, before `op` in its block, and read only once.
static bool isThere(Value sum, Operation *op) {
  if (!sum.hasOneUse() || sum.getParentBlock() != op->getBlock())
    return false;
  if (Operation *origin = sum.getDefiningOp())
    return origin->isBeforeInBlock(op) && !origin->hasTrait<OpTrait::ConstantLike>();
  return isa<scf::ForOp>(op->getBlock()->getParentOp());
}

namespace {
/// truncf(matmul on zeros) -> matmul with a narrow result.
struct FoldRounding : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    auto matmul = op.getIn().getDefiningOp<linalg::MatmulOp>();
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!matmul || !type || !matmul->hasOneUse() || !isOnZeros(matmul))
      return failure();
    rewriter.setInsertionPoint(matmul);
    Location loc = matmul.getLoc();
    Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(), type.getElementType());
    Value init = linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);
    auto narrow = linalg::MatmulOp::create(rewriter, loc, TypeRange{type}, matmul.getInputs(), ValueRange{init});
    narrow.setIndexingMapsAttr(matmul.getIndexingMapsAttr());
    rewriter.replaceOp(op, narrow->getResults());
    return success();
  }
};

/// a + matmul on zeros -> matmul onto a, where the matmul stands, when a is there already and this sum alone reads it.
/// (Moved to the sum instead, the matmul would keep its operands alive until then.)
struct FoldSum : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp op, PatternRewriter &rewriter) const override {
    for (unsigned index : {1, 0}) {
      auto matmul = op->getOperand(index).getDefiningOp<linalg::MatmulOp>();
      Value sum = op->getOperand(1 - index);
      if (!matmul || !matmul->hasOneUse() || !isOnZeros(matmul) || !isThere(sum, matmul))
        continue;
      rewriter.setInsertionPoint(matmul);
      auto onto = linalg::MatmulOp::create(rewriter, matmul.getLoc(), TypeRange{op.getType()}, matmul.getInputs(),
                                           ValueRange{sum});
      onto.setIndexingMapsAttr(matmul.getIndexingMapsAttr());
      rewriter.replaceOp(op, onto->getResults());
      return success();
    }
    return failure();
  }
};

/// a + the gradient of experts' weights -> that gradient onto a.
struct FoldExpertSum : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp op, PatternRewriter &rewriter) const override {
    for (unsigned index : {1, 0}) {
      auto gradient = op->getOperand(index).getDefiningOp<GroupedMatmulGradOp>();
      Value sum = op->getOperand(1 - index);
      if (!gradient || !gradient->hasOneUse() || gradient.getInit() || gradient.getHelperResult() ||
          !isThere(sum, gradient))
        continue;
      rewriter.setInsertionPoint(gradient);
      rewriter.replaceOpWithNewOp<GroupedMatmulGradOp>(op, op.getType(), /*helperResult=*/Type(), gradient.getA(),
                                                       gradient.getB(), gradient.getPlan(), sum,
                                                       /*helperInit=*/Value(), gradient.getIndex());
      return success();
    }
    return failure();
  }
};

struct FoldMatmul : moe::impl::MoEFoldMatmulBase<FoldMatmul> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldRounding, FoldSum, FoldExpertSum>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
