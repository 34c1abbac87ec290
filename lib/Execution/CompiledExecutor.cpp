//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Execution/CompiledExecutor.h"
#include "RuntimeSymbols.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Pipelines/LowerDynamic.h"
#include "plateau/Pipelines/Schedule.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <cstring>
#include <system_error>
#include <thread>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
struct ContextDeleter {
  void operator()(plr_context *context) const { plr_context_destroy(context); }
};
using Context = std::unique_ptr<plr_context, ContextDeleter>;
struct TransportDeleter {
  void operator()(plr_transport *transport) const { plr_transport_destroy(transport); }
};
using Transport = std::unique_ptr<plr_transport, TransportDeleter>;

/// What an argument or result counts under.
plr_component getComponent(std::optional<Role> role) {
  if (!role)
    return PLR_EXTERNAL;
  switch (*role) {
  case Role::Tokens:
    return PLR_EMBEDDING;
  case Role::Labels:
  case Role::LabelCount:
  case Role::Loss:
    return PLR_VOCABULARY;
  case Role::Positions:
  case Role::Starts:
    return PLR_ATTENTION;
  case Role::TokenCount:
  case Role::ExpertCounts:
    return PLR_ROUTING;
  case Role::Parameters:
    return PLR_PARAMETERS;
  case Role::Gradients:
    return PLR_GRADIENTS;
  case Role::LearningRate:
  case Role::Step:
  case Role::FirstMoment:
  case Role::SecondMoment:
  case Role::Master:
  case Role::GradientNorm:
    return PLR_OPTIMIZER;
  }
  return PLR_EXTERNAL;
}

class Executor : public CompiledExecutor {
public:
  Executor(func::FuncOp function, const CompiledOptions &options)
      : CompiledExecutor(function, options.ranks), options(options) {}

  llvm::Error compile();
  llvm::Error createContexts();

  llvm::Error writeArgument(int rank, unsigned index, ArrayRef<char> bytes) override {
    if (static_cast<int64_t>(bytes.size()) != getArgumentBytes(index))
      return wrongSize("argument", index, bytes.size(), getArgumentBytes(index));
    llvm::copy(bytes, static_cast<char *>(buffers[rank][index]));
    return llvm::Error::success();
  }

  llvm::Error readArgument(int rank, unsigned index, MutableArrayRef<char> bytes) override {
    if (static_cast<int64_t>(bytes.size()) != getArgumentBytes(index))
      return wrongSize("argument", index, bytes.size(), getArgumentBytes(index));
    std::copy_n(static_cast<const char *>(buffers[rank][index]), bytes.size(), bytes.data());
    return llvm::Error::success();
  }

  llvm::Error readResult(int rank, unsigned index, MutableArrayRef<char> bytes) override {
    if (static_cast<int64_t>(bytes.size()) != getResultBytes(index))
      return wrongSize("result", index, bytes.size(), getResultBytes(index));
    std::copy_n(static_cast<const char *>(buffers[rank][function.getNumArguments() + index]), bytes.size(),
                bytes.data());
    return llvm::Error::success();
  }

  llvm::Error run() override;

  plr_space_report getMemoryReport(int rank, plr_space space) override {
    plr_space_report report = {};
    plr_memory_report(contexts[rank].get(), space, &report);
    return report;
  }

  void resetPeak() override {
    for (Context &context : contexts)
      plr_reset_peak(context.get());
  }

  sched::ProgramOp getProgram() override { return program; }

  void measure(int seed) override {
    for (Context &context : contexts)
      plr_measure(context.get(), seed);
  }

  int64_t getObservedBytes(int rank, plr_space space) override {
    return plr_observed_bytes(contexts[rank].get(), space);
  }

  int64_t getFenceCount(int rank) override { return plr_fence_count(contexts[rank].get()); }

  void interrupt() override {
    for (Context &context : contexts)
      plr_interrupt(context.get());
  }

  std::vector<plr_span> getTrace(int rank) override {
    std::vector<plr_span> spans(plr_trace(contexts[rank].get(), 0, nullptr, 0));
    plr_trace(contexts[rank].get(), 0, spans.data(), spans.size());
    return spans;
  }

  void clearTrace() override {
    for (Context &context : contexts)
      plr_trace_clear(context.get());
  }

  std::vector<plr_plan_record> getPlanRecords(int rank) override {
    std::vector<plr_plan_record> records(plr_plan_records(contexts[rank].get(), 0, nullptr, 0));
    plr_plan_records(contexts[rank].get(), 0, records.data(), records.size());
    return records;
  }

