//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Takes the spans of each step to where the command line wants them.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_SPANRECORDER_H
#define PLATEAU_RUN_SPANRECORDER_H

#include "plateau/Run/Executors.h"
#include "plateau/Run/Options.h"
#include "plateau/Run/Report.h"
#include "plateau/Run/Trace.h"
#include "plateau/Run/Training.h"

namespace mlir::plateau::run {

/// The trace grows step by step; the report is there from the first step on; the rest comes at the end.
class SpanRecorder {
public:
  /// `input` is the module's name. Notes go to `notes`, a line each.
  SpanRecorder(Executor &executor, const TrainingOptions &options, std::string input, llvm::raw_ostream &notes);

  /// To be called before the first step. Fails when a report is asked for and there is no plan to show.
  llvm::Error start();
  llvm::Error addStep(int64_t step, const MemorySummary &memory);
  /// When the run has ended, early too; `seconds`: time within its steps, none when it failed.
  llvm::Error finish(std::optional<double> seconds);

private:
  llvm::Error writePage();

  Executor &executor;
  const TrainingOptions &options;
  llvm::raw_ostream &notes;
  std::optional<StepCalls> calls; ///< Of a planned program.
  std::optional<TraceWriter> trace;
  RankSpans all, last; ///< All: only when something at the end needs them.
  ReportFacts facts;
  bool toldWhy = false; ///< Why the trace has spans alone.
};

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_SPANRECORDER_H
