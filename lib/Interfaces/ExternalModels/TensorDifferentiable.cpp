//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Adjoints of tensor's reshapes: the reshape back.
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include "plateau/Interfaces/ExternalModels.h"

using namespace mlir;
using namespace mlir::plateau;

namespace {
struct ExpandShape : DifferentiableOpInterface::ExternalModel<ExpandShape, tensor::ExpandShapeOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *op, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    auto expand = cast<tensor::ExpandShapeOp>(op);
    operands[0] = tensor::CollapseShapeOp::create(builder, loc, expand.getSrcType(), results[0],
                                                  expand.getReassociationIndices());
    return success();
  }
};

struct CollapseShape : DifferentiableOpInterface::ExternalModel<CollapseShape, tensor::CollapseShapeOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *op, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    auto collapse = cast<tensor::CollapseShapeOp>(op);
    if (!collapse.getSrcType().hasStaticShape())
      return op->emitOpError("has no adjoint for dynamic shapes");
    operands[0] = tensor::ExpandShapeOp::create(builder, loc, collapse.getSrcType(), results[0],
                                                collapse.getReassociationIndices());
    return success();
  }
};
} // namespace

void mlir::plateau::registerTensorDifferentiableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    tensor::ExpandShapeOp::attachInterface<ExpandShape>(*context);
    tensor::CollapseShapeOp::attachInterface<CollapseShape>(*context);
  });
}
