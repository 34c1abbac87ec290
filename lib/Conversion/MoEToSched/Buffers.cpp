//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Buffers.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/Interfaces/Matmul.h"

using namespace mlir;
using namespace mlir::plateau;

int64_t mlir::plateau::getTensorBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 0; // A plan.
  if (!tensor.hasStaticShape())
    return maxDynamicBytes;
  return tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
}

Buffers::Buffers(func::FuncOp function) : block(&function.getBody().front()) {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { positions[op] = positions.size(); });
  for (auto pack : block->getOps<moe::PackOp>())
    place(pack);
  function.walk([&](tensor::ConcatOp concat) {
    if (!places.contains(concat.getResult()))
      place(concat.getResult(), {concat.getResult(), 0});
  });
}

unsigned Buffers::add(Value root, int64_t bytes, bool isOwned, bool isWritable) {
  entries.push_back({root, bytes, isOwned, isWritable, std::nullopt});
  return entries.size() - 1;
}

unsigned Buffers::addPart(unsigned whole, Value root, int64_t bytes, bool isWritable) {
  entries.push_back({root, bytes, /*isOwned=*/false, isWritable, whole});
  return entries.size() - 1;
}

void Buffers::bind(Value value, View view) {
  views[value] = view;
  entries[view.buffer].values.push_back(value);
  for (std::optional<unsigned> whole = entries[view.buffer].whole; whole; whole = entries[*whole].whole)
    entries[*whole].inParts.push_back(value);
}

bool Buffers::canTake(Value value, Operation *op) const {
  View view = getView(value);
  const Entry &entry = entries[view.buffer];
  int64_t begin = view.offsetBytes, end = begin + getTensorBytes(value.getType());
  return entry.isWritable &&
         llvm::none_of(entry.values,
                       [&](Value other) {
                         int64_t otherBegin = getView(other).offsetBytes,
                                 otherEnd = otherBegin + getTensorBytes(other.getType());
                         return otherBegin < end && begin < otherEnd && isReadAfter(other, op);
                       }) &&
         llvm::none_of(entry.inParts, [&](Value part) { return isReadAfter(part, op); });
}

bool Buffers::canWriteEarly(Value whole, Operation *op, Operation *insert) const {
  const Entry &entry = entries[getView(whole).buffer];
  auto isRead = [&](Value other) { return llvm::is_contained(op->getOperands(), other) || isReadAfter(other, op); };
  return entry.isWritable && op->getBlock() == insert->getBlock() && op->isBeforeInBlock(insert) && whole.hasOneUse() &&
         llvm::none_of(entry.values, [&](Value other) { return other != whole && isRead(other); }) &&
         llvm::none_of(entry.inParts, isRead);
}

bool Buffers::isReadAfter(Value value, Operation *op) const {
  // What comes later, and has its memory already because parts of it are written early, is not there yet.
  if (Operation *maker = value.getDefiningOp(); maker && positions.lookup(maker) > positions.lookup(op))
    return false;
  Block *home = value.getParentBlock();
  Operation *ancestor = home->findAncestorOpInBlock(*op);
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    // A pack whose tensors are computed in their places does not read what was there before.
    auto pack = dyn_cast<moe::PackOp>(use.getOwner());
    if (pack && use.get() == pack.getInto() && placedGroups.contains(value))
      return false;
    Operation *reader = home->findAncestorOpInBlock(*use.getOwner());
    if (!ancestor) // The value is a region's; the op comes before or after it.
      return positions.lookup(reader) > positions.lookup(op);
    if (reader == ancestor && ancestor != op)
      return use.getOwner() != ancestor; // In the same loop: read again when it comes round.
    return positions.lookup(reader) > positions.lookup(ancestor);
  });
}

