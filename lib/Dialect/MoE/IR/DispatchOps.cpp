//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/runtime_footprint.h"

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

LogicalResult mlir::plateau::moe::verifyIndex(Operation *op, PlanType plan, Value index) {
  if (static_cast<bool>(index) == (plan.getIterations() > 1))
    return success();
  return op->emitOpError() << "RO1: the plan has " << plan.getIterations() << " iteration"
                           << (plan.getIterations() > 1 ? "s, and the op names none: say which (at %i)"
                                                        : ", and the op names one");
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
  return verifyIndex(*this, plan, getIndex()); // RO1
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
                                   values ? getValues().getType() : Type(), rows, values, residuals[0],
                                   /*index=*/Value(), /*init=*/Value(), /*valuesInit=*/Value(), getGridAttr());
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
  return getBytes(plan, getRows(), getRowValues(), plan.getIterationTokens() * plan.getTopK());
}

LogicalResult CombineOp::verify() {
  PlanType plan = getPlan().getType();
  if (failed(verifyRows(*this, "CB", getResult(), getRows(), plan)) ||      // CB1
      failed(verifyValues(*this, "CB", getValues(), getRowValues(), plan))) // CB2
    return failure();
  if (!getRows() && !getRowValues()) // CB3
    return emitOpError() << "CB3: has neither rows nor values to bring home";
  for (auto [init, result] : {std::pair<Value, Value>(getInit(), getResult()), {getValuesInit(), getValues()}}) {
    if (static_cast<bool>(init) != (getIndex() && result)) // CB5
      return emitOpError()
             << "CB5: a result that an iteration writes a part of needs what it is put into, and no other";
    if (init && init.getType() != result.getType())
      return emitOpError() << "CB5: puts rows into " << init.getType() << " and gives " << result.getType();
  }
  return verifyIndex(*this, plan, getIndex()); // RO1
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
  auto dispatch = DispatchOp::create(builder, loc, result ? getRows().getType() : Type(),
                                     values ? getRowValues().getType() : Type(), result, values, residuals[0],
                                     /*index=*/Value(), getGridAttr());
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

/// Experts `tensor` has numbers of, and how it compares with another one but for that.
static LogicalResult verifyHelpers(Operation *op, StringRef code, PlanType plan, RankedTensorType own,
                                   RankedTensorType helpers) {
  if (own.getDimSize(0) == plan.getLocalExperts() && helpers.getDimSize(0) == plan.getHelperSlots() &&
      own.getShape().drop_front() == helpers.getShape().drop_front() &&
      own.getElementType() == helpers.getElementType())
    return success();
  return op->emitOpError() << code << ": " << own << " and " << helpers << " must be for the plan's "
                           << plan.getLocalExperts() << " experts of a rank and its " << plan.getHelperSlots()
                           << " helper slots, and otherwise alike";
}

static LogicalResult verifyHelperGrid(Operation *op, StringRef code, FlatSymbolRefAttr grid, PlanType plan) {
  if (plan.getHelperSlots() == 0)
    return op->emitOpError() << code << ": the plan has no helper slots";
  return verifyShards(op, grid, plan.getRanks(), code);
}

static int64_t getBytes(RankedTensorType type) { return type.getNumElements() * type.getElementTypeBitWidth() / 8; }

LogicalResult MigrateExpertsOp::verify() {
  return verifyHelpers(*this, "ME1", getPlan().getType(), getWeights().getType(), getResult().getType()); // ME1
}
LogicalResult MigrateExpertsOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyHelperGrid(*this, "ME2", getGridAttr(), getPlan().getType()); // ME2
}
Component MigrateExpertsOp::getDefaultComponent() { return Component::Experts; }
FlatSymbolRefAttr MigrateExpertsOp::getCollectiveGrid() { return getGridAttr(); }
SmallVector<int64_t> MigrateExpertsOp::getCollectiveAxes(int64_t dimensions) { return {dimensions - 1}; }
/// All helpers may help with experts of one rank.
int64_t MigrateExpertsOp::getSentBytes(int64_t ranks) { return (ranks - 1) * getBytes(getResult().getType()); }

LogicalResult ReturnExpertGradsOp::verify() {
  if (!getGrads().getType().getElementType().isF32()) // RG1
    return emitOpError() << "RG1: gradients are " << getGrads().getType() << ", and must be f32";
  return verifyHelpers(*this, "RG1", getPlan().getType(), getGrads().getType(), getHelperGrads().getType()); // RG1
}
LogicalResult ReturnExpertGradsOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyHelperGrid(*this, "RG2", getGridAttr(), getPlan().getType()); // RG2
}
int64_t ReturnExpertGradsOp::getWorkspaceBytes() {
  RankedTensorType type = getGrads().getType();
  return plr_footprint_return_experts(getPlan().getType().getRanks(), type.getDimSize(1) * type.getDimSize(2));
}
Component ReturnExpertGradsOp::getDefaultComponent() { return Component::Experts; }
FlatSymbolRefAttr ReturnExpertGradsOp::getCollectiveGrid() { return getGridAttr(); }
SmallVector<int64_t> ReturnExpertGradsOp::getCollectiveAxes(int64_t dimensions) { return {dimensions - 1}; }
int64_t ReturnExpertGradsOp::getSentBytes(int64_t) { return getBytes(getHelperGrads().getType()); }

RoutedKind DispatchOp::getRoutedKind() { return RoutedKind::Entry; }
RoutedKind CombineOp::getRoutedKind() { return RoutedKind::Exit; }
