//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A trace of Chrome's format (chrome://tracing, Perfetto), written while the run goes on.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_TRACE_H
#define PLATEAU_RUN_TRACE_H

#include "plateau/Run/Profile.h"
#include "plateau/Run/StepCalls.h"
#include <string>

namespace mlir::plateau::run {

/// One process a rank, one thread a lane, and one for the steps. The file is an array of events, which readers take
/// without its end too, so a run that is killed leaves the steps that it has finished.
///
/// With the calls of a planned program the trace has the live bytes of each component over time, and an arrow from each
/// copy and collective to the calls that read what it wrote.
class TraceWriter {
public:
  /// `calls` may be null.
  TraceWriter(std::string path, const StepCalls *calls) : path(std::move(path)), calls(calls) {}
  ~TraceWriter();

  /// Appends a step, and hands all of it to the system. Spans that are not those of the program are written without
  /// memory and arrows, and then `why` says why.
  llvm::Error addStep(int64_t step, const RankSpans &spans, std::string &why);
  /// Ends the array. A trace without steps is made as well.
  llvm::Error finish();

private:
  llvm::Error open(size_t ranks);
  llvm::Error write(llvm::StringRef events);

  std::string path;
  const StepCalls *calls;
  std::unique_ptr<llvm::raw_fd_ostream> os;
  bool isFinished = false;
  int64_t arrows = 0; ///< Each has a number of its own.
};

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_TRACE_H
