//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/DispatchMethods.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "plateau/Pipelines/Schedule.h"
#include "plateau/Run/PlannedMemory.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;

StringRef bench::stringifyMethod(DispatchMethod method) {
  switch (method) {
  case DispatchMethod::ExpertParallel:
    return "ep";
  case DispatchMethod::LeastLoaded:
    return "llep";
  case DispatchMethod::Pipelined:
    return "pipelined-llep";
  }
  llvm_unreachable("every method has a name");
}

static void addMethodPass(PassManager &manager, DispatchMethod method, const DispatchOptions &options) {
  if (method == DispatchMethod::ExpertParallel)
    return;
  moe::MoEPipelineDispatchOptions pipeline;
  // There are no more experts to help with than those of the others.
  int64_t helperSlots = std::min(options.helperSlots, options.experts - options.getLocalExperts());
  pipeline.balance = helperSlots > 0 ? "least-loaded" : "none";
  pipeline.strict = true;
  pipeline.alpha = options.alpha;
  pipeline.minRows = options.minRows;
  pipeline.imbalanceThreshold = options.threshold;
  pipeline.helperSlots = helperSlots;
  pipeline.maxChunks = 1;
  if (method == DispatchMethod::Pipelined) {
    pipeline.maxChunks = options.chunks;
    pipeline.capacityRows = options.getCapacityRows();
    pipeline.inFlight = options.inFlight;
  }
  manager.addNestedPass<func::FuncOp>(moe::createMoEPipelineDispatch(pipeline));
}

/// Schedules a copy, and takes what it plans.
static LogicalResult planMemory(DispatchPlan &plan) {
  OwningOpRef<ModuleOp> scheduled = plan.module->clone();
  PassManager manager(scheduled->getContext());
  buildSchedulePipeline(manager, ScheduleOptions());
  if (failed(manager.run(*scheduled)))
    return failure();
  for (auto program : scheduled->getOps<sched::ProgramOp>()) {
    for (const run::SpaceMemory &space : run::getPlannedMemory(program)) {
      plan.plannedBytes += space.planned.value_or(0);
      plan.lowerBoundBytes += space.lowerBound.value_or(0);
      plan.workingSetBytes += space.arena.value_or(0);
    }
    program.walk([&](sched::FenceOp) { ++plan.hostFences; });
  }
  return success();
}

FailureOr<DispatchPlan> bench::planDispatch(ModuleOp module, DispatchMethod method, const DispatchOptions &options) {
  DispatchPlan plan;
  plan.method = method;
  plan.module = module.clone();
  PassManager manager(module.getContext());
  addMethodPass(manager, method, options);
  if (failed(manager.run(*plan.module)))
    return failure();
  plan.function = *plan.module->getOps<func::FuncOp>().begin();
  plan.function.walk([&](moe::PlanOp op) { plan.routing = op; });
  if (failed(planMemory(plan)))
    return failure();
  return plan;
}
