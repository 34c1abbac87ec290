//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Offsets for the buffers of an arena.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_PLANNING_PACKARENA_H
#define PLATEAU_PLANNING_PACKARENA_H

#include "plateau/Planning/LowerBound.h"

namespace mlir::plateau::planning {

struct Packing {
  std::vector<int64_t> offsets; ///< One for each buffer.
  int64_t bytes = 0;            ///< Of the arena.
  std::string solver;           ///< What found it.
  int64_t passes = 0;           ///< How many packings were tried.
};

struct PackingOptions {
  /// Conflicts looked at, for each buffer of the problem, before the search for a better packing ends. Each of the
  /// greedy solvers runs whatever it costs.
  int64_t workPerBuffer = 10000;
  bool improve = true;
};

/// Places buffers one after the other, each where it leaves the smallest gap or lies lowest, in several orders, and
/// keeps the smallest arena. Where that is above the bound, packs again: with the buffers earlier that ended above it,
/// over and over; and in orders by size within classes of spans, from coarse to fine. Ends when the bound is met. Same
/// problem, same packing.
Packing packArena(const ArenaProblem &problem, const LowerBound &bound, const PackingOptions &options = {});

} // namespace mlir::plateau::planning

#endif // PLATEAU_PLANNING_PACKARENA_H
