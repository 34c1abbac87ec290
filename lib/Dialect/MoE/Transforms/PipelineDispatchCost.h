//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// How tokens are cut into iterations, and what a loop over them holds. One place for all formulas.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHCOST_H
#define PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHCOST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace mlir::plateau::moe {

/// An exchange of tokens and experts.
struct ExchangeShape {
  int64_t experts, ranks, tokens, topK;
  int64_t helperSlots = 0;
  bool isDistinct = false; ///< No token names an expert twice.

  /// The most rows that one token sends to one rank.
  int64_t getRowsOfToken() const;
  /// Rows of one token of each rank: no capacity below it can hold whatever routing there is.
  int64_t getSmallestCapacity() const { return ranks * getRowsOfToken(); }
  int64_t getChunkTokens(int64_t chunks) const;
  /// The most rows that a rank receives of a chunk.
  int64_t getMostRows(int64_t chunks) const { return getSmallestCapacity() * getChunkTokens(chunks); }
};

/// Chunks, leaves of each, and the most rows that a rank receives in an iteration.
struct DispatchCut {
  int64_t chunks = 1, leaves = 1, capacity = 0;

  int64_t getIterations() const { return chunks * leaves; }
};

/// As many leaves as keep any routing of one within the capacity, which is at least the smallest. A capacity above what
/// a chunk can give becomes that.
DispatchCut cutTokens(const ExchangeShape &shape, int64_t chunks, int64_t capacity);

/// Values of rows in the body of a loop, and what else the loop holds.
struct DispatchLoopShape {
  struct Rows {
    int64_t rowBytes;
    int64_t made, last; ///< Numbers of ops in the body.
    bool isSent, isReturned;
  };
  llvm::SmallVector<Rows, 0> rows;
  int64_t ops = 0;
  int64_t stagedBytes = 0;     ///< The most that an exchange sends for each slot of a token.
  int64_t helperSlotBytes = 0; ///< Weights and gradients of one helper slot.
};

/// Bytes that a loop holds with so many iterations in flight: places of rows, staging of exchanges, helper slots, and
/// the tables of the plan. The library's scratch for products is not in it, nor what the loop gives.
int64_t getLoopBytes(const ExchangeShape &shape, const DispatchCut &cut, int64_t inFlight,
                     const DispatchLoopShape &loop);
/// Of the loop that holds most.
int64_t getLoopBytes(const ExchangeShape &shape, const DispatchCut &cut, int64_t inFlight,
                     llvm::ArrayRef<DispatchLoopShape> loops);

struct DispatchWish {
  int64_t chunks = 0;        ///< 0: as few as the budget allows.
  int64_t capacity = 0;      ///< 0: what the budget allows; any routing when there is none.
  int64_t inFlightBytes = 0; ///< 0: no budget.
  int64_t inFlight = 2;
};

/// The cut that is wished for; `bytes` is what its loops hold, more than the budget when no cut fits, and the cut is
/// then the one that holds least.
DispatchCut chooseCut(const ExchangeShape &shape, const DispatchWish &wish, llvm::ArrayRef<DispatchLoopShape> loops,
                      int64_t &bytes);

} // namespace mlir::plateau::moe

#endif // PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHCOST_H
