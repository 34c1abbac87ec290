//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/DispatchRouting.h"
#include "Numbers.h"
#include "mlir/Parser/Parser.h"
#include "plateau/Bench/DispatchData.h"
#include "plateau/Bench/DispatchText.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/MemoryLimits.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;
using run::makeError;

/// A rank may wait long for one that has no core.
static constexpr double collectiveTimeout = 3600;

/// What a chunk could bring one rank at most.
static double getBound(int64_t chunks, const DispatchOptions &options) {
  return double(options.ranks) * options.topK * options.getChunkTokens(chunks);
}

llvm::Expected<RoutingFigures> bench::getRoutingFigures(CompiledExecutor &executor, DispatchPlan &plan,
                                                        const DispatchOptions &options) {
  RoutingFigures figures;
  for (int rank = 0; rank < executor.getRanks(); ++rank) {
    std::vector<plr_plan_record> records = executor.getPlanRecords(rank);
    if (records.empty())
      return makeError("rank {0} has made no plan of routes", rank);
    const plr_plan_record &record = records.back();
    double mean = double(record.total_load) / options.ranks;
    figures.expertMoves = record.moves;
    figures.loadRatio = mean > 0 ? record.max_load / mean : 0;
    figures.plainLoadRatio = mean > 0 ? record.native_max_load / mean : 0;
    figures.sendRatio = std::max(figures.sendRatio, record.send_ratio);
    figures.receivedOverBound = record.max_chunk_received / getBound(plan.getType().getChunks(), options);
    figures.mostRows = record.max_received;
    figures.iterations = record.iterations;
  }
  return figures;
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// As the op prints it.
static std::string printBalance(moe::PlanOp op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto balance = op.getBalanceAttr())
    os << Attribute(balance);
  return text;
}

/// Fills what getDestinationsText asks for beside ids.
static llvm::Error writeOwners(CompiledExecutor &executor, int rank) {
  for (unsigned index = 1; index < executor.getFunction().getNumArguments(); ++index) {
    std::vector<float> numbers(executor.getArgumentBytes(index) / sizeof(float), index == 1 ? 1 : rank);
    if (auto error = executor.writeArgument(rank, index, toBytes(numbers)))
      return error;
  }
  return llvm::Error::success();
}

/// Counts rows by chunks of consecutive tokens.
static llvm::Error countContiguous(CompiledExecutor &executor, int64_t chunks, const DispatchOptions &options,
                                   RoutingFigures &figures) {
  int64_t ranks = options.ranks, chunkSlots = options.getChunkTokens(chunks) * options.topK;
  std::vector<int64_t> received(chunks * ranks);
  figures.sendRatio = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float> destinations(executor.getResultBytes(0) / sizeof(float));
    if (auto error = executor.readResult(rank, 0, toMutableBytes(destinations)))
      return error;
    std::vector<int64_t> sent(chunks * ranks);
    for (auto [slot, destination] : llvm::enumerate(destinations))
      ++sent[slot / chunkSlots * ranks + int64_t(destination)];
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      ArrayRef<int64_t> toRanks(&sent[chunk * ranks], ranks);
      int64_t most = *llvm::max_element(toRanks), all = llvm::sum_of(toRanks);
      if (all > 0)
        figures.sendRatio = std::max(figures.sendRatio, double(most) * ranks / all);
    }
    for (auto [sum, rows] : llvm::zip_equal(received, sent))
      sum += rows;
  }
  figures.mostRows = *llvm::max_element(received);
  figures.receivedOverBound = figures.mostRows / getBound(chunks, options);
  figures.iterations = std::nullopt;
  return llvm::Error::success();
}

llvm::Expected<RoutingFigures> bench::runRouting(DispatchPlan &plan, const DispatchOptions &options) {
  moe::PlanType type = plan.getType();
  bool counts = options.isContiguous && type.getChunks() > 1;
  if (counts) // All tokens at once: who computes a row does not depend on chunks.
    type = moe::PlanType::get(type.getContext(), type.getExperts(), type.getRanks(), type.getTokens(), type.getTopK(),
                              type.getHelperSlots(), /*chunks=*/1, /*leaves=*/1, /*capacity=*/0);
  std::string balance = printBalance(plan.routing);
  std::string text = counts ? getDestinationsText(options, print(type), balance, type.getHelperSlots())
                            : getPlanText(options, print(type), balance, type.getIterations() > 1);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, plan.module->getContext());
  if (!module)
    return makeError("the plan of routes cannot be made alone");

  auto memory = run::readSystemMemory();
  if (!memory)
    return memory.takeError();
  CompiledOptions compiled;
  compiled.ranks = options.ranks;
  compiled.deviceBytes = compiled.hostBytes = memory->getUsableBytes() / options.ranks;
  compiled.collectiveTimeout = collectiveTimeout;
  compiled.dynamic = true;
  auto executor = createCompiledExecutor(*module->getOps<func::FuncOp>().begin(), compiled);
  if (!executor)
    return executor.takeError();
  std::vector<int32_t> ids = getProfileIds(options);
  for (int rank = 0; rank < options.ranks; ++rank) {
    if (auto error = (*executor)->writeArgument(rank, 0, toBytes(ids)))
      return error;
    if (auto error = counts ? writeOwners(**executor, rank) : llvm::Error::success())
      return error;
  }
  if (auto error = (*executor)->run())
    return error;
  auto figures = getRoutingFigures(**executor, plan, options);
  if (!figures || !counts)
    return figures;
  if (auto error = countContiguous(**executor, plan.getType().getChunks(), options, *figures))
    return error;
  return figures;
}
