
// Which buffer each tensor value of a function lives in, and until when.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_CONVERSION_MOETORUNTIME_BUFFERS_H
#define PLATEAU_LIB_CONVERSION_MOETORUNTIME_BUFFERS_H

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

/// Buffers are numbered as they are made. A buffer is an argument's (never released; written only when the argument is
/// donated) or owned (from the pool).
class Buffers {
public:
  explicit Buffers(func::FuncOp function);

  /// The block whose ops are being lowered: buffers that are added belong to it and are released in it.
  void enter(Block *inner) { block = inner; }

  /// A new owned buffer, or one for an argument, at `pointer` (a value of the function being built).
  unsigned add(Value pointer, int64_t bytes, bool isOwned, bool isWritable);

  void bind(Value value, View view);
  bool isBound(Value value) const { return views.count(value); }
  View getView(Value value) const { return views.at(value); }
  Value getPointer(unsigned buffer) const { return entries[buffer].pointer; }
  int64_t getBytes(unsigned buffer) const { return entries[buffer].bytes; }
  bool isOwned(unsigned buffer) const { return entries[buffer].isOwned; }
  /// Whether it is the handle of a plan, which the runtime made.
  bool isPlan(unsigned buffer) const;

  /// Whether `op` may overwrite the bytes of `value`: they are writable, and no value that has any of them is read
  /// after `op`.
  bool canTake(Value value, Operation *op) const;

  /// Owned buffers, live, that no op after `op` reads; they are marked released.
  SmallVector<unsigned> releaseAfter(Operation *op);

  /// Where `value` is to be computed, when a later moe.pack stores it and its place in the group can be written early:
  /// the packed operand's offset in bytes and the group. Null otherwise.
  struct Place {
    Value group;
    int64_t offsetBytes = 0;
  };
  std::optional<Place> getPlace(Value value) const;

private:
  struct Entry {
    Value pointer;
    int64_t bytes;
    bool isOwned, isWritable;
    Block *home; ///< Where it was made, and is released.
    bool isReleased = false;
    SmallVector<Value> values; ///< All that live in it.
  };

  /// Whether `value` is read after `op`, or by a loop that `op` stands in and may come round to it again.
  bool isReadAfter(Value value, Operation *op) const;
  /// Position, in the block where the buffer was made, of the last op that reads a value of `entry`; -1 for none.
  int64_t getLastRead(const Entry &entry) const;
  void place(moe::PackOp pack);

  Block *block;
  llvm::DenseMap<Operation *, int64_t> positions; ///< Of all ops, those of regions too, in order.
  SmallVector<Entry> entries;
  llvm::DenseMap<Value, View> views;
  llvm::DenseMap<Value, Place> places;
  llvm::DenseSet<Value> placedGroups;
};

} // namespace mlir::plateau

#endif // PLATEAU_LIB_CONVERSION_MOETORUNTIME_BUFFERS_H
