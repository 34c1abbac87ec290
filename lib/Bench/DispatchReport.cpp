//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/DispatchReport.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;

static std::string printOptional(std::optional<int64_t> value, StringRef none) {
  return value ? std::to_string(*value) : none.str();
}

static void printJSON(raw_ostream &os, DispatchPlan &plan, const DispatchFigures &figures,
                      const DispatchOptions &options) {
  const RoutingFigures &routing = figures.routing;
  moe::PlanType type = plan.getType();
  bool ran = !options.planOnly;
  os << llvm::formatv("{{\"profile\": \"{0}\", \"method\": \"{1}\", \"peak_bytes\": {2}, \"seconds\": {3}, ",
                      options.profile.getName(), stringifyMethod(plan.method),
                      ran ? figures.observedBytes : plan.plannedBytes,
                      ran ? llvm::formatv("{0:f6}", figures.seconds).str() : "null");
  os << llvm::formatv("\"expert_moves\": {0}, \"load_max_over_mean\": {1:f6}, \"send_ratio\": {2:f6}, "
                      "\"received_over_bound\": {3:f6}, \"iterations\": {4}, \"host_fences\": {5}, ",
                      routing.expertMoves, routing.loadRatio, routing.sendRatio, routing.receivedOverBound,
                      printOptional(routing.iterations, "null"), ran ? figures.hostFences : plan.hostFences);
  os << llvm::formatv("\"planned_peak_bytes\": {0}, \"lower_bound_bytes\": {1}, \"working_set_bytes\": {2}, ",
                      plan.plannedBytes, ran ? figures.lowerBoundBytes : plan.lowerBoundBytes, plan.workingSetBytes);
  os << llvm::formatv("\"plain_load_max_over_mean\": {0:f6}, \"helper_slots\": {1}, \"chunks\": {2}, "
                      "\"most_iterations\": {3}, \"mean_rows\": {4}, \"most_rows\": {5}, \"capacity_rows\": {6}",
                      routing.plainLoadRatio, type.getHelperSlots(), type.getChunks(), type.getIterations(),
                      options.topK * options.getChunkTokens(type.getChunks()), routing.mostRows,
                      type.getCapacity() ? std::to_string(type.getCapacity()) : "null");
  if (figures.ratio)
    os << llvm::formatv(", \"time_ratio\": {0:f4}, \"time_ratio_least\": {1:f4}, \"time_ratio_most\": {2:f4}",
                        figures.ratio->median, figures.ratio->least, figures.ratio->most);
  os << "}\n";
}

static void printHeader(raw_ostream &os, const DispatchOptions &options) {
  os << llvm::formatv("experts of a layer, {0}: {1} rank{2} of {3} tokens, hidden {4}, {5} experts of {6}, {7} for a "
                      "token, {8}, profile {9}\n",
                      options.forwardOnly ? "forward" : "forward and backward", options.ranks,
                      options.ranks == 1 ? "" : "s", options.tokens, options.hidden, options.experts,
                      options.expertHidden, options.topK, options.isBF16 ? "bf16" : "f32", options.profile.getName());
  os << llvm::formatv(
      "pipelined-llep: {0} chunks of {1} tokens{2}, {3} rows on average and at most {4} in an iteration\n",
      options.chunks, options.getChunkTokens(options.chunks), options.isContiguous ? " in a row" : "",
      options.getMeanRows(), options.getCapacityRows());
  os << llvm::formatv("{0,-15} {1,12} {2,12} {3,6} {4,9} {5,9} {6,9} {7,11} {8,7}", "method",
                      options.planOnly ? "planned MiB" : "peak MiB", "at least MiB", "moves", "max/mean", "send",
                      "received", "iterations", "fences");
  if (!options.planOnly)
    os << llvm::formatv(" {0,10}  {1}", "seconds", "time / llep");
  os << "\n";
}

void bench::printDispatch(raw_ostream &os, std::vector<DispatchPlan> &plans, ArrayRef<DispatchFigures> figures,
                          const DispatchOptions &options) {
  if (options.json) {
    for (auto [plan, figure] : llvm::zip_equal(plans, figures))
      printJSON(os, plan, figure, options);
    return;
  }
  printHeader(os, options);
  auto mib = [](int64_t bytes) { return bytes / 1048576.0; };
  for (auto [plan, figure] : llvm::zip_equal(plans, figures)) {
    bool ran = !options.planOnly;
    os << llvm::formatv("{0,-15} {1,12:f1} {2,12:f1} {3,6} {4,9:f3} {5,9:f3} {6,9:f4} {7,11} {8,7}",
                        stringifyMethod(plan.method), mib(ran ? figure.observedBytes : plan.plannedBytes),
                        mib(ran ? figure.lowerBoundBytes : plan.lowerBoundBytes), figure.routing.expertMoves,
                        figure.routing.loadRatio, figure.routing.sendRatio, figure.routing.receivedOverBound,
                        printOptional(figure.routing.iterations, "-"), ran ? figure.hostFences : plan.hostFences);
    if (ran)
      os << llvm::formatv(" {0,10:f6}", figure.seconds);
    if (figure.ratio)
      os << llvm::formatv("  {0:f3} ({1:f3} ... {2:f3})", figure.ratio->median, figure.ratio->least,
                          figure.ratio->most);
    os << "\n";
  }
  os << "send: most rows from a source to one rank over the mean, in a chunk; received: most rows of a chunk over "
        "ranks "
        "· k · its tokens\n";
  if (!options.planOnly)
    os << "seconds are medians of " << options.repeat << " runs in turn; ratios those of runs beside each other\n";
}
