//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A function compiled in process and run on the host runtime.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_EXECUTION_COMPILEDEXECUTOR_H
#define PLATEAU_EXECUTION_COMPILEDEXECUTOR_H

#include "plateau/Execution/StepExecutor.h"
#include <vector>

namespace mlir::plateau {

struct CompiledOptions {
  int ranks = 1;
  /// Limits of each rank's memory spaces.
  int64_t deviceBytes = 0, hostBytes = 0;
  plr_gemm_kind gemm = PLR_GEMM_ONEDNN;
  /// Seconds after which a collective that not all ranks have reached is an error.
  double collectiveTimeout = 60;
  /// Fill memory with NaN when it is handed out and when it is released.
  bool poison = false;
  /// Stop at numbers that no sound step has.
  bool strict = false;
  /// Record a span for every call.
  bool trace = false;
  /// Memory from a pool while the step runs, instead of arenas that are planned before.
  bool dynamic = false;
  /// Iterations of a loop to overlap; 0: none beyond what the function asks for.
  int64_t inFlight = 0;
  /// Not 0: the lanes run in an order drawn from it.
  uint64_t scheduleSeed = 0;
};

class CompiledExecutor : public StepExecutor {
public:
  /// The calls of one rank since the last clearTrace, in the order they were enqueued.
  virtual std::vector<plr_span> getTrace(int rank) = 0;
  virtual void clearTrace() = 0;

  /// What came of the plans of routes that one rank made since the last resetPeak, in order.
  virtual std::vector<plr_plan_record> getPlanRecords(int rank) = 0;

  /// New contexts, with every buffer zero, whose lanes run in an order drawn from the seed (0: as they come).
  virtual llvm::Error restart(uint64_t scheduleSeed) = 0;

protected:
  using StepExecutor::StepExecutor;
};

/// Plans the memory of `function` and proves the plan (or not, with `dynamic`), compiles it for this machine, and gives
/// each rank a context, a buffer for each argument (zeroed) and one for each result that no argument is donated to.
/// What is wrong with the IR is said in diagnostics.
llvm::Expected<std::unique_ptr<CompiledExecutor>> createCompiledExecutor(func::FuncOp function,
                                                                         const CompiledOptions &options);

} // namespace mlir::plateau

#endif // PLATEAU_EXECUTION_COMPILEDEXECUTOR_H