  llvm::Error restart(uint64_t scheduleSeed) override {
    buffers.clear();
    contexts.clear();
    transport.reset();
    options.scheduleSeed = scheduleSeed;
    return createContexts();
  }

private:
  static llvm::Error wrongSize(const char *what, unsigned index, size_t given, int64_t wanted) {
    return llvm::createStringError("%s #%u has %lld bytes, not %zu", what, index, static_cast<long long>(wanted),
                                   given);
  }

  LogicalResult lower(ModuleOp module);
  llvm::Error prepare();
  llvm::Error fail(int rank);
  /// Memory for an argument or result, zeroed.
  void createTags();
  llvm::Expected<void *> allocate(int rank, int64_t bytes, const plr_tag &tag);

  CompiledOptions options;
  OwningOpRef<ModuleOp> schedule; ///< The module that `program` stands in.
  sched::ProgramOp program;
  std::unique_ptr<ExecutionEngine> engine;
  void (*entry)(plr_context *, void **) = nullptr;
  /// One for each argument, then for each result: "argument first_moment", or "argument #3" of one without a role.
  std::vector<std::string> names;
  std::vector<plr_tag> tags;
  Transport transport;           ///< Null for one rank.
  std::vector<Context> contexts; ///< Released before the tags and the transport, last.
  std::vector<std::vector<void *>> buffers;
};
} // namespace

llvm::Error Executor::compile() {
  static const bool isInitialized = !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
  if (!isInitialized)
    return llvm::createStringError("this build of LLVM has no code generator for this machine");
  MLIRContext *context = function.getContext();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);

  // Only the one function: others of the module may be anything.
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  func::FuncOp copy = function.clone();
  copy.setPublic();
  module->push_back(copy);
  for (auto grid : function->getParentOfType<ModuleOp>().getOps<shard::GridOp>())
    module->push_back(grid.clone());
  if (failed(lower(*module)))
    return llvm::createStringError("function '@%s' cannot be lowered", function.getName().str().c_str());

  // The function may have any name, also none and that of a function of the process.
  constexpr StringRef entryName = "plateau_entry";
  SymbolTable::setSymbolName(module->lookupSymbol(function.getNameAttr()), entryName);

  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();
  auto optimize = makeOptimizingTransformer(/*optLevel=*/2, /*sizeLevel=*/0, machine->get());
  ExecutionEngineOptions engineOptions;
  engineOptions.transformer = optimize;
  engineOptions.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Default;
  engineOptions.enableGDBNotificationListener = false;
  engineOptions.enablePerfNotificationListener = false;
  auto made = ExecutionEngine::create(*module, engineOptions);
  if (!made)
    return made.takeError();
  engine = std::move(*made);
  registerRuntimeSymbols(*engine);
  auto address = engine->lookup(entryName);
  if (!address)
    return address.takeError();
  entry = reinterpret_cast<void (*)(plr_context *, void **)>(*address);
  return llvm::Error::success();
}

/// To the LLVM dialect alone; keeps the program on the way.
LogicalResult Executor::lower(ModuleOp module) {
  MLIRContext *context = module.getContext();
  if (options.dynamic) {
    PassManager manager(context);
    buildLowerDynamicPipeline(manager);
    return manager.run(module);
  }
  ScheduleOptions scheduling;
  scheduling.referenceGemm = options.gemm == PLR_GEMM_REFERENCE;
  scheduling.hbmBytes = options.deviceBytes;
  scheduling.hostBytes = options.hostBytes;
  scheduling.inFlight = options.inFlight;
  PassManager planner(context);
  buildSchedulePipeline(planner, scheduling);
  if (failed(planner.run(module)))
    return failure();
  schedule = module.clone();
  program = *schedule->getOps<sched::ProgramOp>().begin();
  PassManager manager(context);
  buildLowerSchedulePipeline(manager);
  return manager.run(module);
}

llvm::Error Executor::fail(int rank) {
  const char *message = "";
  plr_context_error(contexts[rank].get(), &message);
  return llvm::createStringError("%s", message);
}

