//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What plateau-bench vocab is asked for.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_VOCABOPTIONS_H
#define PLATEAU_BENCH_VOCABOPTIONS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::plateau::bench {

/// A way to compute the loss and its gradients. Standard ones have all logits of a rank's tokens at once.
enum class VocabMethod { Standard, StandardInPlace, VocabParallel, RingWeights, RingActivations, Tiles, Auto };

/// "ring-weights", …
llvm::StringRef stringifyMethod(VocabMethod method);

struct VocabOptions {
  int64_t tokens = 0; ///< Of a rank.
  int64_t hidden = 0;
  int64_t vocabulary = 0;
  int ranks = 1;
  bool isBF16 = false; ///< x and table; gradients are f32 anyway.
  llvm::SmallVector<VocabMethod> methods;
  int64_t tileBytes = int64_t(16) << 20;
  bool hopsByTile = false;
  bool planOnly = false;
  bool json = false;
  int repeat = 5;
  uint64_t seed = 0;

  /// Rows of the table that a rank has.
  int64_t getShardRows() const { return (vocabulary + ranks - 1) / ranks; }
  int64_t getElementBytes() const { return isBF16 ? 2 : 4; }
};

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_VOCABOPTIONS_H
