//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Calls and checkpoint regions: a body evaluated on all ranks.
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
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

void interpreter::addControlOps(OpTable &table) {
  table.add(func::CallOp::getOperationName(), evaluateCall);
  table.add(moe::CheckpointOp::getOperationName(), evaluateCheckpoint);
}
