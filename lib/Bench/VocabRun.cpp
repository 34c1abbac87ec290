//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/VocabRun.h"
#include "Numbers.h"
#include "plateau/Bench/VocabData.h"
#include "plateau/Execution/CompiledExecutor.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/MemoryLimits.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;
using run::makeError;

using Executors = std::vector<std::unique_ptr<CompiledExecutor>>;

/// A rank may wait long for one that has no core.
static constexpr double collectiveTimeout = 3600;
/// Runs that are observed, each on memory that another pattern fills.
static constexpr int observedRuns = 2;

static llvm::Expected<Executors> createExecutors(ArrayRef<VocabPlan> plans, const VocabOptions &options) {
  auto memory = run::readSystemMemory();
  if (!memory)
    return memory.takeError();
  int64_t usable = memory->getUsableBytes(), needed = 0;
  for (const VocabPlan &plan : plans)
    needed += plan.plannedBytes * options.ranks;
  if (needed > usable)
    return makeError("all methods and ranks together need {0} bytes, and this machine can give {1}; ask for fewer "
                     "methods at a time (--move), for smaller sizes, or for the plans alone (--plan-only)",
                     needed, usable);
  Executors executors;
  for (const VocabPlan &plan : plans) {
    CompiledOptions compiled;
    compiled.ranks = options.ranks;
    compiled.deviceBytes = compiled.hostBytes = usable / options.ranks;
    compiled.collectiveTimeout = collectiveTimeout;
    compiled.trace = true;
    auto made = createCompiledExecutor(plan.function, compiled);
    if (!made)
      return made.takeError();
    executors.push_back(std::move(*made));
  }
  return executors;
}

/// From the first span of a rank to the last one of the forward phase, and from there to the end; of the slowest rank.
/// In tiles each tile has both phases: all time counts as forward.
static VocabSeconds getSeconds(CompiledExecutor &executor, bool isTiled) {
  VocabSeconds slowest;
  for (int rank = 0; rank < executor.getRanks(); ++rank) {
    int64_t begin = INT64_MAX, forward = 0, end = 0;
    for (const plr_span &span : executor.getTrace(rank)) {
      begin = std::min(begin, span.start_ns);
      end = std::max(end, span.end_ns);
      if (isTiled || (span.tag && span.tag->phase == PLR_FORWARD))
        forward = std::max(forward, span.end_ns);
    }
    if (end == 0)
      continue;
    forward = std::max(forward, begin);
    slowest.forward = std::max(slowest.forward, (forward - begin) * 1e-9);
    slowest.backward = std::max(slowest.backward, (end - forward) * 1e-9);
  }
  return slowest;
}

/// Lets every method run on poisoned memory, and takes what it wrote and what it computed.
static llvm::Error observe(const Executors &executors, ArrayRef<VocabPlan> plans, const VocabOptions &options,
                           std::vector<VocabFigures> &figures) {
  std::vector<VocabValues> first;
  for (auto [plan, executor, figure] : llvm::zip_equal(plans, executors, figures)) {
    for (int seed = 1; seed <= observedRuns; ++seed) {
      executor->measure(seed);
      if (auto error = executor->run())
        return error;
      for (int rank = 0; rank < options.ranks; ++rank) {
        int64_t bytes = 0;
        for (plr_space space : {PLR_DEVICE, PLR_HOST})
          bytes += std::max<int64_t>(executor->getObservedBytes(rank, space), 0);
        figure.observedBytes = std::max(figure.observedBytes, bytes);
      }
    }
    auto values = readVocabValues(*executor);
    if (!values)
      return values.takeError();
    executor->measure(0);
    if (first.empty())
      first = std::move(*values);
    else if (auto error = compareVocabValues(first, stringifyMethod(plans.front().method), *values,
                                             stringifyMethod(plan.method), options.isBF16))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<VocabFigures>> bench::runVocab(ArrayRef<VocabPlan> plans, const VocabOptions &options) {
  auto executors = createExecutors(plans, options);
  if (!executors)
    return executors.takeError();
  SmallVector<StepExecutor *> steps;
  for (const auto &executor : *executors)
    steps.push_back(executor.get());
  if (auto error = writeVocabData(steps, options))
    return error;
  std::vector<VocabFigures> figures(plans.size());
  if (auto error = observe(*executors, plans, options, figures))
    return error;

  std::vector<std::vector<VocabSeconds>> runs(plans.size());
  for (int repetition = 0; repetition < options.repeat; ++repetition)
    for (auto [index, executor] : llvm::enumerate(*executors)) {
      executor->clearTrace();
      if (auto error = executor->run())
        return error;
      runs[index].push_back(getSeconds(*executor, plans[index].move == "none"));
    }

  auto isStandard = [](const VocabPlan &plan) { return plan.method == VocabMethod::Standard; };
  size_t standard = llvm::find_if(plans, isStandard) - plans.begin();
  for (auto [index, figure] : llvm::enumerate(figures)) {
    std::vector<double> forward, backward, ratios;
    for (auto [repetition, seconds] : llvm::enumerate(runs[index])) {
      forward.push_back(seconds.forward);
      backward.push_back(seconds.backward);
      if (standard < plans.size())
        ratios.push_back(seconds.getTotal() / runs[standard][repetition].getTotal());
    }
    figure.median = {getMedian(forward), getMedian(backward)};
    if (standard < plans.size() && standard != index)
      figure.ratio = VocabRatio{getMedian(ratios), *llvm::min_element(ratios), *llvm::max_element(ratios)};
  }
  return figures;
}
