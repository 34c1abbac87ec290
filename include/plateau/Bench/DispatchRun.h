//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Running the methods side by side.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_DISPATCHRUN_H
#define PLATEAU_BENCH_DISPATCHRUN_H

#include "plateau/Bench/DispatchRouting.h"

namespace mlir::plateau::bench {

/// The time of a method divided by that of llep in the run beside it.
struct DispatchRatio {
  double median = 0, least = 0, most = 0;
};

/// What a run gave, of the rank where it is highest.
struct DispatchFigures {
  RoutingFigures routing;
  int64_t observedBytes = 0;
  /// The least that the order of calls needs: of a pool what was live at its peak, else the plan's bound.
  int64_t lowerBoundBytes = 0;
  int64_t hostFences = 0;
  double seconds = 0;                 ///< Median.
  std::optional<DispatchRatio> ratio; ///< Of all but llep.
};

/// Runs the methods in turn, `repeat` times after two runs that observe their memory, and compares what they compute.
llvm::Expected<std::vector<DispatchFigures>> runDispatch(std::vector<DispatchPlan> &plans,
                                                         const DispatchOptions &options);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_DISPATCHRUN_H
