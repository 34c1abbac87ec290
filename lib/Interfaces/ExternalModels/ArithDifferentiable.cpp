//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Adjoints of arith's elementwise ops on tensors of floats.
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include "plateau/Interfaces/ExternalModels.h"

using namespace mlir;
using namespace mlir::plateau;

namespace {
template <typename Model, typename Op>
using DifferentiableModel = DifferentiableOpInterface::ExternalModel<Model, Op>;

/// d(a + b) = da + db.
struct AddF : DifferentiableModel<AddF, arith::AddFOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *, OpBuilder &, Location, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    operands[0] = operands[1] = results[0];
    return success();
  }
};

/// d(a − b) = da − db.
struct SubF : DifferentiableModel<SubF, arith::SubFOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    operands[0] = results[0];
    operands[1] = arith::NegFOp::create(builder, loc, results[0]);
    return success();
  }
};

/// d(a · b) = da · b + a · db.
struct MulF : DifferentiableModel<MulF, arith::MulFOp> {
  SmallVector<Value> getResiduals(Operation *op) const { return llvm::to_vector(op->getOperands()); }
  LogicalResult buildAdjoint(Operation *, OpBuilder &builder, Location loc, ValueRange residuals,
                             ArrayRef<Value> results, MutableArrayRef<Value> operands) const {
    operands[0] = arith::MulFOp::create(builder, loc, results[0], residuals[1]);
    operands[1] = arith::MulFOp::create(builder, loc, results[0], residuals[0]);
    return success();
  }
};

/// With q = a / b: dq = (da − q · db) / b.
struct DivF : DifferentiableModel<DivF, arith::DivFOp> {
  SmallVector<Value> getResiduals(Operation *op) const { return {op->getOperand(1), op->getResult(0)}; }
  LogicalResult buildAdjoint(Operation *, OpBuilder &builder, Location loc, ValueRange residuals,
                             ArrayRef<Value> results, MutableArrayRef<Value> operands) const {
    operands[0] = arith::DivFOp::create(builder, loc, results[0], residuals[0]);
    Value product = arith::MulFOp::create(builder, loc, operands[0], residuals[1]);
    operands[1] = arith::NegFOp::create(builder, loc, product);
    return success();
  }
};

struct NegF : DifferentiableModel<NegF, arith::NegFOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    operands[0] = arith::NegFOp::create(builder, loc, results[0]);
    return success();
  }
};

/// The smaller operand takes the cotangent; on a tie the second does.
struct MinimumF : DifferentiableModel<MinimumF, arith::MinimumFOp> {
  SmallVector<Value> getResiduals(Operation *op) const { return llvm::to_vector(op->getOperands()); }
  LogicalResult buildAdjoint(Operation *, OpBuilder &builder, Location loc, ValueRange residuals,
                             ArrayRef<Value> results, MutableArrayRef<Value> operands) const {
    Value isFirst = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, residuals[0], residuals[1]);
    Type type = results[0].getType();
    Value zero = arith::ConstantOp::create(builder, loc, type, builder.getZeroAttr(type));
    operands[0] = arith::SelectOp::create(builder, loc, isFirst, results[0], zero);
    operands[1] = arith::SelectOp::create(builder, loc, isFirst, zero, results[0]);
    return success();
  }
};

/// The cotangent of a widened value is rounded to the narrow type, and the other way round.
struct ExtF : DifferentiableModel<ExtF, arith::ExtFOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *op, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    operands[0] = arith::TruncFOp::create(builder, loc, op->getOperand(0).getType(), results[0]);
    return success();
  }
};

struct TruncF : DifferentiableModel<TruncF, arith::TruncFOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *op, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    operands[0] = arith::ExtFOp::create(builder, loc, op->getOperand(0).getType(), results[0]);
    return success();
  }
};
} // namespace

void mlir::plateau::registerArithDifferentiableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    arith::AddFOp::attachInterface<AddF>(*context);
    arith::SubFOp::attachInterface<SubF>(*context);
    arith::MulFOp::attachInterface<MulF>(*context);
    arith::DivFOp::attachInterface<DivF>(*context);
    arith::NegFOp::attachInterface<NegF>(*context);
    arith::MinimumFOp::attachInterface<MinimumF>(*context);
    arith::ExtFOp::attachInterface<ExtF>(*context);
    arith::TruncFOp::attachInterface<TruncF>(*context);
  });
}
