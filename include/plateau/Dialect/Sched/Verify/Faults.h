//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Faults that checkers find, and how they are told.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_VERIFY_FAULTS_H
#define PLATEAU_DIALECT_SCHED_VERIFY_FAULTS_H

#include "plateau/Analysis/Timeline.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::plateau::sched {

/// One operand of one node.
struct Access {
  enum Kind { Read, Table, HostTable /*the host, at issue*/, Write };
  int64_t node;
  Kind kind;
  int64_t operand; ///< Among those of its kind.
  ByteRange range;
};

/// What one rule of a checker refuses.
struct Fault {
  StringRef code;
  Access access;
  SmallVector<Access, 2> others; ///< What it clashes with; of a wrong value the writer found, then the one named.
  /// Of a wrong value: the nodes; `Piece::initial` is what was there before the program.
  int64_t found = Piece::initial, named = Piece::initial;
};

/// The first fault of each rule and pair of ops, and the number of all.
class FaultList {
public:
  void add(Fault fault, const Timeline &timeline);
  bool empty() const { return count == 0; }
  int64_t size() const { return count; }
  ArrayRef<Fault> get() const { return faults; }

private:
  static constexpr size_t most = 256;
  int64_t count = 0;
  std::vector<Fault> faults;
  llvm::DenseSet<std::tuple<const char *, Operation *, Operation *>> seen;
};

/// `sched.launch "f" on compute in iteration 3, 1`.
std::string describe(const Node &node);
/// `bytes 64 ... 128 of the device arena (bytes 0 ... 64 of a slot)`.
std::string describe(const ByteRange &range);
/// `write #0`.
std::string describe(const Access &access);

/// Emits the first few faults, each on its op with a note on each other op; then how many there are. `text` says what
/// is wrong, behind the access.
LogicalResult emitFaults(ProgramOp program, const Timeline &timeline, const FaultList &faults, StringRef checker,
                         llvm::function_ref<std::string(const Fault &)> text,
                         llvm::function_ref<std::string(const Fault &, size_t)> note);

/// Faults that are told one by one, up to a few.
inline constexpr int64_t maxToldFaults = 4;
/// Fails when there are faults, and says how many when not all were told.
LogicalResult emitCount(ProgramOp program, StringRef checker, int64_t count, int64_t numTold);

} // namespace mlir::plateau::sched

#endif // PLATEAU_DIALECT_SCHED_VERIFY_FAULTS_H
