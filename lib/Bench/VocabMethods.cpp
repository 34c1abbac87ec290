//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/VocabMethods.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "plateau/Pipelines/Schedule.h"
#include "plateau/Run/PlannedMemory.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;

StringRef bench::stringifyMethod(VocabMethod method) {
  switch (method) {
  case VocabMethod::Standard:
    return "standard";
  case VocabMethod::StandardInPlace:
    return "standard-inplace";
  case VocabMethod::VocabParallel:
    return "vocab-parallel";
  case VocabMethod::RingWeights:
    return "ring-weights";
  case VocabMethod::RingActivations:
    return "ring-activations";
  case VocabMethod::Tiles:
    return "tiles";
  case VocabMethod::Auto:
    return "auto";
  }
  llvm_unreachable("every method has a name");
}

std::string bench::getVocabText(const VocabOptions &options) {
  int64_t tokens = options.tokens, hidden = options.hidden, rows = options.getShardRows();
  StringRef element = options.isBF16 ? "bf16" : "f32";
  std::string x = llvm::formatv("tensor<{0}x{1}x{2}>", tokens, hidden, element).str();
  std::string table = llvm::formatv("tensor<{0}x{1}x{2}>", rows, hidden, element).str();
  std::string dx = llvm::formatv("tensor<{0}x{1}xf32>", tokens, hidden).str();
  std::string dtable = llvm::formatv("tensor<{0}x{1}xf32>", rows, hidden).str();
  std::string vector = llvm::formatv("tensor<{0}xf32>", tokens).str();
  std::string labels = llvm::formatv("tensor<{0}xi32>", tokens).str();
  std::string group = llvm::formatv("tensor<{0}xf32>", (tokens + rows) * hidden).str();
  std::string layout = llvm::formatv("<[<<\"x\", decay = false, mean = 0.0 : f64, deviation = 1.0 : f64>, offset = 0, "
                                     "shape = [{0}, {1}]>, <<\"table\", decay = false, mean = 0.0 : f64, deviation = "
                                     "1.0 : f64>, offset = {2}, shape = [{3}, {1}]>]>",
                                     tokens, hidden, tokens * hidden, rows)
                           .str();
  std::string vocabulary = llvm::formatv("vocabulary<size = {0}>", options.vocabulary).str();
  StringRef grid = options.ranks > 1 ? " on @vocab" : "";
  // What has no scope counts as forward: so the last ops have one, too.
  constexpr StringRef backward = "loc(fused<#moe.scope<backward, vocabulary>>[\"vocab_loss\"])";

  std::string text;
  llvm::raw_string_ostream os(text);
  if (options.ranks > 1)
    os << "shard.grid @vocab(shape = " << options.ranks << ")\n";
  os << "func.func @loss(%x: " << x << ", %table: " << table << ", %labels: " << labels << ", %g: " << vector
     << ", %grads: " << group << " {moe.donated = 1 : i64}) -> (" << vector << ", " << group << ") {\n";
  os << "  %losses, %lse = moe.vocab_loss %x, %table, %labels" << grid << " " << vocabulary << " : (" << x << ", "
     << table << ", " << labels << ") -> (" << vector << ", " << vector
     << ") loc(fused<#moe.scope<forward, vocabulary>>[\"vocab_loss\"])\n";
  os << "  %dx, %dtable = moe.vocab_loss_grad %g, %x, %table, %labels, %lse" << grid << " " << vocabulary << " : ("
     << vector << ", " << x << ", " << table << ", " << labels << ", " << vector << ") -> (" << dx << ", " << dtable
     << ") " << backward << "\n";
  os << "  %packed = moe.pack %dx, %dtable into %grads layout " << layout << " : " << dx << ", " << dtable << " into "
     << group << " " << backward << "\n";
  os << "  return %losses, %packed : " << vector << ", " << group << " " << backward << "\n}\n";
  return text;
}

static StringRef getMoveOption(VocabMethod method) {
  switch (method) {
  case VocabMethod::RingWeights:
    return "weights";
  case VocabMethod::RingActivations:
    return "activations";
  case VocabMethod::Tiles:
    return "none";
  case VocabMethod::Auto:
    return "auto";
  default:
    return "";
  }
}

static void addMethodPass(PassManager &manager, VocabMethod method, const VocabOptions &options) {
  if (StringRef move = getMoveOption(method); !move.empty()) {
    moe::MoERingVocabOptions ring;
    ring.move = move.str();
    ring.hop = options.hopsByTile ? "tile" : "shard";
    ring.tileBytes = options.tileBytes;
    ring.strict = true;
    manager.addNestedPass<func::FuncOp>(moe::createMoERingVocab(ring));
    return;
  }
  moe::MoEExpandVocabLossOptions expand;
  expand.form = method == VocabMethod::StandardInPlace ? "in-place"
                : method == VocabMethod::VocabParallel ? "vocab-parallel"
                                                       : "standard";
  manager.addPass(moe::createMoEExpandVocabLoss(expand));
}

/// What `auto` let go round, told by what moves: labels go with activations. On one rank nothing moves, and a ring has
/// one more product.
static StringRef findMove(func::FuncOp function, const ProgramCost &cost, const VocabOptions &options) {
  StringRef move = "none";
  function.walk([&](moe::ShiftOp shift) {
    if (getElementTypeOrSelf(shift.getType()).isInteger())
      move = "activations";
    else if (move == "none")
      move = "weights";
  });
  int64_t oneProduct = 2 * options.tokens * options.hidden * options.getShardRows() * options.ranks;
  return move == "none" && cost.flops > 3 * oneProduct ? "weights" : move;
}

/// Schedules a copy, and takes what it plans.
static LogicalResult planMemory(VocabPlan &plan) {
  OwningOpRef<ModuleOp> scheduled = plan.module->clone();
  PassManager manager(scheduled->getContext());
  buildSchedulePipeline(manager, ScheduleOptions());
  if (failed(manager.run(*scheduled)))
    return failure();
  for (auto program : scheduled->getOps<sched::ProgramOp>())
    for (const run::SpaceMemory &space : run::getPlannedMemory(program)) {
      plan.plannedBytes += space.planned.value_or(0);
      plan.lowerBoundBytes += space.lowerBound.value_or(0);
    }
  return success();
}

FailureOr<VocabPlan> bench::planVocab(ModuleOp module, VocabMethod method, const VocabOptions &options) {
  VocabPlan plan;
  plan.method = method;
  plan.module = module.clone();
  PassManager manager(module.getContext());
  addMethodPass(manager, method, options);
  if (failed(manager.run(*plan.module)))
    return failure();
  plan.function = *plan.module->getOps<func::FuncOp>().begin();
  FailureOr<ProgramCost> cost = getProgramCost(plan.function);
  if (failed(cost))
    return failure();
  plan.cost = *cost;
  StringRef move = getMoveOption(method);
  plan.move = (move == "auto" ? findMove(plan.function, plan.cost, options) : move).str();
  if (failed(planMemory(plan)))
    return failure();
  return plan;
}