/// The operand whose memory an op gives to `result`: it updates, or overwrites, what lies there.
static Value getDestination(Operation *op, OpResult result) {
  if (auto shift = dyn_cast<moe::ShiftOp>(op))
    return shift.getInto();
  if (auto fold = dyn_cast<moe::FoldLogitsOp>(op))
    return fold.getState();
  if (auto sums = dyn_cast<moe::ColumnSumsOp>(op))
    return sums.getSums();
  if (auto grad = dyn_cast<moe::EmbeddingShardGradOp>(op))
    return grad.getSums();
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return insert.getDest();
  if (auto combine = dyn_cast<moe::CombineOp>(op))
    return result == combine.getResult() ? combine.getInit() : combine.getValuesInit();
  if (auto gradient = dyn_cast<moe::GroupedMatmulGradOp>(op))
    return result == gradient.getResult() ? gradient.getInit() : gradient.getHelperInit();
  if (auto sum = dyn_cast<moe::ReturnExpertGradsOp>(op))
    return sum.getGrads();
  if (auto loop = dyn_cast<scf::ForOp>(op)) // A carried value keeps the buffer of its first value.
    return loop.getInitArgs()[result.getResultNumber()];
  if (auto matmul = dyn_cast<linalg::MatmulOp>(op); matmul && !isOnZeros(matmul))
    return matmul.getOutputs()[0];
  return {};
}

/// Whether only what makes `value` anew reads it: one op, a shift that sends it away and a later one that lands there,
/// or updates of some of its rows.
static bool isHandedOn(Value value) {
  return value.hasOneUse() || llvm::all_of(value.getUses(), [](OpOperand &use) {
           return isa<moe::ShiftOp, tensor::ExtractSliceOp, tensor::InsertSliceOp>(use.getOwner());
         });
}

/// The value whose computation writes all bytes of `value` first: through reshapes, and through products that
/// accumulate onto a value that only they read. Null when that op does not write a fresh result (an argument, a
/// constant, another group).
static Value getFreshOrigin(Value value, Block *block) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->getBlock() != block || !isHandedOn(value))
      return {};
    // A sum over ranks is taken in place.
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, shard::AllReduceOp>(op)) {
      value = op->getOperand(0);
      continue;
    }
    if (Value destination = getDestination(op, cast<OpResult>(value))) {
      if (destination.getDefiningOp<tensor::EmptyOp>() && isa<moe::ShiftOp>(op))
        return value; // It has no place yet.
      value = destination;
      continue;
    }
    if (isa<moe::UnpackOp, moe::PackOp, moe::AdamWOp, tensor::EmptyOp, tensor::ExtractSliceOp, tensor::ConcatOp>(op) ||
        op->hasTrait<OpTrait::ConstantLike>())
      return {};
    return value;
  }
  return {};
}

void Buffers::place(moe::PackOp pack) {
  // Early writes are right only when nothing else reads the group's old contents.
  auto group = dyn_cast<BlockArgument>(pack.getInto());
  if (!group || !group.hasOneUse() ||
      !cast<FunctionOpInterface>(block->getParentOp()).getArgAttr(group.getArgNumber(), "moe.donated"))
    return;
  int64_t elementBytes = pack.getInto().getType().getElementTypeBitWidth() / 8;
  placedGroups.insert(group);
  for (auto [tensor, member] : llvm::zip_equal(pack.getTensors(), pack.getLayout().getMembers()))
    place(tensor, {group, member.getOffset() * elementBytes});
}

void Buffers::place(Value value, Place where) {
  if (auto concat = value.getDefiningOp<tensor::ConcatOp>()) {
    if (where.group != value && (concat->getBlock() != block || !value.hasOneUse()))
      return;
    if (where.group != value)
      places[value] = where;
    for (Value part : concat.getInputs()) {
      place(part, where);
      where.offsetBytes += getTensorBytes(part.getType());
    }
    return;
  }
  Operation *op = value.getDefiningOp();
  if (Value origin = op ? getFreshOrigin(value, op->getBlock()) : Value())
    places.try_emplace(origin, where);
}

std::optional<Buffers::Place> Buffers::getPlace(Value value) const {
  auto it = places.find(value);
  return it == places.end() ? std::nullopt : std::optional(it->second);
}
