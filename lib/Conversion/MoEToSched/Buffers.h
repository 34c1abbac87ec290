//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which buffer each tensor value of a function lives in.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_CONVERSION_MOETOSCHED_BUFFERS_H
#define PLATEAU_LIB_CONVERSION_MOETOSCHED_BUFFERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::plateau {

/// What getTensorBytes gives for a tensor whose rows are known only when the step runs.
inline constexpr int64_t maxDynamicBytes = int64_t(1) << 62;
/// Bytes of a tensor, when it is static; 0 for a plan, which is a handle.
int64_t getTensorBytes(Type type);

/// A range of a buffer: where a tensor value lives.
struct View {
  unsigned buffer;
  int64_t offsetBytes = 0;
};

/// Buffers are numbered as they are made. A buffer is an argument's (written only when the argument is donated) or
/// owned (a slot).
class Buffers {
public:
  explicit Buffers(func::FuncOp function);

  /// A new owned buffer, or one for an argument; `root` is its place in the program being built.
  unsigned add(Value root, int64_t bytes, bool isOwned, bool isWritable);
  /// A buffer for a part of another one, that lies anywhere in it.
  unsigned addPart(unsigned whole, Value root, int64_t bytes, bool isWritable);

  void bind(Value value, View view);
  bool isBound(Value value) const { return views.count(value); }
  View getView(Value value) const { return views.at(value); }
  Value getRoot(unsigned buffer) const { return entries[buffer].root; }
  int64_t getBytes(unsigned buffer) const { return entries[buffer].bytes; }
  bool isOwned(unsigned buffer) const { return entries[buffer].isOwned; }

  /// Whether `op` may overwrite the bytes of `value`: they are writable, and no value that has any of them is read
  /// after `op`.
  bool canTake(Value value, Operation *op) const;

  /// Whether `op`, which gives what `insert` puts into `whole`, may write it there at once: nobody reads the bytes of
  /// `whole` with `op` or after it, but `insert` those around the part.
  bool canWriteEarly(Value whole, Operation *op, Operation *insert) const;

  /// Where `value` is to be computed, when a later moe.pack or tensor.concat stores it and its place there can be
  /// written early: the group or the joined tensor, which may not have its memory yet, and the offset in bytes. Null
  /// otherwise.
  struct Place {
    Value group;
    int64_t offsetBytes = 0;
  };
  std::optional<Place> getPlace(Value value) const;

private:
  struct Entry {
    Value root;
    int64_t bytes;
    bool isOwned, isWritable;
    std::optional<unsigned> whole;   ///< What it is a part of.
    SmallVector<Value> values = {};  ///< All that live in it.
    SmallVector<Value> inParts = {}; ///< All that live in parts of it.
  };

  /// Whether `value` is read after `op`, or by a loop that `op` stands in and may come round to it again.
  bool isReadAfter(Value value, Operation *op) const;
  void place(moe::PackOp pack);
  /// Gives the op that first writes `value` its place, and those of the tensors that `value` joins.
  void place(Value value, Place place);

  Block *block;
  llvm::DenseMap<Operation *, int64_t> positions; ///< Of all ops, those of regions too, in order.
  SmallVector<Entry> entries;
  llvm::DenseMap<Value, View> views;
  llvm::DenseMap<Value, Place> places;
  llvm::DenseSet<Value> placedGroups;
};

} // namespace mlir::plateau

#endif // PLATEAU_LIB_CONVERSION_MOETOSCHED_BUFFERS_H
