//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "plateau/Dialect/Sched/IR/Place.h"
#include "plateau/Dialect/Sched/IR/Sched.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::sched;

template <typename Adaptor>
static LogicalResult inferTypes(MLIRContext *context, Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(EventType::get(context));
  llvm::append_range(types, adaptor.getWrites().getTypes());
  return success();
}

LogicalResult LaunchOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  return inferTypes(context, adaptor, types);
}
LogicalResult CopyOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  return inferTypes(context, adaptor, types);
}
LogicalResult CollectiveOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  return inferTypes(context, adaptor, types);
}

/// C1: what an argument of a call refers to.
static LogicalResult verifyArgument(LaneOpInterface op, Attribute argument, bool hasGroup) {
  auto check = [&](int64_t index, size_t count, StringRef what) -> LogicalResult {
    if (index >= 0 && index < static_cast<int64_t>(count))
      return success();
    return op->emitOpError() << "C1: has an argument that names " << what << " #" << index << " of " << count;
  };
  auto each = [&](ArrayAttr elements) {
    return failure(
        llvm::any_of(elements, [&](Attribute element) { return failed(verifyArgument(op, element, hasGroup)); }));
  };
  if (auto read = dyn_cast<ReadAttr>(argument))
    return check(read.getIndex(), op.getReads().size(), "read");
  if (auto write = dyn_cast<WriteAttr>(argument))
    return check(write.getIndex(), op.getWrites().size(), "write");
  if (auto bytes = dyn_cast<BytesAttr>(argument))
    return check(bytes.getIndex(), op.getWrites().size(), "write");
  if (auto table = dyn_cast<TableAddressAttr>(argument))
    return check(table.getIndex(), op.getTables().size(), "table");
  if (auto rows = dyn_cast<RowsAttr>(argument)) {
    if (failed(check(rows.getTable(), op.getTables().size(), "table")))
      return failure();
    if (!rows.getIteration())
      return success();
    if (!isa<IntegerAttr, CellAttr>(rows.getIteration()))
      return op->emitOpError() << "C1: names an iteration that is no number: " << rows.getIteration();
    return verifyArgument(op, rows.getIteration(), hasGroup);
  }
  if (auto cell = dyn_cast<CellAttr>(argument)) {
    if (failed(check(cell.getTable(), op.getTables().size(), "table")))
      return failure();
    auto type = cast<MemRefType>(op.getTables()[cell.getTable()].getType());
    if (type.getRank() != 2 || !type.getElementType().isInteger(64) || cell.getColumn() < 0 ||
        cell.getColumn() >= type.getDimSize(1))
      return op->emitOpError() << "C1: has an argument in column " << cell.getColumn() << " of a table that is "
                               << type;
    int64_t low = cell.getRow(), high = cell.getRow();
    if (auto loop = op->getParentOfType<LoopOp>(); loop && loop.getTripCount() > 0) {
      low += loop.getFrom();
      if (llvm::AddOverflow(high, static_cast<int64_t>(loop.getTo()) - 1, high))
        high = std::numeric_limits<int64_t>::max();
    }
    if (low < 0 || high >= type.getDimSize(0))
      return op->emitOpError() << "C1: takes rows " << low << " ... " << high << " of a table that is " << type;
    return success();
  }
  if (auto pointers = dyn_cast<PointersAttr>(argument))
    return each(pointers.getElements());
  if (auto fields = dyn_cast<StructAttr>(argument))
    return each(fields.getFields());
  if (isa<GroupArgumentAttr>(argument) && !hasGroup)
    return op->emitOpError("C1: has a group among its arguments, but is no collective");
  if (isa<IntegerAttr, FloatAttr, NullAttr, GroupArgumentAttr, GroupRankAttr, DenseI64ArrayAttr, FlatSymbolRefAttr>(
          argument))
    return success();
  return op->emitOpError() << "C1: has an argument that is none: " << argument;
}

