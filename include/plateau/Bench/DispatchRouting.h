//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What becomes of a routing: who computes how many rows, and what travels at once.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_DISPATCHROUTING_H
#define PLATEAU_BENCH_DISPATCHROUTING_H

#include "plateau/Bench/DispatchMethods.h"
#include "plateau/Execution/CompiledExecutor.h"
#include <optional>

namespace mlir::plateau::bench {

struct RoutingFigures {
  int64_t expertMoves = 0;
  double loadRatio = 0, plainLoadRatio = 0; ///< Rows of the fullest rank over the mean; if each expert were at home.
  double sendRatio = 0;         ///< Over sources and chunks, most rows that go to one rank over the mean over ranks.
  double receivedOverBound = 0; ///< Most rows that a rank receives of a chunk, over ranks · k · tokens of a chunk.
  int64_t mostRows = 0;         ///< That a rank receives in an iteration.
  std::optional<int64_t> iterations; ///< None where chunks are not those that would run.
};

/// From the plan of routes that `executor` made last.
llvm::Expected<RoutingFigures> getRoutingFigures(CompiledExecutor &executor, DispatchPlan &plan,
                                                 const DispatchOptions &options);

/// Makes the plan of routes alone, without a row. With `isContiguous` chunks are of consecutive tokens: the runtime
/// says where each slot's row is computed, and how much of it falls into a chunk is counted here.
llvm::Expected<RoutingFigures> runRouting(DispatchPlan &plan, const DispatchOptions &options);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_DISPATCHROUTING_H
