//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The loop of a training run.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_TRAINING_H
#define PLATEAU_RUN_TRAINING_H

#include "plateau/Run/DispatchReport.h"
#include "plateau/Run/Executors.h"
#include "plateau/Run/Options.h"
#include "plateau/Run/PlannedMemory.h"
#include "plateau/Run/StepReporter.h"
#include "plateau/Run/StepSignature.h"
#include "plateau/Run/TokenData.h"
#include "plateau/Run/TrainingState.h"

namespace mlir::plateau::run {

/// What a run leaves to tell.
struct TrainingSummary {
  int64_t steps = 0, skipped = 0;
  double seconds = 0; ///< Time within the steps.
  PeakTable peaks;
  MemorySummary memory;
  DispatchReport dispatch;
};

/// Writes on all ranks what one step reads besides its state: the data, the learning rate and the number of the update.
llvm::Error writeInputs(StepExecutor &step, const StepSignature &signature, const TokenData &data,
                        const TrainingCounters &counters, float learningRate);

/// Told each step that is done, by its number in the data, with the memory so far. Its error ends the run.
using StepObserver = std::function<llvm::Error(int64_t step, const MemorySummary &memory)>;

/// Sets the state, runs the steps on `data` and writes the safetensors files that `options` name. An executor that
/// gives digests is asked for those instead of the loss. Notes go to `notes`, a line each. After an interrupt (see
/// InterruptScope) it returns an error and writes no file.
llvm::Expected<TrainingSummary> train(Executor &executor, const StepSignature &signature, const TokenData &data,
                                      uint64_t seed, const TrainingOptions &options, StepReporter &reporter,
                                      llvm::raw_ostream &notes, const StepObserver &observer = {});

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_TRAINING_H
