//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Running the methods side by side.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_VOCABRUN_H
#define PLATEAU_BENCH_VOCABRUN_H

#include "plateau/Bench/VocabMethods.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace mlir::plateau::bench {

/// The seconds of one run, or medians.
struct VocabSeconds {
  double forward = 0, backward = 0;
  double getTotal() const { return forward + backward; }
};

/// The time of a method divided by that of the standard one in the run beside it.
struct VocabRatio {
  double median = 0, least = 0, most = 0;
};

struct VocabFigures {
  int64_t observedBytes = 0; ///< Of the rank where it is highest, all spaces.
  VocabSeconds median;
  std::optional<VocabRatio> ratio; ///< When the standard method runs as well, and is another.
};

/// Runs the methods in turn, `repeat` times after two runs that observe their memory, and compares what they compute.
llvm::Expected<std::vector<VocabFigures>> runVocab(llvm::ArrayRef<VocabPlan> plans, const VocabOptions &options);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_VOCABRUN_H