void Executor::createTags() {
  names.clear();
  tags.clear();
  unsigned arguments = function.getNumArguments(), all = arguments + function.getNumResults();
  names.reserve(all); // The tags point into the strings.
  for (unsigned i = 0; i < all; ++i) {
    bool isArgument = i < arguments;
    unsigned index = isArgument ? i : i - arguments;
    auto role = isArgument ? function.getArgAttrOfType<RoleAttr>(index, "moe.role")
                           : function.getResultAttrOfType<RoleAttr>(index, "moe.role");
    auto buffer = isArgument ? function.getArgAttrOfType<StringAttr>(index, "moe.buffer") : StringAttr();
    std::string name = role     ? stringifyRole(role.getValue()).str()
                       : buffer ? buffer.str()
                                : "#" + std::to_string(index);
    names.push_back((isArgument ? "argument " : "result ") + name);
    plr_component component =
        buffer ? PLR_PARAMETERS : getComponent(role ? std::optional(role.getValue()) : std::nullopt);
    tags.push_back({names.back().c_str(), -1, component, PLR_FORWARD});
  }
}

llvm::Expected<void *> Executor::allocate(int rank, int64_t bytes, const plr_tag &tag) {
  void *memory = plr_allocate(contexts[rank].get(), PLR_DEVICE, bytes, &tag);
  if (!memory)
    return fail(rank);
  std::memset(memory, 0, bytes);
  return memory;
}

llvm::Error Executor::createContexts() {
  createTags();
  if (ranks > 1) {
    plr_transport *made = nullptr;
    char message[512] = "";
    if (plr_transport_create_threads(ranks, options.collectiveTimeout, &made, message, sizeof(message)) != PLR_OK)
      return llvm::createStringError("%s", message);
    transport.reset(made);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    plr_config config = {};
    config.abi_version = PLR_ABI_VERSION;
    config.rank = rank;
    config.ranks = ranks;
    config.device_bytes = options.deviceBytes;
    config.host_bytes = options.hostBytes;
    config.gemm = options.gemm;
    config.poison = options.poison;
    config.trace = options.trace;
    config.strict = options.strict;
    config.transport = transport.get();
    config.schedule_seed = options.scheduleSeed;
    plr_context *context = nullptr;
    char message[512] = "";
    if (plr_context_create(&config, &context, message, sizeof(message)) != PLR_OK)
      return llvm::createStringError("%s", message);
    contexts.emplace_back(context);

    std::vector<void *> &pointers = buffers.emplace_back();
    std::vector<void *> donated(function.getNumResults());
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      auto memory = allocate(rank, getArgumentBytes(index), tags[index]);
      if (!memory)
        return memory.takeError();
      pointers.push_back(*memory);
      if (auto result = function.getArgAttrOfType<IntegerAttr>(index, "moe.donated"))
        donated[result.getInt()] = *memory;
    }
    for (unsigned index = 0; index < function.getNumResults(); ++index) {
      if (donated[index]) {
        pointers.push_back(donated[index]);
        continue;
      }
      auto memory = allocate(rank, getResultBytes(index), tags[function.getNumArguments() + index]);
      if (!memory)
        return memory.takeError();
      pointers.push_back(*memory);
    }
  }
  return program ? prepare() : llvm::Error::success();
}

/// Takes the arenas, and makes what the library makes for each shape: nothing is left to be allocated in a step.
llvm::Error Executor::prepare() {
  for (int rank = 0; rank < ranks; ++rank) {
    plr_context *context = contexts[rank].get();
    plr_prepare(context, 1);
    entry(context, buffers[rank].data());
    plr_prepare(context, 0);
    if (plr_context_error(context, nullptr) != PLR_OK)
      return fail(rank);
  }
  return llvm::Error::success();
}

llvm::Error Executor::run() {
  auto runRank = [&](int rank) {
    entry(contexts[rank].get(), buffers[rank].data());
    plr_synchronize(contexts[rank].get());
  };
  std::vector<std::thread> others;
  std::string refusal;
  try {
    for (int rank = 1; rank < ranks; ++rank)
      others.emplace_back(runRank, rank);
  } catch (const std::system_error &error) {
    refusal = error.what();
    interrupt(); // What has started ends.
  }
  if (refusal.empty())
    runRank(0);
  for (std::thread &thread : others)
    thread.join();
  if (!refusal.empty())
    return llvm::createStringError("%d ranks need as many threads, and this machine gives %zu: %s", ranks,
                                   others.size() + 1, refusal.c_str());
  for (int rank = 0; rank < ranks; ++rank)
    if (plr_context_error(contexts[rank].get(), nullptr) != PLR_OK)
      return fail(rank);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<CompiledExecutor>>
mlir::plateau::createCompiledExecutor(func::FuncOp function, const CompiledOptions &options) {
  auto executor = std::make_unique<Executor>(function, options);
  if (llvm::Error error = executor->compile())
    return std::move(error);
  if (llvm::Error error = executor->createContexts())
    return std::move(error);
  return std::move(executor);
}