/// Whether the two ranges may share a byte: those of one root that are not shown to be apart.
static bool mayOverlap(const Place &a, const Place &b) {
  if (a.root != b.root)
    return false;
  auto slot = a.root.getDefiningOp<SlotOp>();
  int64_t depth = slot ? slot.getRing() : 1;
  if (a.ringIndex == b.ringIndex && (a.ring - b.ring) % depth != 0)
    return false;
  auto isSame = [](const Place::Term &x, const Place::Term &y) {
    return x.index == y.index && x.strideBytes == y.strideBytes;
  };
  if (a.terms.size() != b.terms.size() || !llvm::equal(a.terms, b.terms, isSame))
    return true;
  return a.offsetBytes < b.offsetBytes + b.bytes && b.offsetBytes < a.offsetBytes + a.bytes;
}

static LogicalResult verifyPlaces(LaneOpInterface op) {
  if (!op->getParentOfType<ProgramOp>())
    return op->emitOpError("stands in no program");
  SmallVector<Place> reads, writes;
  for (auto [index, read] : llvm::enumerate(op.getReads())) {
    FailureOr<Place> place = Place::get(read);
    if (failed(place))
      return op->emitOpError() << "C1: read #" << index << " lies at no place that can be found";
    reads.push_back(*place);
  }
  for (auto [index, write] : llvm::enumerate(op.getWrites())) {
    Operation *source = write.getDefiningOp();
    while (auto view = dyn_cast_if_present<ViewOp>(source))
      source = view.getSource().getDefiningOp();
    auto buffer = dyn_cast_if_present<BufferOp>(source);
    if (!isa_and_present<SlotOp>(source) && !(buffer && buffer.getWritable())) // C2
      return op->emitOpError() << "C2: write #" << index << " is no slot and no writable buffer";
    writes.push_back(*Place::get(write));
  }
  for (auto [index, write] : llvm::enumerate(writes)) { // C3
    for (auto [other, read] : llvm::enumerate(reads))
      if (!(read == write) && mayOverlap(read, write))
        return op->emitOpError() << "C3: write #" << index << " overlaps read #" << other
                                 << " and is not the same place";
    for (size_t other = 0; other < index; ++other)
      if (mayOverlap(writes[other], write))
        return op->emitOpError() << "C3: write #" << index << " overlaps write #" << other;
  }
  for (auto [index, table] : llvm::enumerate(op.getTables())) { // C4
    FailureOr<Place> place = Place::get(table);
    auto slot = failed(place) ? SlotOp() : place->root.getDefiningOp<SlotOp>();
    if (failed(place) || !(place->root.getDefiningOp<TableOp>() || (slot && slot.getSpace() == Space::Host)))
      return op->emitOpError() << "C4: table #" << index << " is no sched.table and no value in the host space";
  }
  return success();
}

static LogicalResult verifyCall(LaneOpInterface op, ArrayAttr args, bool hasGroup) {
  for (Attribute argument : args)
    if (failed(verifyArgument(op, argument, hasGroup))) // C1
      return failure();
  return verifyPlaces(op);
}

LogicalResult LaunchOp::verify() { return verifyCall(*this, getArgs(), /*hasGroup=*/false); }

LogicalResult CopyOp::verify() {
  if (getReads().size() != 1 || getWrites().size() != 1 || !getTables().empty() || // K1
      getBytes(getReads()[0].getType()) != getBytes(getWrites()[0].getType()))
    return emitOpError("K1: must read one value, and write one place of as many bytes");
  return verifyPlaces(*this);
}

LogicalResult CollectiveOp::verify() { return verifyCall(*this, getArgs(), /*hasGroup=*/true); }

LogicalResult CollectiveOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<Grid> grid = Grid::lookup(*this, getGridAttr());
  if (failed(grid)) // G1
    return emitOpError() << "G1: is over " << getGridAttr() << ", and there is no such grid of static sizes";
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (!program)
    return emitOpError("stands in no program");
  int64_t ranks = program.getRanks();
  if (grid->getRanks() != ranks)
    return emitOpError() << "G1: is over a grid of " << grid->getRanks() << " ranks in a program for " << ranks;
  for (int64_t axis : getAxes())
    if (axis < 0 || axis >= static_cast<int64_t>(grid->shape.size()))
      return emitOpError() << "G1: names axis " << axis << " of a grid that has " << grid->shape.size();
  return success();
}
