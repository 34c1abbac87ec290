//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Interfaces/Matmul.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::plateau;

/// The map of an operand of a product: dimensions `rows` and `columns` of the loop (m, n, k), swapped when transposed.
static AffineMap getOperandMap(MLIRContext *context, unsigned rows, unsigned columns, bool isTransposed) {
  SmallVector<AffineExpr> dims = {getAffineDimExpr(rows, context), getAffineDimExpr(columns, context)};
  if (isTransposed)
    std::swap(dims[0], dims[1]);
  return AffineMap::get(3, 0, dims, context);
}

FailureOr<MatmulForm> MatmulForm::get(linalg::MatmulOp op) {
  MLIRContext *context = op.getContext();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  MatmulForm form;
  form.transposeA = maps[0] == getOperandMap(context, 0, 2, true);
  form.transposeB = maps[1] == getOperandMap(context, 2, 1, true);
  if ((!form.transposeA && maps[0] != getOperandMap(context, 0, 2, false)) ||
      (!form.transposeB && maps[1] != getOperandMap(context, 2, 1, false)) ||
      maps[2] != getOperandMap(context, 0, 1, false))
    return failure();
  return form;
}

bool mlir::plateau::isOnZeros(linalg::MatmulOp op) {
  auto fill = op.getOutputs()[0].getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

Value mlir::plateau::createMatmul(OpBuilder &builder, Location loc, Value a, Value b, MatmulForm form, Value sums) {
  MLIRContext *context = builder.getContext();
  auto aType = cast<RankedTensorType>(a.getType()), bType = cast<RankedTensorType>(b.getType());
  if (!sums) {
    SmallVector<int64_t> shape = {aType.getDimSize(form.transposeA ? 1 : 0), bType.getDimSize(form.transposeB ? 0 : 1)};
    Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
    Value empty = tensor::EmptyOp::create(builder, loc, shape, builder.getF32Type());
    sums = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  }
  auto product = linalg::MatmulOp::create(builder, loc, TypeRange{sums.getType()}, ValueRange{a, b}, ValueRange{sums});
  product.setIndexingMapsAttr(builder.getAffineMapArrayAttr({getOperandMap(context, 0, 2, form.transposeA),
                                                             getOperandMap(context, 2, 1, form.transposeB),
                                                             getOperandMap(context, 0, 1, false)}));
  return product.getResult(0);
}
