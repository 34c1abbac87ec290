//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Executors.h"
#include "plateau/Execution/CompiledExecutor.h"
#include "plateau/Interpreter/Interpreter.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/MemoryLimits.h"
#include "plateau/Run/StepSignature.h"

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
  CompiledOptions compiled;
  compiled.ranks = *options.ranks;
  compiled.deviceBytes = limits.deviceBytes;
  compiled.hostBytes = limits.hostBytes;
  compiled.gemm = options.gemm;
  compiled.poison = options.poison;
  compiled.trace = options.trace;
  compiled.strict = options.strict;
  auto made = createCompiledExecutor(function, compiled);
  if (!made)
    return made.takeError();
  Executor executor;
  if (options.trace)
    executor.getTrace = [step = made->get()](int rank) { return step->getTrace(rank); };
  executor.step = std::move(*made);
  return executor;
}

llvm::Expected<Executor> run::createExecutor(func::FuncOp function, const RunOptions &options) {
  return options.engine == Engine::Compiled ? createCompiled(function, options) : createInterpreted(function, options);
}
