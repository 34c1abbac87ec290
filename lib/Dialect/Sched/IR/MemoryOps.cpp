//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "plateau/Dialect/Sched/IR/Place.h"
#include "plateau/Dialect/Sched/IR/Sched.h"

using namespace mlir;
using namespace mlir::plateau::sched;

int64_t mlir::plateau::sched::getBytes(Type memory) {
  auto type = cast<MemRefType>(memory);
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// B1, S1: static numbers, one behind the other.
static LogicalResult verifyMemory(Operation *op, StringRef code, Type memory) {
  auto type = cast<MemRefType>(memory);
  if (!type.hasStaticShape() || !type.getLayout().isIdentity() || !type.getElementType().isIntOrFloat())
    return op->emitOpError() << code << ": is " << type << ", but must be a static, contiguous memref of numbers";
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    if (llvm::MulOverflow(bytes, size, bytes) || bytes > (int64_t(1) << 60))
      return op->emitOpError() << code << ": " << type << " has more than 2^60 bytes";
  return success();
}

LogicalResult BufferOp::verify() { return verifyMemory(*this, "B1", getType()); } // B1

LogicalResult ConstantOp::verify() {
  if (failed(verifyMemory(*this, "N1", getType())))
    return failure();
  auto elements = cast<ShapedType>(getElements().getType());
  if (elements.getElementType() != getType().getElementType() ||
      elements.getNumElements() != getType().getNumElements())
    return emitOpError() << "N2: has elements of " << elements << " in a " << getType();
  return success();
}

LogicalResult TableOp::verify() {
  auto elements = cast<ShapedType>(getElements().getType());
  if (elements.getRank() != 2 || getType().getShape() != elements.getShape() || // T1
      !getType().getElementType().isInteger(64))
    return emitOpError() << "T1: has elements of " << elements << " in a " << getType()
                         << ", but must be rows and columns of i64 in both";
  return success();
}

void SlotOp::build(OpBuilder &builder, OperationState &state, Type type, Space space, TagAttr tag, Value rows) {
  build(builder, state, type, rows, space, /*ring=*/1, /*offset=*/IntegerAttr(), /*scratch=*/false, tag);
}

int64_t SlotOp::getStrideBytes() { return llvm::alignTo(sched::getBytes(getType()), slotAlignment); }

int64_t SlotOp::getBytes() {
  int64_t ring = getRing();
  return (ring - 1) * getStrideBytes() + sched::getBytes(getType());
}

LogicalResult SlotOp::verify() {
  if (failed(verifyMemory(*this, "S1", getType()))) // S1
    return failure();
  constexpr int64_t most = int64_t(1) << 62;
  int64_t ring = getRing(), bytes;
  if (llvm::MulOverflow(ring, getStrideBytes(), bytes) || bytes > most)
    return emitOpError() << "S3: " << ring << " places of " << getStrideBytes() << " bytes are more than 2^62 bytes";
  if (std::optional<int64_t> offset = getOffset();
      offset && (*offset % slotAlignment != 0 || *offset > most - bytes)) // S3
    return emitOpError() << "S3: has offset " << *offset << ", which is no multiple of " << slotAlignment
                         << " or leaves no room for " << bytes << " bytes below 2^62";
  return success();
}

/// The loop around `op` that counts with `index`.
static LoopOp getLoopOf(Operation *op, Value index) {
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (auto loop = dyn_cast<LoopOp>(parent); loop && loop.getCounter() == index)
      return loop;
  return {};
}

LogicalResult ViewOp::verify() {
  if (failed(verifyMemory(*this, "V1", getType()))) // V1
    return failure();
  auto slot = getSource().getDefiningOp<SlotOp>();
  int64_t offset = getOffset(), stride = getStride(), bytes = getBytes(getType()),
          whole = getBytes(getSource().getType());
  LoopOp loop;
  if (getIndex()) { // V3
    loop = getLoopOf(*this, getIndex());
    if (!loop)
      return emitOpError("V3: has an index that is not the counter of a loop around it");
    if (stride == 0 && !getRing())
      return emitOpError("V3: has an index, and neither a stride nor a ring to turn with it");
  } else if (stride != 0) {
    return emitOpError() << "V3: has a stride of " << stride << " bytes and no index to grow with";
  }
  int64_t low = offset, high = offset;
  if (stride != 0 && loop.getTripCount() > 0) {
    int64_t first, last;
    if (llvm::MulOverflow(stride, static_cast<int64_t>(loop.getFrom()), first) ||
        llvm::MulOverflow(stride, static_cast<int64_t>(loop.getTo()) - 1, last) ||
        llvm::AddOverflow(low, std::min(first, last), low) || llvm::AddOverflow(high, std::max(first, last), high))
      return emitOpError() << "V1: a stride of " << stride << " bytes leads beyond 64 bits";
  }
  if (low < 0 || high > whole - bytes) // V1
    return emitOpError() << "V1: takes bytes " << low << " ... " << high + bytes << " of " << whole;
  if (getRing() && !slot)
    return emitOpError("V2: has a ring, but its source is no slot");
  if (getRing() && *getRing() < 0 && !getIndex())
    return emitOpError("V2: has a negative place of a ring");
  if (slot && slot.getRing() > 1 && !getRing()) // V2
    return emitOpError() << "V2: does not say which of the " << slot.getRing() << " places of the slot's ring it is in";
  return success();
}

/// Whether the two move by the same bytes with the same counters.
static bool hasSameTerms(const Place &a, const Place &b) {
  auto add = [](llvm::SmallDenseMap<Value, int64_t, 2> &strides, const Place &place, int64_t sign) {
    for (const Place::Term &term : place.terms)
      strides[term.index] += sign * term.strideBytes;
  };
  llvm::SmallDenseMap<Value, int64_t, 2> strides;
  add(strides, a, 1);
  add(strides, b, -1);
  return llvm::all_of(strides, [](const auto &entry) { return entry.second == 0; });
}

LogicalResult UpdateOp::verify() {
  FailureOr<Place> source = Place::get(getSource()), part = Place::get(getPart());
  if (failed(source) || failed(part) || source->root != part->root || source->ring != part->ring || // U1
      source->ringIndex != part->ringIndex)
    return emitOpError("U1: has a part that does not lie where the source does");
  return success();
}

LogicalResult JoinOp::verify() {
  FailureOr<Place> whole = Place::get(getPlace());
  if (failed(whole))
    return emitOpError("J1: has a place that cannot be found");
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (auto [index, part] : llvm::enumerate(getParts())) {
    FailureOr<Place> place = Place::get(part);
    int64_t begin = failed(place) ? -1 : place->offsetBytes - whole->offsetBytes;
    if (failed(place) || place->root != whole->root || place->ring != whole->ring || // J1
        place->ringIndex != whole->ringIndex || !hasSameTerms(*place, *whole) || begin < 0 ||
        begin + place->bytes > whole->bytes)
      return emitOpError() << "J1: part #" << index << " does not lie inside the place";
    ranges.push_back({begin, begin + place->bytes});
  }
  llvm::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) // J2
      return emitOpError() << "J2: has two parts that share bytes " << ranges[i].first << " ... "
                           << std::min(ranges[i].second, ranges[i - 1].second);
  return success();
}
