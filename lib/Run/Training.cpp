//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Training.h"
#include "plateau/Run/Digests.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/Files.h"
#include "plateau/Run/Interrupt.h"
#include <chrono>
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

namespace {
class Trainer {
public:
  Trainer(Executor &executor, const StepSignature &signature, const TokenData &data, const TrainingOptions &options,
          StepReporter &reporter, llvm::raw_ostream &notes, const StepObserver &observer)
      : executor(executor), step(*executor.step), signature(signature), data(data), options(options),
        reporter(reporter), notes(notes), observer(observer) {}

  llvm::Expected<TrainingSummary> run(uint64_t seed);

private:
  llvm::Error checkFiles();
  llvm::Error setState(uint64_t seed);
  int64_t addMemory(StepReport &report);
  void addDispatch();
  llvm::Error runStep();
  llvm::Error keepState();
  llvm::Expected<float> readScalar(unsigned result);
  llvm::Error reportDigests();
  llvm::Error save();

  Executor &executor;
  StepExecutor &step;
  const StepSignature &signature;
  const TokenData &data;
  const TrainingOptions &options;
  StepReporter &reporter;
  llvm::raw_ostream &notes;
  const StepObserver &observer;
  TrainingCounters counters;
  TrainingSummary summary;
  std::optional<int64_t> residentBefore; ///< The first step.
  std::optional<int64_t> dispatchRanks;
};
} // namespace

llvm::Error Trainer::checkFiles() {
  for (const std::string &path :
       {options.save, options.saveGradients, options.trace, options.gemmShapes, options.report})
    if (!path.empty())
      if (auto error = checkWritable(path))
        return error;
  bool hasNames = !options.init.empty() || !options.save.empty() || !options.saveGradients.empty();
  return hasNames ? checkTensorNames(signature) : llvm::Error::success();
}

llvm::Error Trainer::setState(uint64_t seed) {
  if (options.init.empty()) {
    if (auto error = drawState(step, signature, seed, InterruptScope::wasInterrupted))
      return error;
  } else {
    auto loaded =
        loadState(step, signature, options.init, [&](llvm::StringRef text) { notes << "note: " << text << "\n"; });
    if (!loaded)
      return loaded.takeError();
    counters = *loaded;
  }
  if (options.firstStep)
    counters.batch = *options.firstStep - 1;
  // The step takes the number of the update as i32.
  if (int64_t last = std::max(counters.update, counters.batch) + options.steps; last > INT32_MAX)
    return makeError("after {0} steps the number of the next would be {1}; there is none above {2}", options.steps,
                     last, INT32_MAX);
  return data.checkIds(counters.batch, options.steps, signature.vocabulary);
}

template <typename Number>
static llvm::Error write(StepExecutor &step, int rank, unsigned argument, llvm::ArrayRef<Number> numbers) {
  return step.writeArgument(rank, argument,
                            {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(Number)});
}

llvm::Error run::writeInputs(StepExecutor &step, const StepSignature &signature, const TokenData &data,
                             const TrainingCounters &counters, float learningRate) {
  int32_t update = counters.update;
  for (int rank = 0; rank < step.getRanks(); ++rank) {
    RankBatch batch = data.getBatch(counters.batch, rank);
    for (auto [argument, column] :
         {std::pair(signature.tokens, &batch.tokens), std::pair(signature.labels, &batch.labels),
          std::pair(signature.positions, &batch.positions), std::pair(signature.starts, &batch.starts)})
      if (auto error = write<int32_t>(step, rank, argument, *column))
        return error;
    auto tokens = static_cast<int32_t>(signature.batch.getTokens(rank));
    if (signature.tokenCount)
      if (auto error = write<int32_t>(step, rank, *signature.tokenCount, tokens))
        return error;
    if (auto error = write<float>(step, rank, signature.learningRate, learningRate))
      return error;
    if (auto error = write<int32_t>(step, rank, signature.step, update))
      return error;
  }
  return llvm::Error::success();
}

/// Takes over what the step gave back in buffers of its own: groups that are not donated.
llvm::Error Trainer::keepState() {
  for (const StateGroup *group : signature.getGroups()) {
    if (getDonatedResult(signature.function, group->argument))
      continue;
    std::vector<char> bytes(step.getResultBytes(group->result));
    for (int rank = 0; rank < step.getRanks(); ++rank) {
      if (auto error = step.readResult(rank, group->result, bytes))
        return error;
      if (auto error = step.writeArgument(rank, group->argument, bytes))
        return error;
    }
  }
  return llvm::Error::success();
}

llvm::Expected<float> Trainer::readScalar(unsigned result) {
  float value;
  if (auto error = readOutput(step, 0, result, {reinterpret_cast<char *>(&value), sizeof(value)}))
    return error;
  return value;
}

llvm::Error Trainer::reportDigests() {
  auto digests = getDigests(executor, signature);
  if (!digests)
    return digests.takeError();
  std::string text = llvm::formatv("step {0}", counters.batch + 1).str();
  for (const ResultDigest &digest : *digests)
    text += llvm::formatv(" {0} {1:x-16}", digest.name, digest.hash).str();
  reporter.line(text);
  return llvm::Error::success();
}

