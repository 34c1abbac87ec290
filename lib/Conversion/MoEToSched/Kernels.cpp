//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::plateau;

/// Elements in one vector: 512 bits of f32. Narrower machines split it.
static constexpr int64_t vectorElements = 16;

/// A constant outside the body that the body reads: canonicalization moves constants out. Null when `operand` is the
/// body's.
static TypedAttr getCaptured(linalg::GenericOp op, Value operand) {
  TypedAttr value;
  if (op.getRegion().isAncestor(operand.getParentRegion()) || !matchPattern(operand, m_Constant(&value)))
    return {};
  return value;
}

static LogicalResult verifyElementwise(linalg::GenericOp op) {
  if (op.getNumParallelLoops() != op.getNumLoops() || !op.hasPureTensorSemantics() ||
      llvm::any_of(op.getIndexingMapsArray(), [](AffineMap map) { return !map.isIdentity(); }) ||
      llvm::any_of(op.getRegionOutputArgs(), [](BlockArgument argument) { return !argument.use_empty(); }))
    return op.emitOpError("is not elementwise: only identity maps over parallel loops that overwrite their results "
                          "are lowered");
  for (Operation &inner : op.getBody()->without_terminator())
    if (!OpTrait::hasElementwiseMappableTraits(&inner) && !inner.hasTrait<OpTrait::ConstantLike>())
      return inner.emitOpError("is not lowered inside an elementwise kernel");
  for (Operation &inner : *op.getBody())
    for (Value operand : inner.getOperands())
      if (!op.getRegion().isAncestor(operand.getParentRegion()) && !getCaptured(op, operand))
        return inner.emitOpError("reads a value from outside its elementwise kernel that is no constant");
  for (Value input : op.getInputs())
    if (auto type = dyn_cast<RankedTensorType>(input.getType()); !type || !type.hasStaticShape())
      return op.emitOpError("reads ") << input.getType() << ": only static tensors are lowered";
  return success();
}

/// Text that two kernels share exactly when one can stand for the other: operand types, and the body with numbered
/// values.
static std::string getIdentity(linalg::GenericOp op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(op->getOperandTypes(), os);
  llvm::DenseMap<Value, unsigned> numbers;
  for (BlockArgument argument : op.getBody()->getArguments())
    numbers[argument] = numbers.size();
  for (Operation &inner : *op.getBody()) {
    os << ";" << inner.getName() << inner.getAttrDictionary();
    for (Value operand : inner.getOperands())
      if (TypedAttr value = getCaptured(op, operand))
        os << " " << value;
      else
        os << " " << numbers.lookup(operand);
    for (Value result : inner.getResults()) {
      os << ":" << result.getType();
      numbers[result] = numbers.size();
    }
  }
  return text;
}

FailureOr<LLVM::LLVMFuncOp> KernelBuilder::getKernel(linalg::GenericOp op) {
  if (failed(verifyElementwise(op)))
    return failure();
  LLVM::LLVMFuncOp &kernel = kernels[getIdentity(op)];
  if (!kernel)
    kernel = build(op);
  return kernel;
}

/// `scalar` as a vector of `width` elements; itself for a width of 1.
static Type widen(Type scalar, int64_t width) { return width == 1 ? scalar : VectorType::get({width}, scalar); }

/// Loads, computes and stores `width` elements from element `index` on.
static void buildBody(OpBuilder &builder, Location loc, linalg::GenericOp op, ArrayRef<Value> pointers, Value index,
                      int64_t width) {
  IRMapping mapping;
  auto pointerType = LLVM::LLVMPointerType::get(builder.getContext());
  auto address = [&](unsigned operand) {
    Type element = getElementTypeOrSelf(op->getOperand(operand).getType());
    return LLVM::GEPOp::create(builder, loc, pointerType, element, pointers[operand], ArrayRef<LLVM::GEPArg>{index});
  };
  unsigned inputs = op.getNumDpsInputs();
  for (unsigned input = 0; input < inputs; ++input) {
    Type element = getElementTypeOrSelf(op->getOperand(input).getType());
    mapping.map(
        op.getBody()->getArgument(input),
        LLVM::LoadOp::create(builder, loc, widen(element, width), address(input), element.getIntOrFloatBitWidth() / 8));
  }
  auto mapConstant = [&](Value result, TypedAttr value) {
    if (width > 1)
      value = DenseElementsAttr::get(cast<ShapedType>(widen(result.getType(), width)), ArrayRef<Attribute>{value});
    mapping.map(result, arith::ConstantOp::create(builder, result.getLoc(), value));
  };
  for (Operation &inner : *op.getBody())
    for (Value operand : inner.getOperands())
      if (TypedAttr value = getCaptured(op, operand); value && !mapping.contains(operand))
        mapConstant(operand, value);
  for (Operation &inner : op.getBody()->without_terminator()) {
    Type type = widen(inner.getResult(0).getType(), width);
    if (TypedAttr value; matchPattern(&inner, m_Constant(&value))) {
      mapConstant(inner.getResult(0), value);
      continue;
    }
    SmallVector<Value> operands =
        llvm::map_to_vector(inner.getOperands(), [&](Value operand) { return mapping.lookup(operand); });
    OperationState state(inner.getLoc(), inner.getName(), operands, type, inner.getAttrs());
    mapping.map(inner.getResult(0), builder.create(state)->getResult(0));
  }
  for (auto [number, value] : llvm::enumerate(op.getBody()->getTerminator()->getOperands())) {
    Type element = getElementTypeOrSelf(value.getType());
    LLVM::StoreOp::create(builder, loc, mapping.lookup(value), address(inputs + number),
                          element.getIntOrFloatBitWidth() / 8);
  }
}

LLVM::LLVMFuncOp KernelBuilder::build(linalg::GenericOp op) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = op.getLoc();
  auto pointerType = LLVM::LLVMPointerType::get(module.getContext());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(module.getContext()), {pointerType});
  auto kernel = LLVM::LLVMFuncOp::create(builder, loc, ("elementwise_" + Twine(kernels.size() - 1)).str(), type);
  Block *entry = kernel.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  SmallVector<Value> pointers;
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointerType, pointerType, entry->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(operand)});
    pointers.push_back(LLVM::LoadOp::create(builder, loc, pointerType, slot));
  }
  int64_t elements = cast<RankedTensorType>(op.getResult(0).getType()).getNumElements();
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value)).getResult();
  };
  auto loop = [&](int64_t begin, int64_t end, int64_t width) {
    if (begin == end)
      return;
    auto each = scf::ForOp::create(builder, loc, constant(begin), constant(end), constant(width));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(each.getBody());
    buildBody(builder, loc, op, pointers, each.getInductionVar(), width);
  };
  int64_t whole = elements - elements % vectorElements;
  loop(0, whole, vectorElements);
  loop(whole, elements, 1);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return kernel;
}
