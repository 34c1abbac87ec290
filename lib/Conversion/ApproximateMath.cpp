

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
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef) { return true; });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
