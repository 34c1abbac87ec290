//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A program as one straight line of calls, with the bytes that each of them reads and writes.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_ANALYSIS_TIMELINE_H
#define PLATEAU_ANALYSIS_TIMELINE_H

#include "plateau/Dialect/Sched/IR/Sched.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace mlir::plateau::sched {

/// Bytes [begin, end) of a slot (with all places of its ring), buffer, constant or table.
struct ByteRange {
  Value root;
  int64_t begin = 0, end = 0;
};

/// Bytes of a root, and the node that must have written them last.
struct Piece {
  static constexpr int64_t initial = -1; ///< What was there before the program.
  int64_t begin, end, writer;
};

/// A value that a node reads. Its pieces are sorted and do not overlap; what lies between them (gaps of a join) may
/// hold anything.
struct ReadRange : ByteRange {
  SmallVector<Piece, 1> pieces;
  bool isTable = false; ///< Read by the host too, when it issues the call.
};

/// One execution of an op.
struct Node {
  Operation *op;
  SmallVector<int64_t, 2> iteration; ///< Counters of the loops around it, outermost first.
  std::optional<Lane> lane;          ///< None: the host itself (sched.fence, sched.return).
  SmallVector<int64_t, 2> waits;     ///< Nodes, sorted; complete events are left out.
  SmallVector<int64_t, 2> events;    ///< For each operand that is waited for its node; -1 is complete.
  SmallVector<ReadRange, 4> reads;   ///< Reads, in order, then tables.
  SmallVector<ByteRange, 2> writes;  ///< In order.
};

struct Timeline {
  struct Options {
    /// Long loops as a prefix that has the verdict of the whole (docs/proof.md); otherwise iteration by iteration.
    bool prefix = false;
    /// More calls and iterations than this are refused.
    int64_t maxSteps = int64_t(1) << 24;
  };

  /// In issue order. The last one is sched.return.
  std::vector<Node> nodes;

  /// Fails with a message when a value has no writer that can be found, or the line is too long.
  static FailureOr<Timeline> get(ProgramOp program, Options options);
  static FailureOr<Timeline> get(ProgramOp program) { return get(program, Options()); }
};

/// Iterations of the loop that stand for all of them, at most its trip count: a prefix on which every pair of accesses
/// and every read has the verdict that it has in the whole loop. See docs/proof.md for the claims and what they need;
/// a loop without it is taken whole.
int64_t getPrefixTripCount(LoopOp loop);

} // namespace mlir::plateau::sched

#endif // PLATEAU_ANALYSIS_TIMELINE_H
