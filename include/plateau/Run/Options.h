//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the command line of plateau-run asks for.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_OPTIONS_H
#define PLATEAU_RUN_OPTIONS_H

#include "plateau/runtime.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::plateau::run {

/// What runs the function.
enum class Engine {
  Compiled,    ///< Compiled code on the host runtime.
  Interpreter, ///< The reference interpreter in float64.
  Exact        ///< The reference interpreter with floats as integers modulo 2^61−1.
};

/// What both modes share.
struct RunOptions {
  std::string input;
  std::optional<int> ranks; ///< By default as many as the step is made for, 1 for --entry.
  uint64_t seed = 0;
  Engine engine = Engine::Compiled;
  plr_gemm_kind gemm = PLR_GEMM_ONEDNN;
  bool poison = false;
  bool trace = false;
  bool strict = false;
  bool remarks = false;            ///< Say what rewrites and planners did, in bytes.
  std::string rewrite;             ///< Passes on tensors that run before anything else; none when empty.
  bool dynamic = false;            ///< Memory from a pool instead of planned arenas.
  std::optional<int64_t> inFlight; ///< Iterations of a loop of micro-batches to overlap.
  std::optional<int64_t> deviceBytes, hostBytes;
};

/// A training run.
struct TrainingOptions {
  int64_t steps = 0;
  double learningRate = 0;
  std::string data;
  std::optional<int64_t> documentEnd;
  std::optional<int64_t> firstStep; ///< Counted from 1.
  std::vector<int64_t> rankTokens;  ///< Tokens of each rank in a step; all that fit when empty.
  std::string init, save, saveGradients;
  bool json = false;
  std::string trace, gemmShapes, report;
  bool profile = false;
  std::optional<int64_t> orders; ///< Run the first step in so many orders instead of training.
};

/// One function run on drawn arguments.
struct EntryOptions {
  std::string name;
  std::optional<double> tolerance; ///< Compare compiled code with the interpreter.
  std::optional<int> repeat;
};

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_OPTIONS_H
