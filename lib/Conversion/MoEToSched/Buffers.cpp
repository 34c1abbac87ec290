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
}

unsigned Buffers::add(Value root, int64_t bytes, bool isOwned, bool isWritable) {
  entries.push_back({root, bytes, isOwned, isWritable, {}});
  return entries.size() - 1;
}

void Buffers::bind(Value value, View view) {
  views[value] = view;
  entries[view.buffer].values.push_back(value);
}

bool Buffers::canTake(Value value, Operation *op) const {
  View view = getView(value);
  const Entry &entry = entries[view.buffer];
  int64_t begin = view.offsetBytes, end = begin + getTensorBytes(value.getType());
  return entry.isWritable && llvm::none_of(entry.values, [&](Value other) {
           int64_t otherBegin = getView(other).offsetBytes, otherEnd = otherBegin + getTensorBytes(other.getType());
           return otherBegin < end && begin < otherEnd && isReadAfter(other, op);
         });
}

bool Buffers::isReadAfter(Value value, Operation *op) const {
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

/// The value whose computation writes all bytes of `value` first: through reshapes, and through products that
/// accumulate onto a value that only they read. Null when that op does not write a fresh result (an argument, a
/// constant, another group).
static Value getFreshOrigin(Value value, Block *block) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->getBlock() != block || !value.hasOneUse())
      return {};
    // A sum over ranks is taken in place.
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, shard::AllReduceOp>(op)) {
      value = op->getOperand(0);
      continue;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) { // A carried sum keeps the buffer of its first value.
      value = loop.getInitArgs()[cast<OpResult>(value).getResultNumber()];
      continue;
    }
    if (auto matmul = dyn_cast<linalg::MatmulOp>(op); matmul && !isOnZeros(matmul)) {
      value = matmul.getOutputs()[0];
      continue;
    }
    if (isa<moe::UnpackOp, moe::PackOp, moe::AdamWOp, tensor::EmptyOp, tensor::ExtractSliceOp>(op) ||
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
    if (Value origin = getFreshOrigin(tensor, block))
      places[origin] = {group, member.getOffset() * elementBytes};
}

std::optional<Buffers::Place> Buffers::getPlace(Value value) const {
  auto it = places.find(value);
  return it == places.end() ? std::nullopt : std::optional(it->second);
}
