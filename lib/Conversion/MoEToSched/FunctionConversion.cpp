//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "FunctionConversion.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

MemRefType FunctionConversion::getMemory(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (Value plan = getPlan(tensor))
    shape[0] = cast<PlanType>(plan.getType()).getMaxRows();
  return MemRefType::get(shape, type.getElementType());
}

sched::TagAttr FunctionConversion::getTag(Operation *op, bool isWorkspace) {
  ScopeAttr scope = getScope(op->getLoc());
  Component component = Component::Dense;
  if (auto footprint = dyn_cast<FootprintOpInterface>(op))
    component = footprint.getDefaultComponent();
  Phase phase = Phase::Forward;
  std::optional<int64_t> layer;
  if (scope) {
    component = scope.getComponent();
    phase = scope.getPhase();
    layer = scope.getLayer();
  }
  std::string name =
      op->getName().getStringRef() == "linalg.generic" ? "elementwise" : op->getName().getStringRef().str();
  StringRef place = getLocationName(op->getLoc());
  if (!place.empty())
    name += (" " + place).str();
  return sched::TagAttr::get(op->getContext(), name, isWorkspace ? Component::Workspace : component, phase, layer);
}

IntegerAttr FunctionConversion::getStage(Operation *op) {
  auto stage = op->getAttrOfType<IntegerAttr>("moe.stage");
  return stage ? builder.getI64IntegerAttr(stage.getInt()) : IntegerAttr();
}

Value FunctionConversion::getPlace(View view, MemRefType type) {
  Value root = buffers.getRoot(view.buffer);
  if (view.offsetBytes == 0 && root.getType() == type)
    return root;
  return sched::ViewOp::create(builder, loc, type, root, /*index=*/Value(), view.offsetBytes, /*stride=*/0,
                               /*ring=*/IntegerAttr());
}

Value FunctionConversion::getContent(Value tensor) {
  Content content = contents.at(tensor);
  MemRefType type = getMemory(tensor);
  if (content.offsetBytes == 0 && content.base.getType() == type)
    return content.base;
  return sched::ViewOp::create(builder, loc, type, content.base, /*index=*/Value(), content.offsetBytes, /*stride=*/0,
                               /*ring=*/IntegerAttr());
}

void FunctionConversion::allocate(Operation *op, Value result) {
  if (std::optional<Buffers::Place> place = buffers.getPlace(result); place && place->group != result) {
    if (!buffers.isBound(place->group))
      allocate(place->group.getDefiningOp(), place->group);
    View group = buffers.getView(place->group);
    buffers.bind(result, {group.buffer, group.offsetBytes + place->offsetBytes});
    return;
  }
  if (allocateInPlace(op, result))
    return;
  // Rows of one iteration of many: even a pool gives the most that there can be.
  Value plan = getPlanRows(result).iteration ? Value() : getPlan(result);
  Value slot = sched::SlotOp::create(builder, op->getLoc(), getMemory(result), sched::Space::Device, getTag(op),
                                     plan ? planTables.at(plan).first : Value());
  buffers.bind(result, {buffers.add(slot, getTensorBytes(result.getType()), /*isOwned=*/true, /*isWritable=*/true)});
}

Value FunctionConversion::copy(Operation *op, Value content, Value place) {
  return sched::CopyOp::create(builder, op->getLoc(), sched::Lane::Compute, getStage(op),
                               /*waits=*/ValueRange(), content, /*tables=*/ValueRange(), place, getTag(op))
      .getValues()[0];
}

bool mlir::plateau::isReadBeside(OpOperand &operand, const Buffers &buffers) {
  View view = buffers.getView(operand.get());
  int64_t end = view.offsetBytes + getTensorBytes(operand.get().getType());
  auto pack = dyn_cast<PackOp>(operand.getOwner());
  return llvm::any_of(operand.getOwner()->getOpOperands(), [&](OpOperand &other) {
    if (other.getOperandNumber() == operand.getOperandNumber() || !buffers.isBound(other.get()))
      return false;
    View otherView = buffers.getView(other.get());
    int64_t otherEnd = otherView.offsetBytes + getTensorBytes(other.get().getType());
    if (otherView.buffer != view.buffer || otherView.offsetBytes >= end || otherEnd <= view.offsetBytes)
      return false;
    if (!pack)
      return true;
    MemberAttr member = pack.getLayout().getMembers()[other.getOperandNumber() - 1];
    int64_t elementBytes = pack.getInto().getType().getElementTypeBitWidth() / 8;
    return otherView.offsetBytes != view.offsetBytes + member.getOffset() * elementBytes;
  });
}

void FunctionConversion::take(OpOperand &operand, Value result) {
  Operation *op = operand.getOwner();
  if (PlanRows rows = getPlanRows(operand.get()); rows.plan)
    planRows[result] = rows;
  if (buffers.canTake(operand.get(), op) && !isReadBeside(operand, buffers)) {
    buffers.bind(result, buffers.getView(operand.get()));
    contents[result] = contents.lookup(operand.get());
    return;
  }
  Value content = getContent(operand.get());
  allocate(op, result);
  setContent(result, copy(op, content, getPlace(buffers.getView(result), getMemory(result))));
}

