//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Rows of tensors: read where they lie, and written where they belong. A part of a tensor is a view; a tensor of which
// a part was written again is an update of its value.
//===----------------------------------------------------------------------===//

#include "FunctionConversion.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

/// The result that takes the memory of an operand; null when the op only reads it.
static Value getTied(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getTiedLoopResult(&operand);
  if (auto matmul = dyn_cast<linalg::MatmulOp>(op))
    return matmul.isDpsInit(&operand) ? matmul.getResult(0) : Value();
  if (auto shift = dyn_cast<ShiftOp>(op))
    return &operand == &shift.getIntoMutable() ? shift.getResult() : Value();
  if (auto fold = dyn_cast<FoldLogitsOp>(op))
    return &operand == &fold.getStateMutable() ? fold.getResult() : Value();
  if (auto sums = dyn_cast<ColumnSumsOp>(op))
    return &operand == &sums.getSumsMutable() ? sums.getResult() : Value();
  if (auto grad = dyn_cast<EmbeddingShardGradOp>(op))
    return &operand == &grad.getSumsMutable() ? grad.getResult() : Value();
  return {};
}

/// Whether two slices are the same rows of one tensor.
static bool isSameRange(tensor::ExtractSliceOp extract, tensor::InsertSliceOp insert) {
  return extract.getSource() == insert.getDest() && extract.getMixedOffsets() == insert.getMixedOffsets() &&
         extract.getMixedSizes() == insert.getMixedSizes() && extract.getMixedStrides() == insert.getMixedStrides();
}

/// The op that puts the rows back that `extract` takes, when an update of them is all that happens in between.
static tensor::InsertSliceOp getWriteBack(tensor::ExtractSliceOp extract) {
  Value rows = extract.getResult();
  if (!rows.hasOneUse())
    return {};
  Value updated = getTied(*rows.use_begin());
  if (!updated || !updated.hasOneUse())
    return {};
  auto insert = dyn_cast<tensor::InsertSliceOp>(*updated.user_begin());
  if (!insert || insert.getSource() != updated || insert->getBlock() != extract->getBlock() ||
      !isSameRange(extract, insert))
    return {};
  for (Operation *user : extract.getSource().getUsers()) { // Nobody reads the rows as they were.
    Operation *ancestor = extract->getBlock()->findAncestorOpInBlock(*user);
    if (user != extract && user != insert && (!ancestor || extract->isBeforeInBlock(ancestor)))
      return {};
  }
  return insert;
}

FailureOr<FunctionConversion::Rows> FunctionConversion::getRowRange(OffsetSizeAndStrideOpInterface op,
                                                                    RankedTensorType whole, RankedTensorType part) {
  int64_t rank = whole.getRank();
  auto refuse = [&] {
    return op->emitOpError("is lowered only for whole rows, from a constant or from the index of a loop on");
  };
  if (rank == 0 || part.getRank() != rank || !part.hasStaticShape())
    return refuse();
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (op.isDynamicSize(axis) || op.isDynamicStride(axis) || op.getStaticStride(axis) != 1)
      return refuse();
    if (axis > 0 &&
        (op.isDynamicOffset(axis) || op.getStaticOffset(axis) != 0 || op.getStaticSize(axis) != whole.getDimSize(axis)))
      return refuse();
  }
  int64_t rowBytes = part.getElementTypeBitWidth() / 8;
  for (int64_t size : whole.getShape().drop_front())
    rowBytes *= size;
  Rows rows;
  APInt constant;
  if (!op.isDynamicOffset(0)) {
    rows.offsetBytes = op.getStaticOffset(0) * rowBytes;
  } else if (Value offset = op.getDynamicOffset(0); matchPattern(offset, m_ConstantInt(&constant))) {
    rows.offsetBytes = constant.getSExtValue() * rowBytes;
  } else {
    auto it = indices.find(offset);
    if (it == indices.end())
      return refuse();
    rows.counter = it->second.step == 0 ? Value() : it->second.counter;
    rows.offsetBytes = it->second.from * rowBytes;
    rows.strideBytes = it->second.step * rowBytes;
  }
  return rows;
}

Value FunctionConversion::getView(Value source, const Rows &rows, Value part, int64_t offsetBytes) {
  return sched::ViewOp::create(builder, loc, getMemory(part), source, rows.counter, offsetBytes + rows.offsetBytes,
                               rows.strideBytes, /*ring=*/IntegerAttr());
}

