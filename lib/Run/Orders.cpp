//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Orders.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/Interrupt.h"
#include "plateau/Run/ParameterInit.h"
#include "plateau/Run/Training.h"
#include "plateau/Run/TrainingState.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

namespace {
/// Bytes of each argument, or result, of each rank.
using Bytes = std::vector<char>;
using RankedBytes = std::vector<std::vector<Bytes>>;
} // namespace

static llvm::Expected<RankedBytes> readArguments(StepExecutor &step) {
  RankedBytes all(step.getRanks());
  for (int rank = 0; rank < step.getRanks(); ++rank)
    for (unsigned index = 0; index < step.getFunction().getNumArguments(); ++index)
      if (auto error = step.readArgument(rank, index, all[rank].emplace_back(step.getArgumentBytes(index))))
        return std::move(error);
  return all;
}

static llvm::Expected<RankedBytes> runFrom(StepExecutor &step, const RankedBytes &arguments) {
  for (int rank = 0; rank < step.getRanks(); ++rank)
    for (auto [index, bytes] : llvm::enumerate(arguments[rank]))
      if (auto error = step.writeArgument(rank, index, bytes))
        return std::move(error);
  if (auto error = step.run())
    return std::move(error);
  RankedBytes results(step.getRanks());
  for (int rank = 0; rank < step.getRanks(); ++rank)
    for (unsigned index = 0; index < step.getFunction().getNumResults(); ++index)
      if (auto error = readOutput(step, rank, index, results[rank].emplace_back(step.getResultBytes(index))))
        return std::move(error);
  return results;
}

llvm::Error run::checkOrders(Executor &executor, const StepSignature &signature, const TokenData &data,
                             float learningRate, uint64_t stateSeed, int64_t count) {
  StepExecutor &step = *executor.step;
  if (auto error = drawState(step, signature, stateSeed, InterruptScope::wasInterrupted))
    return error;
  if (auto error = data.checkIds(0, 1, signature.vocabulary))
    return error;
  if (auto error = writeInputs(step, signature, data, {}, learningRate))
    return error;
  auto arguments = readArguments(step);
  if (!arguments)
    return arguments.takeError();
  auto expected = runFrom(step, *arguments);
  if (!expected)
    return expected.takeError();
  for (int64_t seed = 1; seed <= count; ++seed) {
    if (InterruptScope::wasInterrupted())
      return makeError("interrupted after {0} of {1} orders", seed - 1, count);
    if (auto error = executor.restart(seed))
      return error;
    step.measure(seed);
    auto results = runFrom(step, *arguments);
    if (!results)
      return makeError("order {0}: {1}", seed, llvm::toString(results.takeError()));
    for (int rank = 0; rank < step.getRanks(); ++rank)
      for (auto [index, bytes] : llvm::enumerate((*results)[rank]))
        if (bytes != (*expected)[rank][index])
          return makeError("order {0}: result #{1} of rank {2} differs from that of the order of issue: the schedule "
                           "lacks a wait",
                           seed, index, rank);
  }
  return llvm::Error::success();
}
