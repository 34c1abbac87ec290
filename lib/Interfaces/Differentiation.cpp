//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Interfaces/Differentiation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"

using namespace mlir;
using namespace mlir::plateau;

/// The sum of two cotangents of one value. Narrow ones are added in f32 and rounded once.
static Value addCotangents(OpBuilder &builder, Location loc, Value a, Value b) {
  auto type = cast<RankedTensorType>(a.getType());
  if (type.getElementType().isF32())
    return arith::AddFOp::create(builder, loc, a, b);
  Type wide = type.clone(builder.getF32Type());
  Value sum = arith::AddFOp::create(builder, loc, arith::ExtFOp::create(builder, loc, wide, a),
                                    arith::ExtFOp::create(builder, loc, wide, b));
  return arith::TruncFOp::create(builder, loc, type, sum);
}

/// Whether `op` reads one of `values`: as an operand, or in a region from outside.
static bool readsAnyOf(Operation &op, const llvm::DenseSet<Value> &values) {
  if (llvm::any_of(op.getOperands(), [&](Value operand) { return values.contains(operand); }))
    return true;
  bool found = false;
  visitUsedValuesDefinedAbove(op.getRegions(), [&](OpOperand *use) { found |= values.contains(use->get()); });
  return found;
}

/// Values of `block` that depend on `inputs` through floating-point values.
static llvm::DenseSet<Value> findActive(Block &block, ValueRange inputs) {
  llvm::DenseSet<Value> active;
  for (Value input : inputs)
    active.insert(input);
  for (Operation &op : block)
    if (readsAnyOf(op, active))
      for (Value result : op.getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result.getType())))
          active.insert(result);
  return active;
}

/// Fails when an op built between `before` (null: the start of the block) and `end` reads a value that is neither built
/// there nor among those handed to the adjoint.
static LogicalResult verifyReads(Operation *op, Operation *before, Block::iterator end, ValueRange residuals,
                                 ArrayRef<Value> resultCotangents, Block *block) {
  llvm::DenseSet<Value> known(residuals.begin(), residuals.end());
  known.insert(resultCotangents.begin(), resultCotangents.end());
  for (auto it = before ? std::next(before->getIterator()) : block->begin(); it != end; ++it) {
    auto isKnown = [&](Value operand) {
      return known.contains(operand) || it->isAncestor(operand.getParentBlock()->getParentOp());
    };
    WalkResult walked = it->walk([&](Operation *inner) {
      return llvm::all_of(inner->getOperands(), isKnown) ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      return op->emitOpError("builds an adjoint that reads a value it does not declare as a residual");
    known.insert(it->getResults().begin(), it->getResults().end());
  }
  return success();
}

LogicalResult mlir::plateau::buildBlockAdjoint(OpBuilder &builder, Block &block, ValueRange inputs,
                                               const IRMapping &restored, llvm::DenseMap<Value, Value> &cotangents,
                                               AdjointLocation locate) {
  llvm::DenseSet<Value> active = findActive(block, inputs);
  Block *target = builder.getInsertionBlock();
  Block::iterator end = builder.getInsertionPoint();
  // The forward ops may stand in the target block themselves: take the list before building.
  SmallVector<Operation *> ops = llvm::map_to_vector(block.without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<Value> resultCotangents =
        llvm::map_to_vector(op->getResults(), [&](Value result) { return cotangents.lookup(result); });
    if (llvm::none_of(resultCotangents, [](Value value) { return static_cast<bool>(value); }) ||
        !readsAnyOf(*op, active))
      continue;
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError("has no adjoint: it does not implement DifferentiableOpInterface");

    SmallVector<Value> residuals = llvm::map_to_vector(differentiable.getResiduals(),
                                                       [&](Value value) { return restored.lookupOrDefault(value); });
    SmallVector<Value> operandCotangents(op->getNumOperands());
    Operation *before = end == target->begin() ? nullptr : &*std::prev(end);
    Location loc = locate(op->getLoc());
    if (failed(differentiable.buildAdjoint(builder, loc, residuals, resultCotangents, operandCotangents)) ||
        failed(verifyReads(op, before, end, residuals, resultCotangents, target)))
      return failure();

    for (auto [operand, cotangent] : llvm::zip_equal(op->getOperands(), operandCotangents)) {
      if (!cotangent || !active.contains(operand))
        continue;
      if (cotangent.getType() != operand.getType())
        return op->emitOpError() << "builds a cotangent of type " << cotangent.getType() << " for an operand of type "
                                 << operand.getType();
      Value &sum = cotangents[operand];
      sum = sum ? addCotangents(builder, loc, sum, cotangent) : cotangent;
    }
  }
  return success();
}