void FunctionConversion::bindPart(View whole, const Rows &rows, Value part) {
  Value place = getView(buffers.getRoot(whole.buffer), rows, part, whole.offsetBytes);
  buffers.bind(part, {buffers.addPart(whole.buffer, place, getTensorBytes(part.getType()), /*isWritable=*/true)});
}

LogicalResult FunctionConversion::lowerSlice(tensor::ExtractSliceOp op) {
  FailureOr<Rows> rows = getRowRange(op, op.getSourceType(), op.getType());
  if (failed(rows))
    return failure();
  if (tensor::InsertSliceOp insert = getWriteBack(op)) {
    take(insert.getDestMutable(), insert.getResult());
    Content content = contents.lookup(insert.getResult());
    bindPart(buffers.getView(insert.getResult()), *rows, op.getResult());
    setContent(op.getResult(), getView(content.base, *rows, op.getResult(), content.offsetBytes));
    return success();
  }
  View view = buffers.getView(op.getSource());
  Content content = contents.lookup(op.getSource());
  if (!rows->counter) {
    buffers.bind(op.getResult(), {view.buffer, view.offsetBytes + rows->offsetBytes});
    setContent(op.getResult(), content.base, content.offsetBytes + rows->offsetBytes);
    return success();
  }
  Value part = getView(content.base, *rows, op.getResult(), content.offsetBytes);
  buffers.bind(op.getResult(), {buffers.addPart(view.buffer, part, getTensorBytes(op.getType()),
                                                /*isWritable=*/false)});
  setContent(op.getResult(), part);
  return success();
}

bool FunctionConversion::allocateInPlace(Operation *op, Value result) {
  if (!result.hasOneUse())
    return false;
  auto insert = dyn_cast<tensor::InsertSliceOp>(*result.user_begin());
  if (!insert || insert.getSource() != result || !buffers.isBound(insert.getDest()) ||
      !buffers.canWriteEarly(insert.getDest(), op, insert))
    return false;
  // A refusal is said when the insert itself is lowered.
  ScopedDiagnosticHandler quiet(op->getContext(), [](Diagnostic &) { return success(); });
  FailureOr<Rows> rows = getRowRange(insert, insert.getDestType(), insert.getSourceType());
  if (failed(rows) || insert.getSourceType() != result.getType())
    return false;
  take(insert.getDestMutable(), insert.getResult());
  bindPart(buffers.getView(insert.getResult()), *rows, result);
  return true;
}

LogicalResult FunctionConversion::lowerInsert(tensor::InsertSliceOp op) {
  FailureOr<Rows> rows = getRowRange(op, op.getDestType(), op.getSourceType());
  if (failed(rows))
    return failure();
  Value part;
  if (buffers.isBound(op.getResult())) { // The part was computed in its place.
    part = getContent(op.getSource());
  } else {
    Value content = getContent(op.getSource());
    take(op.getDestMutable(), op.getResult());
    View whole = buffers.getView(op.getResult());
    part = copy(op, content, getView(buffers.getRoot(whole.buffer), *rows, op.getSource(), whole.offsetBytes));
  }
  Value source = getContent(op.getResult());
  setContent(op.getResult(), sched::UpdateOp::create(builder, loc, source.getType(), source, part));
  return success();
}

LogicalResult FunctionConversion::lowerConcat(tensor::ConcatOp op) {
  if (op.getDim() != 0)
    return op.emitOpError("is lowered only along dimension 0");
  if (!buffers.isBound(op.getResult()))
    allocate(op, op.getResult());
  View whole = buffers.getView(op.getResult());
  SmallVector<Value> parts;
  int64_t offset = whole.offsetBytes;
  for (Value operand : op.getInputs()) {
    View view = buffers.getView(operand);
    Value content = getContent(operand);
    bool isThere = view.buffer == whole.buffer && view.offsetBytes == offset;
    parts.push_back(isThere ? content : copy(op, content, getPlace({whole.buffer, offset}, getMemory(operand))));
    offset += getTensorBytes(operand.getType());
  }
  Value place = getPlace(whole, getMemory(op.getResult()));
  setContent(op.getResult(), sched::JoinOp::create(builder, op.getLoc(), place.getType(), place, parts));
  return success();
}
