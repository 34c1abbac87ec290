//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What plateau-bench dispatch is asked for.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_DISPATCHOPTIONS_H
#define PLATEAU_BENCH_DISPATCHOPTIONS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace mlir::plateau::bench {

/// A way to bring tokens to their experts and back: each expert on its own rank, rows evened out over ranks, and that
/// in chunks of tokens. The first two have all rows of a rank at once.
enum class DispatchMethod { ExpertParallel, LeastLoaded, Pipelined };
inline constexpr DispatchMethod dispatchMethods[] = {DispatchMethod::ExpertParallel, DispatchMethod::LeastLoaded,
                                                     DispatchMethod::Pipelined};

/// "ep", "llep", "pipelined-llep"
llvm::StringRef stringifyMethod(DispatchMethod method);

/// What tokens choose. In `r/h` the first r per cent of a rank's tokens choose the first h experts alone.
struct RoutingProfile {
  int64_t percent = 0, hotExperts = 0;

  bool isBalanced() const { return hotExperts == 0; }
  std::string getName() const;
};

/// Rows that a rank may receive in an iteration: a number, or a number of times the mean.
struct RowCapacity {
  int64_t numerator = 5, denominator = 4;
  bool isTimesMean = true;
};

struct DispatchOptions {
  RoutingProfile profile;
  int64_t tokens = 0; ///< Of a rank.
  int64_t hidden = 0;
  int64_t expertHidden = 0;
  int64_t experts = 0; ///< Divided over the ranks.
  int64_t topK = 0;
  int ranks = 0;
  int64_t chunks = 8;
  std::string alpha = "1", threshold = "1.3"; ///< As `moe-pipeline-dispatch` reads them.
  int64_t minRows = 1024;
  int64_t helperSlots = 4;
  RowCapacity capacity;
  int64_t inFlight = 2;
  bool isBF16 = false; ///< Rows and weights; gradients of weights are f32 anyway.
  bool isContiguous = false;
  bool forwardOnly = false;
  bool planOnly = false;
  bool json = false;
  int repeat = 5;
  uint64_t seed = 0;

  int64_t getLocalExperts() const { return experts / ranks; }
  int64_t getElementBytes() const { return isBF16 ? 2 : 4; }
  /// The most tokens that a source has in one of so many chunks.
  int64_t getChunkTokens(int64_t chunks) const { return (tokens + chunks - 1) / chunks; }
  /// Rows that a rank receives of a chunk when all ranks receive alike.
  int64_t getMeanRows() const { return topK * getChunkTokens(chunks); }
  int64_t getCapacityRows() const {
    return (capacity.isTimesMean ? getMeanRows() : 1) * capacity.numerator / capacity.denominator;
  }
};

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_DISPATCHOPTIONS_H
