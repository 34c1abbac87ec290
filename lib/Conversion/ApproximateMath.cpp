//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "plateau/Conversion/Passes.h"

namespace mlir::plateau {
#define GEN_PASS_DEF_PLATEAUAPPROXIMATEMATH
#include "plateau/Conversion/Passes.h.inc"
} // namespace mlir::plateau

using namespace mlir;

namespace {
struct ApproximateMath : plateau::impl::PlateauApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    // Upstream's math.rsqrt is an estimate by AVX instructions; a division by the root is exact and needs no dialect.
    populateMathPolynomialApproximationPatterns(
        patterns, [](StringRef name) { return name != math::RsqrtOp::getOperationName(); });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
