//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEVERIFYSPACES
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau::moe;

static SpaceAttr getSpace(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_if_present<SpaceAttr>(tensor.getEncoding()) : SpaceAttr();
}

/// Ops that hand tensors on and never look into them: types of both sides are verified to be equal.
static bool handsOn(Operation *op) {
  return isa<func::FuncOp, func::ReturnOp, func::CallOp, scf::ForOp, scf::YieldOp, CheckpointOp, YieldOp>(op);
}

static LogicalResult verify(Operation *op) {
  auto slice = [&](Type whole, Type part) -> LogicalResult {
    if (getSpace(whole) == getSpace(part))
      return success();
    return op->emitOpError() << "takes " << whole << " to " << part
                             << ": a slice lies in the space of the tensor it is a part of";
  };
  if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op))
    return slice(extract.getSourceType(), extract.getType());
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return slice(insert.getDestType(), insert.getSourceType());
  if (handsOn(op))
    return success();
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes()))
    if (getSpace(type))
      return op->emitOpError() << "reads operand #" << index << ", " << type
                               << ", which lies in the host space, where this op cannot reach";
  for (auto [index, type] : llvm::enumerate(op->getResultTypes()))
    if (getSpace(type))
      return op->emitOpError() << "makes result #" << index << ", " << type
                               << ", in the host space, where this op cannot reach";
  return success();
}

namespace {
struct VerifySpaces : plateau::moe::impl::MoEVerifySpacesBase<VerifySpaces> {
  void runOnOperation() override {
    WalkResult walked = getOperation()->walk(
        [](Operation *op) { return failed(verify(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
    if (walked.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