void FunctionConversion::reuse(OpOperand &operand, Value result) {
  View view = buffers.getView(operand.get());
  if (operand.get().getType() != result.getType() || !buffers.isOwned(view.buffer) || buffers.getPlace(result) ||
      !buffers.canTake(operand.get(), operand.getOwner()) || isReadBeside(operand, buffers))
    return allocate(operand.getOwner(), result);
  buffers.bind(result, view);
}
/// Whether the op gives rows whose number is known when the step runs.
static bool hasRoutedRows(Operation *op) {
  return isa<DispatchOp, GroupedMatmulOp, SwiGLUOp, SwiGLUGradOp, ScaleRowsOp, RowDotOp>(op);
}

/// Whether memory for a tensor of this type can be asked for: its size is known, and a number of 64 bits.
static bool hasBytes(RankedTensorType type) {
  return type && type.hasStaticShape() && type.getElementType().isIntOrFloat() && type.getElementTypeBitWidth() <= 64 &&
         countElements(type.getShape());
}

LogicalResult FunctionConversion::checkTypes() {
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
    if (!hasBytes(dyn_cast<RankedTensorType>(type)))
      return function.emitError() << "@" << function.getName() << " has " << type
                                  << " in its signature: only static tensors of numbers, of at most 2^60 elements, are "
                                     "lowered";
  WalkResult walked = function.getBody().walk([&](Operation *inner) {
    Operation &op = *inner;
    if (isa<linalg::GenericOp>(op.getParentOp()))
      return WalkResult::advance();
    for (Type type : op.getResultTypes())
      if (auto tensor = dyn_cast<TensorType>(type);
          tensor && !hasRoutedRows(&op) && !hasBytes(dyn_cast<RankedTensorType>(tensor))) {
        op.emitOpError() << "has a result of type " << type
                         << ": only static tensors of numbers, of at most 2^60 elements, are lowered";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}
/// What an argument or result counts under.
static Component getComponent(std::optional<Role> role) {
  if (!role)
    return Component::External;
  switch (*role) {
  case Role::Tokens:
    return Component::Embedding;
  case Role::Labels:
  case Role::LabelCount:
  case Role::Loss:
    return Component::Vocabulary;
  case Role::Positions:
  case Role::Starts:
    return Component::Attention;
  case Role::TokenCount:
  case Role::ExpertCounts:
    return Component::Routing;
  case Role::Parameters:
    return Component::Parameters;
  case Role::Gradients:
    return Component::Gradients;
  case Role::LearningRate:
  case Role::Step:
  case Role::FirstMoment:
  case Role::SecondMoment:
  case Role::Master:
  case Role::GradientNorm:
    return Component::Optimizer;
  }
  return Component::External;
}

/// One for each argument, then one for each result that no argument is donated to.
void FunctionConversion::createBuffers() {
  llvm::SmallDenseSet<int64_t> donated;
  auto make = [&](int64_t number, Type type, bool isWritable, StringRef kind, unsigned index, RoleAttr role,
                  StringAttr buffer) {
    std::string name = (kind + " " +
                        (role     ? stringifyRole(role.getValue()).str()
                         : buffer ? buffer.str()
                                  : "#" + std::to_string(index)))
                           .str();
    Component component =
        buffer ? Component::Parameters : getComponent(role ? std::optional(role.getValue()) : std::nullopt);
    auto tensor = cast<RankedTensorType>(type);
    return sched::BufferOp::create(
        builder, loc, MemRefType::get(tensor.getShape(), tensor.getElementType()), number, isWritable,
        sched::Space::Device,
        sched::TagAttr::get(function.getContext(), name, component, Phase::Forward, std::nullopt));
  };
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto result = function.getArgAttrOfType<IntegerAttr>(index, "moe.donated");
    if (result)
      donated.insert(result.getInt());
    sched::BufferOp buffer = make(index, argument.getType(), /*isWritable=*/result != nullptr, "argument", index,
                                  function.getArgAttrOfType<RoleAttr>(index, "moe.role"),
                                  function.getArgAttrOfType<StringAttr>(index, "moe.buffer"));
    buffers.bind(argument, {buffers.add(buffer, getTensorBytes(argument.getType()), /*isOwned=*/false,
                                        /*isWritable=*/result != nullptr)});
    setContent(argument, buffer);
  }
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    resultBuffers.push_back(donated.contains(index)
                                ? sched::BufferOp()
                                : make(function.getNumArguments() + index, function.getResultTypes()[index],
                                       /*isWritable=*/true, "result", index,
                                       function.getResultAttrOfType<RoleAttr>(index, "moe.role"), {}));
}

/// The ranks that run the function: those of its batch, or of the grids that it uses.
static int64_t getRanks(func::FuncOp function) {
  if (auto batch = function->getAttrOfType<BatchAttr>("moe.batch"))
    return batch.getRanks();
  int64_t ranks = 1;
  function.walk([&](CollectiveOpInterface op) {
    if (FailureOr<Grid> grid = Grid::lookup(op, op.getCollectiveGrid()); succeeded(grid))
      ranks = std::max(ranks, grid->getRanks());
  });
  return ranks;
}

LogicalResult FunctionConversion::run() {
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "@" << function.getName() << " must have one block to be lowered";
  if (failed(checkTypes()))
    return failure();
  builder.setInsertionPoint(function);
  std::string name = function.getName().str();
  function.setName(name + ".tensors"); // The name passes to the program.
  auto program = sched::ProgramOp::create(builder, loc, name, getRanks(function));
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  sched::LaneOp::create(builder, loc, sched::Lane::Compute);
  createBuffers();
  return lowerBlock(function.getBody().front());
}
