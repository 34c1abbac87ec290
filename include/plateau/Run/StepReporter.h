//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What a training run prints: a line a step, and a table of memory at its end.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_STEPREPORTER_H
#define PLATEAU_RUN_STEPREPORTER_H

#include "plateau/runtime.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <string>

namespace mlir::plateau::run {

/// How one step went.
struct StepReport {
  int64_t step = 0; ///< From 1.
  float loss = 0;
  double tokensPerSecond = 0;
  int64_t peakBytes = 0; ///< Of the device space, on the rank where it is highest.
  int64_t liveBytes = 0; ///< When the step has ended, of all ranks and spaces together.
  bool skipped = false;  ///< The gradient norm was not finite, so nothing was updated.
  float gradientNorm = 0;
};

/// Highest memory of a run, over steps and ranks, space by space.
class PeakTable {
public:
  void add(plr_space space, int rank, const plr_space_report &report);
  int64_t getPeakBytes(plr_space space) const { return spaces[space].peak_bytes; }
  /// Prints nothing for a space of which nothing was used.
  void print(llvm::raw_ostream &os) const;

private:
  std::array<plr_space_report, PLR_SPACES> spaces{};
  std::array<int, PLR_SPACES> ranks{};
};

/// The shortest decimal number that reads back as this float; "null" when it is not finite (JSON has no such numbers).
std::string toJSONNumber(float value);
std::string toJSONNumber(double value);

class StepReporter {
public:
  enum class Style { Plain, Terminal, JSON };

  StepReporter(llvm::raw_ostream &os, Style style, int64_t steps) : os(os), style(style), steps(steps) {}

  void report(const StepReport &report);
  /// A line of its own; under JSON nothing.
  void line(llvm::StringRef text);
  /// Fails when a report did not arrive.
  llvm::Error flush();
  /// Takes the progress bar off the screen.
  void clearBar();

private:
  void drawBar();

  llvm::raw_ostream &os;
  Style style;
  int64_t steps, done = 0;
  bool barShown = false;
};

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_STEPREPORTER_H
