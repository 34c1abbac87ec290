//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

/// One pair of a token-side tensor and its rows: both there or neither, of fitting shapes.
static LogicalResult verifyRows(Operation *op, StringRef code, Value tokens, Value rows, PlanType plan) {
  if (static_cast<bool>(tokens) != static_cast<bool>(rows))
    return op->emitOpError() << code << "3: rows must have both an operand and a result, or neither";
  if (!tokens)
    return success();
  auto tokenType = cast<RankedTensorType>(tokens.getType()), rowType = cast<RankedTensorType>(rows.getType());
  if (!rowType.isDynamicDim(0))
    return op->emitOpError() << code << "1: the rows received are known when the step runs: " << rowType
                             << " must be [?, columns]";
  if (tokenType.getDimSize(0) != plan.getTokens() || rowType.getDimSize(1) != tokenType.getDimSize(1) ||
      rowType.getElementType() != tokenType.getElementType())
    return op->emitOpError() << code << "1: " << tokenType << " and " << rowType
                             << " must have the same columns and element type, and the first the plan's "
                             << plan.getTokens() << " rows";
  return success();
}

static LogicalResult verifyValues(Operation *op, StringRef code, Value slots, Value values, PlanType plan) {
  if (static_cast<bool>(slots) != static_cast<bool>(values))
    return op->emitOpError() << code << "3: values must have both an operand and a result, or neither";
  if (!slots)
    return success();
  if (auto type = cast<RankedTensorType>(values.getType()); !type.isDynamicDim(0))
    return op->emitOpError() << code << "2: the rows received are known when the step runs: " << type << " must be [?]";
  auto type = cast<RankedTensorType>(slots.getType());
  if (type.getDimSize(0) != plan.getTokens() || type.getDimSize(1) != plan.getTopK())
    return op->emitOpError() << code << "2: " << type << " must have the plan's " << plan.getTokens() << " tokens and "
                             << plan.getTopK() << " slots";
  return success();
}

/// What one rank sends at most: every slot of its tokens to others, or every row it may receive back.
static int64_t getBytes(PlanType plan, Value rows, Value values, int64_t count) {
  int64_t bytes = values ? 4 : 0;
  if (rows) {
    auto type = cast<RankedTensorType>(rows.getType());
    bytes += type.getDimSize(1) * type.getElementTypeBitWidth() / 8;
  }
  return count * bytes;
}

LogicalResult DispatchOp::verify() {
  PlanType plan = getPlan().getType();
  if (failed(verifyRows(*this, "D", getInput(), getRows(), plan)) ||       // D1
      failed(verifyValues(*this, "D", getValues(), getRowValues(), plan))) // D2
    return failure();
  if (!getInput() && !getValues()) // D3
    return emitOpError() << "D3: has neither rows nor values to send";
  return success();
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyShards(*this, getGridAttr(), getPlan().getType().getRanks(), "D4"); // D4
}

SmallVector<Value> DispatchOp::getResiduals() { return {getPlan()}; }

LogicalResult DispatchOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                       ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  unsigned next = 0;
  Value rows = getRows() ? resultCotangents[next++] : Value(),
        values = getRowValues() ? resultCotangents[next] : Value();
  auto combine = CombineOp::create(builder, loc, rows ? getInput().getType() : Type(),
                                   values ? getValues().getType() : Type(), rows, values, residuals[0], getGridAttr());
  next = 0;
  if (getInput())
    operandCotangents[next++] = combine.getResult();
  if (getValues())
    operandCotangents[next] = combine.getValues();
  return success();
}

Component DispatchOp::getDefaultComponent() { return Component::Dispatch; }

FlatSymbolRefAttr DispatchOp::getCollectiveGrid() { return getGridAttr(); }
SmallVector<int64_t> DispatchOp::getCollectiveAxes(int64_t dimensions) { return {dimensions - 1}; }
int64_t DispatchOp::getSentBytes(int64_t) {
  PlanType plan = getPlan().getType();
  return getBytes(plan, getRows(), getRowValues(), plan.getTokens() * plan.getTopK());
}

LogicalResult CombineOp::verify() {
  PlanType plan = getPlan().getType();
  if (failed(verifyRows(*this, "CB", getResult(), getRows(), plan)) ||      // CB1
      failed(verifyValues(*this, "CB", getValues(), getRowValues(), plan))) // CB2
    return failure();
  if (!getRows() && !getRowValues()) // CB3
    return emitOpError() << "CB3: has neither rows nor values to bring home";
  return success();
}

LogicalResult CombineOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyShards(*this, getGridAttr(), getPlan().getType().getRanks(), "CB4"); // CB4
}

SmallVector<Value> CombineOp::getResiduals() { return {getPlan()}; }

LogicalResult CombineOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                      ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  unsigned next = 0;
  Value result = getResult() ? resultCotangents[next++] : Value(),
        values = getValues() ? resultCotangents[next] : Value();
  auto dispatch =
      DispatchOp::create(builder, loc, result ? getRows().getType() : Type(),
                         values ? getRowValues().getType() : Type(), result, values, residuals[0], getGridAttr());
  next = 0;
  if (getRows())
    operandCotangents[next++] = dispatch.getRows();
  if (getRowValues())
    operandCotangents[next] = dispatch.getRowValues();
  return success();
}

Component CombineOp::getDefaultComponent() { return Component::Dispatch; }

FlatSymbolRefAttr CombineOp::getCollectiveGrid() { return getGridAttr(); }
SmallVector<int64_t> CombineOp::getCollectiveAxes(int64_t dimensions) { return {dimensions - 1}; }
int64_t CombineOp::getSentBytes(int64_t) {
  PlanType plan = getPlan().getType();
  return getBytes(plan, getRows(), getRowValues(), plan.getMaxRows());
}