/// The first steps of a planned program are measured, each with another pattern of poison: what a step leaves untouched
/// cannot look like both.
static constexpr int64_t measuredSteps = 2;

/// The device space's peak for the step's line, and the run's summary.
int64_t Trainer::addMemory(StepReport &report) {
  int64_t peak = 0;
  for (int rank = 0; rank < step.getRanks(); ++rank)
    for (plr_space space : {PLR_DEVICE, PLR_HOST}) {
      plr_space_report memory = step.getMemoryReport(rank, space);
      summary.peaks.add(space, rank, memory);
      report.liveBytes += memory.live_bytes;
      int64_t &observed = summary.memory.spaces[space].observed;
      observed = std::max(observed, !step.getProgram()              ? memory.peak_bytes
                                    : summary.steps < measuredSteps ? step.getObservedBytes(rank, space)
                                                                    : 0);
      if (space == PLR_DEVICE)
        peak = std::max(peak, step.getProgram() ? observed : memory.peak_bytes);
    }
  if (step.getProgram())
    summary.memory.hostFences = step.getFenceCount(0);
  return peak;
}

/// Where routes have iterations or helpers. Other plans take all rows at once, each at home: there is nothing to tell.
void Trainer::addDispatch() {
  if (!dispatchRanks || !executor.getPlanRecords)
    return;
  std::vector<std::vector<plr_plan_record>> records;
  for (int rank = 0; rank < step.getRanks(); ++rank)
    records.push_back(executor.getPlanRecords(rank));
  summary.dispatch.addStep(records);
}

llvm::Error Trainer::runStep() {
  step.resetPeak();
  if (step.getProgram() && summary.steps <= measuredSteps)
    step.measure(summary.steps < measuredSteps ? summary.steps + 1 : 0);
  auto begin = std::chrono::steady_clock::now();
  if (auto error = writeInputs(step, signature, data, counters, options.learningRate))
    return error;
  if (executor.startCount)
    executor.startCount();
  llvm::Error failure = step.run();
  if (executor.stopCount)
    summary.memory.allocationsAfterStart = summary.memory.allocationsAfterStart.value_or(0) + executor.stopCount();
  if (failure)
    return failure;
  if (std::optional<int64_t> peak = getResidentPeak(); peak && residentBefore)
    summary.memory.residentGrowth = *peak - *residentBefore;
  auto loss = readScalar(signature.loss), norm = readScalar(signature.gradientNorm);
  if (!loss || !norm)
    return llvm::joinErrors(loss.takeError(), norm.takeError());
  if (auto error = keepState())
    return error;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  StepReport report;
  report.step = counters.batch + 1;
  report.loss = *loss;
  report.gradientNorm = *norm;
  report.skipped = !std::isfinite(*norm);
  report.tokensPerSecond = signature.batch.getGlobalTokens() / seconds;
  report.peakBytes = addMemory(report);
  addDispatch();
  if (observer)
    if (auto error = observer(report.step, summary.memory))
      return error;
  if (!executor.getPartsDigest)
    reporter.report(report);
  else if (auto error = reportDigests())
    return error;

  if (auto error = reporter.flush())
    return error;

  ++summary.steps;
  summary.seconds += seconds;
  summary.skipped += report.skipped;
  ++counters.batch;
  if (!report.skipped)
    ++counters.update;
  return llvm::Error::success();
}

llvm::Error Trainer::save() {
  if (!options.save.empty())
    if (auto error = saveState(step, signature, counters, options.save))
      return error;
  if (options.saveGradients.empty())
    return llvm::Error::success();
  std::function<std::vector<double>(int)> getValues;
  if (executor.getValues)
    getValues = [&](int rank) { return executor.getValues(rank, signature.gradients.result); };
  return saveGradients(step, signature, getValues, options.saveGradients);
}

llvm::Expected<TrainingSummary> Trainer::run(uint64_t seed) {
  if (auto error = checkFiles())
    return error;
  if (auto error = setState(seed))
    return error;
  dispatchRanks = getDispatchRanks(step.getFunction());
  if (dispatchRanks)
    summary.dispatch = DispatchReport(*dispatchRanks);
  if (sched::ProgramOp program = step.getProgram())
    summary.memory.spaces = getPlannedMemory(program);
  resetResidentPeak();
  residentBefore = getResidentBytes();
  for (int64_t i = 0; i < options.steps; ++i) {
    llvm::Error error = InterruptScope::wasInterrupted() ? llvm::Error::success() : runStep();
    if (InterruptScope::wasInterrupted()) {
      llvm::consumeError(std::move(error));
      return makeError("interrupted after {0} of {1} steps; nothing was saved", summary.steps, options.steps);
    }
    if (error)
      return makeError("step {0}: {1}", counters.batch + 1, llvm::toString(std::move(error)));
  }
  if (auto error = save())
    return error;
  return summary;
}

llvm::Expected<TrainingSummary> run::train(Executor &executor, const StepSignature &signature, const TokenData &data,
                                           uint64_t seed, const TrainingOptions &options, StepReporter &reporter,
                                           llvm::raw_ostream &notes, const StepObserver &observer) {
  return Trainer(executor, signature, data, options, reporter, notes, observer).run(seed);
}
