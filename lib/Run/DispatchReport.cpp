//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/DispatchReport.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Run/StepReporter.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

std::optional<int64_t> run::getDispatchRanks(func::FuncOp function) {
  std::optional<int64_t> ranks;
  function.walk([&](moe::PlanOp op) {
    moe::PlanType type = op.getPlan().getType();
    if (type.getIterations() > 1 || type.getCapacity() > 0 || type.getHelperSlots() > 0)
      ranks = type.getRanks();
  });
  return ranks;
}

DispatchReport::Plan DispatchReport::makePlan(const plr_plan_record &record) const {
  Plan plan;
  plan.layer = record.tag->layer;
  plan.iterations = record.iterations;
  plan.chunks = record.chunks;
  plan.capacity = record.capacity;
  plan.received = record.max_received;
  plan.moves = record.moves;
  if (record.total_load > 0) { // Without a row there is no mean.
    double mean = double(record.total_load) / ranks;
    plan.load = record.max_load / mean;
    plan.homeLoad = record.native_max_load / mean;
  }
  return plan;
}

void DispatchReport::takeWorst(Plan &worst, const Plan &plan) {
  worst.layer = plan.layer;
  for (int64_t Plan::*number : {&Plan::iterations, &Plan::chunks, &Plan::capacity, &Plan::received, &Plan::moves})
    worst.*number = std::max(worst.*number, plan.*number);
  for (double Plan::*ratio : {&Plan::load, &Plan::homeLoad})
    worst.*ratio = std::max(worst.*ratio, plan.*ratio);
}

void DispatchReport::addStep(llvm::ArrayRef<std::vector<plr_plan_record>> ofRanks) {
  last.clear();
  for (const std::vector<plr_plan_record> &records : ofRanks)
    for (auto [index, record] : llvm::enumerate(records)) {
      if (!record.tag) // The runtime keeps no more of them.
        break;
      Plan plan = makePlan(record);
      fewestIterations = std::min(fewestIterations, plan.iterations);
      takeWorst(worst, plan);
      last.resize(std::max(last.size(), index + 1));
      takeWorst(last[index], plan);
    }
}

void DispatchReport::print(llvm::raw_ostream &os) const {
  if (isEmpty())
    return;
  os << "experts, per layer: ";
  if (fewestIterations < worst.iterations)
    os << fewestIterations << " ... ";
  os << llvm::formatv("{0} iteration{1} of {2} chunk{3}, at most {4}", worst.iterations,
                      worst.iterations == 1 ? "" : "s", worst.chunks, worst.chunks == 1 ? "" : "s", worst.received);
  if (worst.capacity > 0)
    os << " of " << worst.capacity;
  os << llvm::formatv(" rows at a rank, {0} move{1}, fullest rank {2:f2} x the mean ({3:f2} at home)\n", worst.moves,
                      worst.moves == 1 ? "" : "s", worst.load, worst.homeLoad);
}

void DispatchReport::printJSON(llvm::raw_ostream &os) const {
  if (isEmpty())
    return;
  os << "{\"dispatch\": [";
  llvm::interleaveComma(last, os, [&](const Plan &plan) {
    os << llvm::formatv("{{\"layer\": {0}, \"iterations\": {1}, \"chunks\": {2}, \"capacity_rows\": {3}, "
                        "\"most_received\": {4}, \"moves\": {5}, \"load_max_over_mean\": {6}, "
                        "\"home_load_max_over_mean\": {7}}",
                        plan.layer, plan.iterations, plan.chunks, plan.capacity, plan.received, plan.moves,
                        toJSONNumber(plan.load), toJSONNumber(plan.homeLoad));
  });
  os << "]}\n";
}
