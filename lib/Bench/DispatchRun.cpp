//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/DispatchRun.h"
#include "Numbers.h"
#include "plateau/Bench/DispatchData.h"
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

static llvm::Expected<Executors> createExecutors(std::vector<DispatchPlan> &plans, const DispatchOptions &options) {
  auto memory = run::readSystemMemory();
  if (!memory)
    return memory.takeError();
  int64_t usable = memory->getUsableBytes(), needed = 0;
  for (const DispatchPlan &plan : plans) // What a pool will give out depends on the routing; buffers are there anyway.
    needed += (plan.plannedBytes - (plan.isPooled() ? plan.workingSetBytes : 0)) * options.ranks;
  if (needed > usable)
    return makeError("all methods and ranks together need at least {0} bytes, and this machine can give {1}; ask for "
                     "smaller sizes or for the plans alone (--plan-only)",
                     needed, usable);
  Executors executors;
  for (DispatchPlan &plan : plans) {
    CompiledOptions compiled;
    compiled.ranks = options.ranks;
    compiled.deviceBytes = compiled.hostBytes = usable / options.ranks;
    compiled.collectiveTimeout = collectiveTimeout;
    compiled.trace = true;
    compiled.dynamic = plan.isPooled();
    auto made = createCompiledExecutor(plan.function, compiled);
    if (!made)
      return made.takeError();
    executors.push_back(std::move(*made));
  }
  return executors;
}

/// From the first span of a rank to its last one; of the slowest rank.
static double getSeconds(CompiledExecutor &executor) {
  double slowest = 0;
  for (int rank = 0; rank < executor.getRanks(); ++rank) {
    int64_t begin = INT64_MAX, end = INT64_MIN;
    for (const plr_span &span : executor.getTrace(rank)) {
      begin = std::min(begin, span.start_ns);
      end = std::max(end, span.end_ns);
    }
    if (begin < end)
      slowest = std::max(slowest, (end - begin) * 1e-9);
  }
  return slowest;
}

/// Takes what the last run needed.
static void addMemory(CompiledExecutor &executor, const DispatchPlan &plan, DispatchFigures &figures) {
  for (int rank = 0; rank < executor.getRanks(); ++rank) {
    int64_t observed = 0, live = 0;
    for (plr_space space : {PLR_DEVICE, PLR_HOST}) {
      plr_space_report report = executor.getMemoryReport(rank, space);
      observed += plan.isPooled() ? report.extent_bytes : std::max<int64_t>(executor.getObservedBytes(rank, space), 0);
      live += report.peak_bytes;
    }
    figures.observedBytes = std::max(figures.observedBytes, observed);
    figures.lowerBoundBytes = std::max(figures.lowerBoundBytes, plan.isPooled() ? live : plan.lowerBoundBytes);
    // A plan from the pool is complete when its call returns: that it waits is not counted as a fence.
    int64_t waits = plan.isPooled() ? executor.getPlanRecords(rank).size() : 0;
    figures.hostFences = std::max(figures.hostFences, waits + executor.getFenceCount(rank));
  }
}

/// Lets every method run on memory that is observed, and takes what it needed and what it computed.
static llvm::Error observe(const Executors &executors, std::vector<DispatchPlan> &plans, const DispatchOptions &options,
                           std::vector<DispatchFigures> &figures) {
  std::vector<DispatchValues> first;
  for (auto [plan, executor, figure] : llvm::zip_equal(plans, executors, figures)) {
    for (int seed = 1; seed <= observedRuns; ++seed) {
      executor->measure(plan.isPooled() ? 0 : seed);
      executor->resetPeak();
      if (auto error = executor->run())
        return error;
      addMemory(*executor, plan, figure);
    }
    auto routing = getRoutingFigures(*executor, plan, options);
    if (!routing)
      return routing.takeError();
    figure.routing = *routing;
    auto values = readDispatchValues(*executor, options);
    if (!values)
      return values.takeError();
    executor->measure(0);
    if (first.empty())
      first = std::move(*values);
    else if (auto error = compareDispatchValues(first, stringifyMethod(plans.front().method), *values,
                                                stringifyMethod(plan.method), options.isBF16))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<DispatchFigures>> bench::runDispatch(std::vector<DispatchPlan> &plans,
                                                                const DispatchOptions &options) {
  auto executors = createExecutors(plans, options);
  if (!executors)
    return executors.takeError();
  SmallVector<StepExecutor *> steps;
  for (const auto &executor : *executors)
    steps.push_back(executor.get());
  if (auto error = writeDispatchData(steps, options))
    return error;
  std::vector<DispatchFigures> figures(plans.size());
  if (auto error = observe(*executors, plans, options, figures))
    return error;

  std::vector<std::vector<double>> seconds(plans.size());
  for (int repetition = 0; repetition < options.repeat; ++repetition)
    for (auto [index, executor] : llvm::enumerate(*executors)) {
      executor->clearTrace();
      if (auto error = executor->run())
        return error;
      seconds[index].push_back(getSeconds(*executor));
    }

  auto isUnchunked = [](const DispatchPlan &plan) { return plan.method == DispatchMethod::LeastLoaded; };
  const std::vector<double> &unchunked = seconds[llvm::find_if(plans, isUnchunked) - plans.begin()];
  for (auto [plan, figure, own] : llvm::zip_equal(plans, figures, seconds)) {
    figure.seconds = getMedian(own);
    std::vector<double> ratios;
    for (auto [time, beside] : llvm::zip_equal(own, unchunked))
      ratios.push_back(time / beside);
    if (!isUnchunked(plan))
      figure.ratio = DispatchRatio{getMedian(ratios), *llvm::min_element(ratios), *llvm::max_element(ratios)};
  }
  return figures;
}
