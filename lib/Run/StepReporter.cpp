//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/StepReporter.h"
#include "plateau/Interfaces/Component.h"
#include "plateau/Run/Files.h"
#include "plateau/Run/MemoryLimits.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <charconv>
#include <cmath>

using namespace mlir::plateau;
using namespace mlir::plateau::run;

static constexpr llvm::StringRef spaceNames[PLR_SPACES] = {"device", "host"};

void PeakTable::add(plr_space space, int rank, const plr_space_report &report) {
  plr_space_report &highest = spaces[space];
  auto keep = [](int64_t &kept, int64_t value) { kept = std::max(kept, value); };
  if (report.peak_bytes > highest.peak_bytes) {
    highest.peak_bytes = report.peak_bytes;
    std::copy_n(report.at_peak_bytes, PLR_COMPONENTS, highest.at_peak_bytes);
    ranks[space] = rank;
  }
  keep(highest.limit_bytes, report.limit_bytes);
  keep(highest.extent_bytes, report.extent_bytes);
  for (int i = 0; i < PLR_COMPONENTS; ++i)
    keep(highest.component_peak_bytes[i], report.component_peak_bytes[i]);
  for (int i = 0; i < PLR_PHASES; ++i)
    keep(highest.phase_peak_bytes[i], report.phase_peak_bytes[i]);
}

void PeakTable::print(llvm::raw_ostream &os) const {
  auto mib = [](int64_t bytes) { return llvm::format("%12.1f", bytes / 1048576.0); };
  for (int space = 0; space < PLR_SPACES; ++space) {
    const plr_space_report &report = spaces[space];
    if (report.peak_bytes == 0)
      continue;
    os << spaceNames[space] << " memory, MiB: peak " << llvm::format("%.1f", report.peak_bytes / 1048576.0)
       << " on rank " << ranks[space] << ", extent " << llvm::format("%.1f", report.extent_bytes / 1048576.0)
       << ", limit " << llvm::format("%.1f", report.limit_bytes / 1048576.0) << "\n";
    os << "  component        at peak    own peak\n";
    for (int i = 0; i < PLR_COMPONENTS; ++i)
      if (report.component_peak_bytes[i] != 0)
        os << "  " << llvm::left_justify(stringifyComponent(static_cast<Component>(i)), 12)
           << mib(report.at_peak_bytes[i]) << mib(report.component_peak_bytes[i]) << "\n";
    os << "  phase                       own peak\n";
    for (int i = 0; i < PLR_PHASES; ++i)
      if (report.phase_peak_bytes[i] != 0)
        os << "  " << llvm::left_justify(stringifyPhase(static_cast<Phase>(i)), 24) << mib(report.phase_peak_bytes[i])
           << "\n";
  }
}

template <typename Float>
static std::string toShortest(Float value) {
  if (!std::isfinite(value))
    return "null";
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

std::string run::toJSONNumber(float value) { return toShortest(value); }
std::string run::toJSONNumber(double value) { return toShortest(value); }

void StepReporter::report(const StepReport &report) {
  ++done;
  if (style == Style::JSON) {
    os << llvm::formatv("{{\"step\": {0}, \"loss\": {1}, \"tokens_per_second\": {2}, \"peak_bytes\": {3}, "
                        "\"live_bytes\": {4}{5}}\n",
                        report.step, toJSONNumber(report.loss), toJSONNumber(report.tokensPerSecond), report.peakBytes,
                        report.liveBytes, report.skipped ? ", \"skipped\": true" : "");
    os.flush();
    return;
  }
  std::string text =
      llvm::formatv("step {0} loss {1:f6} {2:f0} tokens/s", report.step, report.loss, report.tokensPerSecond).str();
  if (report.peakBytes > 0)
    text += " peak " + formatMiB(report.peakBytes);
  line(text);
  if (report.skipped)
    line(llvm::formatv("step {0} update skipped: the gradient norm is {1}", report.step,
                       std::isnan(report.gradientNorm) ? "nan"
                       : report.gradientNorm > 0       ? "inf"
                                                       : "-inf")
             .str());
}

void StepReporter::line(llvm::StringRef text) {
  if (style == Style::JSON)
    return;
  clearBar();
  os << text << "\n";
  if (style == Style::Terminal)
    drawBar();
  os.flush();
}

llvm::Error StepReporter::flush() { return run::flush(os); }

void StepReporter::clearBar() {
  if (barShown)
    os << "\r\033[K";
  barShown = false;
}

void StepReporter::drawBar() {
  constexpr int64_t width = 40;
  if (done >= steps)
    return;
  int64_t filled = steps > 0 ? done * width / steps : 0;
  os << "[" << std::string(filled, '#') << std::string(width - filled, '.') << "] " << done << "/" << steps;
  barShown = true;
}
