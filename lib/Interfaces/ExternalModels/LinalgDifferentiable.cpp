//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The adjoint of linalg.matmul: two products, in whatever transposition the operands are stored.
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include "plateau/Interfaces/ExternalModels.h"
#include "plateau/Interfaces/Matmul.h"

using namespace mlir;
using namespace mlir::plateau;

/// `value` rounded to `element`; itself when it has that type.
static Value round(OpBuilder &builder, Location loc, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return arith::TruncFOp::create(builder, loc, type.clone(element), value);
}

namespace {
/// With c = op(a)·op(b) + init: d op(a) = dc · op(b)ᵀ, d op(b) = op(a)ᵀ · dc, d init = dc. Products are summed in f32
/// and rounded once to the type of the operand; a wider dc is rounded to it first, so that every product has one
/// operand type.
struct Matmul : DifferentiableOpInterface::ExternalModel<Matmul, linalg::MatmulOp> {
  SmallVector<Value> getResiduals(Operation *op) const { return {op->getOperand(0), op->getOperand(1)}; }

  LogicalResult buildAdjoint(Operation *op, OpBuilder &builder, Location loc, ValueRange residuals,
                             ArrayRef<Value> results, MutableArrayRef<Value> operands) const {
    FailureOr<MatmulForm> form = MatmulForm::get(cast<linalg::MatmulOp>(op));
    if (failed(form))
      return op->emitOpError("has no adjoint for these indexing maps: only transposed operands are known");
    auto [transposeA, transposeB] = *form;
    Value a = residuals[0], b = residuals[1];
    Type element = cast<RankedTensorType>(a.getType()).getElementType();
    if (element != cast<RankedTensorType>(b.getType()).getElementType())
      return op->emitOpError("has no adjoint for operands of two element types");
    Value dc = round(builder, loc, results[0], element);
    Value da = transposeA ? createMatmul(builder, loc, b, dc, {transposeB, true})
                          : createMatmul(builder, loc, dc, b, {false, !transposeB});
    Value db = transposeB ? createMatmul(builder, loc, dc, a, {true, transposeA})
                          : createMatmul(builder, loc, a, dc, {!transposeA, false});
    operands[0] = round(builder, loc, da, element);
    operands[1] = round(builder, loc, db, element);
    operands[2] = results[0];
    return success();
  }
};
} // namespace

void mlir::plateau::registerLinalgDifferentiableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    linalg::MatmulOp::attachInterface<Matmul>(*context);
    context->loadDialect<arith::ArithDialect, tensor::TensorDialect>();
  });
}
