//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// From options to an executor. The one part of a run that knows which executors there are.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_EXECUTORS_H
#define PLATEAU_RUN_EXECUTORS_H

#include "plateau/Execution/StepExecutor.h"
#include "plateau/Run/Options.h"
#include <functional>
#include <memory>
#include <vector>

namespace mlir::plateau::run {

/// An executor, and what only some of them can tell.
struct Executor {
  std::unique_ptr<StepExecutor> step;
  /// Interpreter: the elements of result `index` after a run, in float64, not rounded to the type of the IR.
  std::function<std::vector<double>(int rank, unsigned index)> getValues;
  /// Interpreter in exact mode: a hash of result `index` after a run.
  std::function<uint64_t(int rank, unsigned index)> getDigest;
  /// And of the elements of parts of results, one part after the other, however they are cut into parts.
  std::function<uint64_t(llvm::ArrayRef<ResultPart>)> getPartsDigest;
  /// Compiled code: begins anew, with memory and state as at the start, and the lanes in an order drawn from the seed.
  std::function<llvm::Error(uint64_t seed)> restart;
  /// Compiled code in a program that counts allocations: starts to count large ones of the whole process, and ends.
  std::function<void()> startCount;
  std::function<int64_t()> stopCount;
  /// Compiled code, when options ask for a trace: all spans since clearTrace.
  std::function<std::vector<plr_span>(int rank)> getTrace;
  std::function<void()> clearTrace;
  /// Compiled code: what came of the plans of routes that a rank made in the last run.
  std::function<std::vector<plr_plan_record>(int rank)> getPlanRecords;
};

/// Makes the executor that `options` ask for. Causes that stand in the IR are reported as diagnostics.
llvm::Expected<Executor> createExecutor(func::FuncOp function, const RunOptions &options);

/// Copies result `index` after a run, from the argument that was donated to it if there is one.
llvm::Error readOutput(StepExecutor &executor, int rank, unsigned index, llvm::MutableArrayRef<char> bytes);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_EXECUTORS_H
