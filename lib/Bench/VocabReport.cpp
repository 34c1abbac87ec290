//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/VocabReport.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;

/// What all logits of a rank's tokens take, in f32.
static int64_t getLogitsBytes(const VocabOptions &options) {
  return options.tokens * options.getShardRows() * options.ranks * int64_t(sizeof(float));
}

static std::string quote(StringRef text) { return text.empty() ? "null" : ("\"" + text + "\"").str(); }

static void printJSON(raw_ostream &os, const VocabPlan &plan, const VocabFigures *figures,
                      const VocabOptions &options) {
  bool isRing = !plan.move.empty();
  os << llvm::formatv("{{\"method\": {0}, \"move\": {1}, \"hop\": {2}, \"tile_bytes\": {3}, ",
                      quote(stringifyMethod(plan.method)), quote(plan.move),
                      quote(!isRing              ? ""
                            : options.hopsByTile ? "tile"
                                                 : "shard"),
                      isRing ? std::to_string(options.tileBytes) : "null");
  os << llvm::formatv("\"peak_bytes\": {0}, \"planned_peak_bytes\": {1}, \"lower_bound_bytes\": {2}, "
                      "\"logits_bytes\": {3}, \"bytes_sent_per_rank\": {4}, \"flops\": {5}, ",
                      figures ? figures->observedBytes : plan.plannedBytes, plan.plannedBytes, plan.lowerBoundBytes,
                      getLogitsBytes(options), plan.cost.sentBytes, plan.cost.flops);
  if (!figures) {
    os << "\"seconds_forward\": null, \"seconds_backward\": null}\n";
    return;
  }
  os << llvm::formatv("\"seconds_forward\": {0:f6}, \"seconds_backward\": {1:f6}", figures->median.forward,
                      figures->median.backward);
  if (figures->ratio)
    os << llvm::formatv(", \"time_ratio\": {0:f4}, \"time_ratio_least\": {1:f4}, \"time_ratio_most\": {2:f4}",
                        figures->ratio->median, figures->ratio->least, figures->ratio->most);
  os << "}\n";
}

static void printHeader(raw_ostream &os, const VocabOptions &options, bool ran) {
  os << llvm::formatv(
      "vocabulary loss and gradients: {0} rank{1} of {2} tokens, hidden {3}, vocabulary {4}, {5}; tiles "
      "of {6} bytes, hops by {7}\n",
      options.ranks, options.ranks == 1 ? "" : "s", options.tokens, options.hidden, options.vocabulary,
      options.isBF16 ? "bf16" : "f32", options.tileBytes, options.hopsByTile ? "tile" : "shard");
  os << llvm::formatv("of a rank; all its logits would take {0:f1} MiB\n", getLogitsBytes(options) / 1048576.0);
  os << llvm::formatv("{0,-17} {1,-11} {2,12} {3,12} {4,12} {5,12}", "method", "moves",
                      ran ? "peak MiB" : "planned MiB", "at least MiB", "sent MiB", "GFLOP");
  if (ran)
    os << llvm::formatv(" {0,10} {1,10}  {2}", "forward s", "backward s", "time / standard");
  os << "\n";
}

void bench::printVocab(raw_ostream &os, ArrayRef<VocabPlan> plans, ArrayRef<VocabFigures> figures,
                       const VocabOptions &options) {
  if (options.json) {
    for (auto [index, plan] : llvm::enumerate(plans))
      printJSON(os, plan, figures.empty() ? nullptr : &figures[index], options);
    return;
  }
  printHeader(os, options, !figures.empty());
  auto mib = [](int64_t bytes) { return bytes / 1048576.0; };
  for (auto [index, plan] : llvm::enumerate(plans)) {
    int64_t peak = figures.empty() ? plan.plannedBytes : figures[index].observedBytes;
    os << llvm::formatv("{0,-17} {1,-11} {2,12:f1} {3,12:f1} {4,12:f1} {5,12:f1}", stringifyMethod(plan.method),
                        plan.move.empty() ? "-" : plan.move, mib(peak), mib(plan.lowerBoundBytes),
                        mib(plan.cost.sentBytes), plan.cost.flops * 1e-9);
    if (!figures.empty()) {
      const VocabFigures &figure = figures[index];
      os << llvm::formatv(" {0,10:f6} {1,10:f6}", figure.median.forward, figure.median.backward);
      if (figure.ratio)
        os << llvm::formatv("  {0:f3} ({1:f3} ... {2:f3})", figure.ratio->median, figure.ratio->least,
                            figure.ratio->most);
    }
    os << "\n";
  }
  if (!figures.empty())
    os << "seconds are medians of " << options.repeat << " runs in turn; ratios those of runs beside each other\n";
}
