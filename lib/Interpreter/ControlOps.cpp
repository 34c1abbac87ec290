//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Calls and checkpoint regions: a body evaluated on all ranks.
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

static SmallVector<RankValues> getOperands(Evaluator &evaluator, Operation *op) {
  return llvm::map_to_vector(op->getOperands(), [&](Value operand) { return evaluator.get(operand); });
}

static LogicalResult setResults(Evaluator &evaluator, Operation *op, FailureOr<SmallVector<RankValues>> results) {
  if (failed(results))
    return failure();
  for (auto [result, tensors] : llvm::zip_equal(op->getResults(), *results))
    evaluator.set(result, std::move(tensors));
  return success();
}

static LogicalResult evaluateCall(Evaluator &evaluator, Operation *op) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, cast<func::CallOp>(op).getCalleeAttr());
  if (!callee)
    return evaluator.fail(op, "calls '" + cast<func::CallOp>(op).getCallee() + "', which is not a func.func");
  return setResults(evaluator, op, evaluator.evaluateFunction(callee, getOperands(evaluator, op)));
}

/// Memory is no concern here: evaluating the body is all there is to it, `recompute` or not.
static LogicalResult evaluateCheckpoint(Evaluator &evaluator, Operation *op) {
  Region &body = cast<moe::CheckpointOp>(op).getBody();
  return setResults(evaluator, op, evaluator.evaluateRegion(body, getOperands(evaluator, op)));
}

static LogicalResult evaluateFor(Evaluator &evaluator, Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  // The bounds are the same on all ranks, or collectives in the loop would not meet.
  int64_t bounds[3];
  for (auto [bound, value] :
       llvm::zip_equal(bounds, ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})) {
    const RankValues &values = evaluator.get(value);
    bound = values.front().get<int64_t>()[0];
    for (const Tensor &other : values)
      if (other.get<int64_t>()[0] != bound)
        return evaluator.fail(op, "runs from, to or by another number on another rank");
  }
  if (bounds[2] < 1)
    return evaluator.fail(op, "has a step of " + Twine(bounds[2]) + ", which must be positive");
  SmallVector<RankValues> carried =
      llvm::map_to_vector(loop.getInitArgs(), [&](Value init) { return evaluator.get(init); });
  for (int64_t index = bounds[0]; index < bounds[1]; index += bounds[2]) {
    Tensor number = Tensor::make({}, index);
    SmallVector<RankValues> arguments = {RankValues(evaluator.getRanks(), number)};
    arguments.append(carried);
    FailureOr<SmallVector<RankValues>> results = evaluator.evaluateRegion(loop.getRegion(), arguments);
    if (failed(results))
      return failure();
    carried = std::move(*results);
  }
  return setResults(evaluator, op, std::move(carried));
}

void interpreter::addControlOps(OpTable &table) {
  table.add(func::CallOp::getOperationName(), evaluateCall);
  table.add(moe::CheckpointOp::getOperationName(), evaluateCheckpoint);
  table.add(scf::ForOp::getOperationName(), evaluateFor);
}
