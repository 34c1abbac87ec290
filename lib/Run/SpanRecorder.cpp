//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/SpanRecorder.h"
#include "plateau/Run/Error.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

SpanRecorder::SpanRecorder(Executor &executor, const TrainingOptions &options, std::string input,
                           llvm::raw_ostream &notes)
    : executor(executor), options(options), notes(notes) {
  facts.input = std::move(input);
  facts.ranks = executor.step->getRanks();
}

llvm::Error SpanRecorder::start() {
  sched::ProgramOp program = executor.step->getProgram();
  if (!options.report.empty() && !program)
    return makeError("--report shows the memory that is planned, and this run has no plan");
  if (program && (!options.trace.empty() || !options.report.empty())) {
    FailureOr<StepCalls> made = StepCalls::get(program);
    if (failed(made))
      return makeError(""); // Told as a diagnostic.
    calls = std::move(*made);
    facts.memory.spaces = getPlannedMemory(program);
    for (plr_space space : {PLR_DEVICE, PLR_HOST})
      if (int64_t limit = executor.step->getMemoryReport(0, space).limit_bytes)
        facts.limits[space] = limit;
  }
  if (!options.trace.empty())
    trace.emplace(options.trace, calls ? &*calls : nullptr);
  return llvm::Error::success();
}

llvm::Error SpanRecorder::addStep(int64_t step, const MemorySummary &memory) {
  if (!executor.getTrace)
    return llvm::Error::success();
  last.clear();
  for (int rank = 0; rank < executor.step->getRanks(); ++rank)
    last.push_back(executor.getTrace(rank));
  executor.clearTrace();
  if (trace) {
    std::string why;
    if (auto error = trace->addStep(step, last, why))
      return error;
    if (!why.empty() && !toldWhy)
      notes << "note: " << options.trace << " has spans alone: " << why << "\n";
    toldWhy |= !why.empty();
  }
  if (options.profile || !options.gemmShapes.empty()) {
    all.resize(last.size());
    for (auto [list, own] : llvm::zip_equal(all, last))
      llvm::append_range(list, own);
  }
  bool isFirst = !facts.step;
  facts.step = step;
  facts.memory = memory;
  return isFirst ? writePage() : llvm::Error::success();
}

llvm::Error SpanRecorder::writePage() {
  if (options.report.empty())
    return llvm::Error::success();
  return writeReport(options.report, *calls, last.empty() ? StepCalls::Spans() : StepCalls::Spans(last.front()), facts);
}

llvm::Error SpanRecorder::finish(std::optional<double> seconds) {
  if (!executor.getTrace || (!seconds && !facts.step))
    return llvm::Error::success();
  if (options.profile && seconds)
    printProfile(options.json ? llvm::errs() : llvm::outs(), all, *seconds);
  // Each is written, whatever becomes of the others.
  llvm::Error error = trace ? trace->finish() : llvm::Error::success();
  if (calls)
    error = llvm::joinErrors(std::move(error), writePage());
  if (seconds && !options.gemmShapes.empty())
    error = llvm::joinErrors(std::move(error), writeGemmShapes(options.gemmShapes, all));
  return error;
}
