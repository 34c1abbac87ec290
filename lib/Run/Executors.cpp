//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Executors.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Execution/CompiledExecutor.h"
#include "plateau/Interpreter/Interpreter.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/MemoryLimits.h"
#include "plateau/Run/StepSignature.h"
#ifdef PLATEAU_COUNTS_ALLOCATIONS
#include "alloc_count.h"
#endif

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

static llvm::Expected<Executor> createInterpreted(func::FuncOp function, const RunOptions &options) {
  auto mode = options.engine == Engine::Exact ? Interpreter::Mode::Exact : Interpreter::Mode::Float64;
  std::unique_ptr<InterpreterExecutor> made = createInterpreterExecutor(function, *options.ranks, mode);
  if (!made)
    return makeError("");
  InterpreterExecutor *interpreter = made.get();
  Executor executor;
  executor.step = std::move(made);
  if (mode == Interpreter::Mode::Exact) {
    executor.getDigest = [interpreter, function](int rank, unsigned index) {
      if (auto argument = getDonatingArgument(function, index))
        return interpreter->getArgumentDigest(rank, *argument);
      return interpreter->getResultDigest(rank, index);
    };
    executor.getPartsDigest = [interpreter](llvm::ArrayRef<ResultPart> parts) {
      return interpreter->getResultDigest(parts);
    };
    return executor;
  }
  executor.getValues = [interpreter, function](int rank, unsigned index) {
    auto argument = getDonatingArgument(function, index);
    const auto &tensor = argument ? interpreter->getArgument(rank, *argument) : interpreter->getResult(rank, index);
    if (tensor.holds<int64_t>())
      return std::vector<double>(tensor.get<int64_t>().begin(), tensor.get<int64_t>().end());
    return std::vector<double>(tensor.get<double>().begin(), tensor.get<double>().end());
  };
  return executor;
}

static llvm::Expected<Executor> createCompiled(func::FuncOp function, const RunOptions &options) {
  auto memory = readSystemMemory();
  if (!memory)
    return memory.takeError();
  llvm::Error refusal = llvm::Error::success();
  MemoryLimits limits =
      chooseLimits(options.deviceBytes, options.hostBytes, *memory, *options.ranks, [&](llvm::StringRef text) {
        if (options.strict)
          refusal = llvm::joinErrors(std::move(refusal), makeError("{0}", text));
        else
          llvm::errs() << "note: " << text << "\n";
      });
  if (refusal)
    return refusal;
  bool hasLoop = function
                     .walk([](scf::ForOp loop) {
                       bool makesPlan = loop.walk([](moe::PlanOp) { return WalkResult::interrupt(); }).wasInterrupted();
                       return makesPlan ? WalkResult::advance() : WalkResult::interrupt();
                     })
                     .wasInterrupted();
  if (options.strict && options.inFlight.value_or(1) > 1 && !hasLoop)
    return makeError(
        "--in-flight {0} cannot be honoured: the step has no loop of micro-batches, or each makes a plan of its "
        "routes, so that the loop becomes its iterations",
        *options.inFlight);
  CompiledOptions compiled;
  compiled.ranks = *options.ranks;
  compiled.deviceBytes = limits.deviceBytes;
  compiled.hostBytes = limits.hostBytes;
  compiled.gemm = options.gemm;
  compiled.poison = options.poison;
  compiled.trace = options.trace;
  compiled.strict = options.strict;
  compiled.dynamic = options.dynamic;
  compiled.inFlight = options.inFlight.value_or(0);
  auto made = createCompiledExecutor(function, compiled);
  if (!made)
    return made.takeError();
  Executor executor;
  if (options.trace) {
    executor.getTrace = [step = made->get()](int rank) { return step->getTrace(rank); };
    executor.clearTrace = [step = made->get()] { step->clearTrace(); };
  }
  executor.getPlanRecords = [step = made->get()](int rank) { return step->getPlanRecords(rank); };
  executor.restart = [step = made->get()](uint64_t seed) { return step->restart(seed); };
  executor.step = std::move(*made);
#ifdef PLATEAU_COUNTS_ALLOCATIONS
  executor.startCount = plateau_alloc_count_start;
  executor.stopCount = [] { return plateau_alloc_count_stop().large_calls; };
#endif
  return executor;
}

llvm::Expected<Executor> run::createExecutor(func::FuncOp function, const RunOptions &options) {
  return options.engine == Engine::Compiled ? createCompiled(function, options) : createInterpreted(function, options);
}
