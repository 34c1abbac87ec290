//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Adjoints of math's elementwise ops on tensors of floats.
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include "plateau/Interfaces/ExternalModels.h"

using namespace mlir;
using namespace mlir::plateau;

namespace {
/// With e = exp(a): de = e · da.
struct Exp : DifferentiableOpInterface::ExternalModel<Exp, math::ExpOp> {
  SmallVector<Value> getResiduals(Operation *op) const { return {op->getResult(0)}; }
  LogicalResult buildAdjoint(Operation *, OpBuilder &builder, Location loc, ValueRange residuals,
                             ArrayRef<Value> results, MutableArrayRef<Value> operands) const {
    operands[0] = arith::MulFOp::create(builder, loc, results[0], residuals[0]);
    return success();
  }
};
} // namespace

void mlir::plateau::registerMathDifferentiableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    math::ExpOp::attachInterface<Exp>(*context);
    context->loadDialect<arith::ArithDialect>();
  });
}
