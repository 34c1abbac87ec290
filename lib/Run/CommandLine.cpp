//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/CommandLine.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Pipelines/Rewrite.h"
#include "plateau/Run/Diagnostics.h"
#include "plateau/Run/EntryRun.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/Files.h"
#include "plateau/Run/Interrupt.h"
#include "plateau/Run/Orders.h"
#include "plateau/Run/ParseOptions.h"
#include "plateau/Run/SpanRecorder.h"
#include "plateau/Run/Training.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include <csignal>
#include <fcntl.h>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

/// A failure that a diagnostic has told already.
static int fail() { return 1; }

static int fail(llvm::Error error) {
  llvm::handleAllErrors(std::move(error), [](const llvm::ErrorInfoBase &info) {
    // What the executor reported as a diagnostic comes without a text.
    if (std::string text = info.message(); !text.empty())
      llvm::errs() << "plateau-run: error: " << text << "\n";
  });
  return InterruptScope::wasInterrupted() ? interruptedExitCode : 1;
}

/// Text printed without its locations has lost what its memory belongs to: said, since the table of peaks looks as
/// usual.
static void noteLostScopes(func::FuncOp function, llvm::StringRef path) {
  bool hasScope = function
                      .walk([](Operation *op) {
                        return moe::getScope(op->getLoc()) ? WalkResult::interrupt() : WalkResult::advance();
                      })
                      .wasInterrupted();
  if (!hasScope)
    llvm::errs() << "plateau-run: note: " << path
                 << ": no op has a #moe.scope in its location, so memory is counted by kind of op and all of it as "
                    "forward; print modules with --mlir-print-debuginfo\n";
}

/// Makes `function` the one that the passes of --rewrite make of it, which `rewritten` holds.
static llvm::Error rewrite(func::FuncOp &function, RewrittenFunction &rewritten, const RunOptions &options) {
  if (options.rewrite.empty())
    return llvm::Error::success();
  auto made = rewriteFunction(function, options.rewrite);
  if (!made)
    return made.takeError();
  rewritten = std::move(*made);
  function = rewritten.function;
  return llvm::Error::success();
}

/// Gives the ranks numbers of tokens of their own, where the command line has some.
static llvm::Error setRankTokens(StepSignature &signature, const std::vector<int64_t> &rankTokens) {
  BatchShape &batch = signature.batch;
  if (rankTokens.empty())
    return llvm::Error::success();
  if (batch.microBatches > 1)
    return makeError("--rank-tokens is not supported for a step of {0} micro-batches", batch.microBatches);
  if (!signature.tokenCount)
    return makeError("--rank-tokens needs a step whose rows may be padding, made by plateau-import --padded; this one "
                     "has no argument with the role token_count");
  auto count = static_cast<int64_t>(rankTokens.size());
  if (count != batch.ranks)
    return makeError("--rank-tokens has {0} number{1}, but the moe.batch of the step is for {2} rank{3}", count,
                     count == 1 ? "" : "s", batch.ranks, batch.ranks == 1 ? "" : "s");
  for (auto [rank, tokens] : llvm::enumerate(rankTokens))
    if (tokens > batch.tokens)
      return makeError("--rank-tokens gives rank {0} the number {1}; a rank of this step has {2} rows", rank, tokens,
                       batch.tokens);
  if (llvm::all_of(rankTokens, [](int64_t tokens) { return tokens == 0; }))
    return makeError("--rank-tokens gives no rank a token");
  batch.rankTokens = rankTokens;
  return llvm::Error::success();
}

static int runTraining(ModuleOp module, RunOptions options, const TrainingOptions &training) {
  FailureOr<func::FuncOp> function = findStep(module);
  if (failed(function))
    return fail();
  FailureOr<StepSignature> signature = getStepSignature(*function);
  if (failed(signature))
    return fail();
  if (options.ranks && *options.ranks != signature->batch.ranks)
    return fail(makeError("--ranks is {0}, but the moe.batch of {1} is for {2}", *options.ranks, options.input,
                          signature->batch.ranks));
  options.ranks = signature->batch.ranks;
  if (auto error = setRankTokens(*signature, training.rankTokens))
    return fail(std::move(error));
  RewrittenFunction rewritten;
  if (auto error = rewrite(*function, rewritten, options))
    return fail(std::move(error));
  signature->function = *function;
  auto data = TokenData::open(training.data, signature->batch, training.documentEnd, signature->ignoreIndex);
  if (!data)
    return fail(data.takeError());
  auto executor = createExecutor(*function, options);
  if (!executor)
    return fail(executor.takeError());

  noteLostScopes(*function, options.input);
  InterruptScope interrupts(*executor->step);
  if (training.orders) {
    if (auto error = checkOrders(*executor, *signature, *data, training.learningRate, options.seed, *training.orders))
      return fail(std::move(error));
    llvm::outs() << *training.orders << " orders of the lanes: each gives the bits of the order of issue\n";
    return 0;
  }
  using Style = StepReporter::Style;
  Style style = training.json                                  ? Style::JSON
                : llvm::sys::Process::StandardOutIsDisplayed() ? Style::Terminal
                                                               : Style::Plain;
  StepReporter reporter(llvm::outs(), style, training.steps);
  SpanRecorder recorder(*executor, training, options.input, llvm::errs());
  if (auto error = recorder.start())
    return fail(std::move(error));
  auto summary = train(*executor, *signature, *data, options.seed, training, reporter, llvm::errs(),
                       [&](int64_t step, const MemorySummary &memory) { return recorder.addStep(step, memory); });
  reporter.clearBar();
  if (!summary) {
    // The failure that came first is the one to tell.
    llvm::consumeError(recorder.finish(/*seconds=*/std::nullopt));
    llvm::consumeError(flush(llvm::outs()));
    return fail(summary.takeError());
  }
  llvm::raw_ostream &notes = training.json ? llvm::errs() : llvm::outs();
  if (sched::ProgramOp program = executor->step->getProgram())
    summary->memory.print(program, notes);
  else
    summary->peaks.print(notes);
  summary->dispatch.print(notes);
  if (training.json && options.engine == Engine::Compiled) {
    summary->dispatch.printJSON(llvm::outs());
    summary->memory.printJSON(llvm::outs()); // The last line, for those who look for it there.
  }
  if (summary->skipped > 0)
    notes << summary->skipped << " of " << summary->steps << " updates skipped: the gradient norm was not finite\n";
  if (auto error = recorder.finish(summary->seconds))
    return fail(std::move(error));
  if (auto error = flush(llvm::outs()))
    return fail(std::move(error));
  return 0;
}

static int runFunction(ModuleOp module, RunOptions options, const EntryOptions &entry) {
  auto function = module.lookupSymbol<func::FuncOp>(entry.name);
  if (!function || function.isDeclaration())
    return fail(makeError("{0}: there is no function @{1} with a body", options.input, entry.name));
  if (auto batch = function->getAttrOfType<moe::BatchAttr>("moe.batch")) {
    if (options.ranks && *options.ranks != batch.getRanks())
      return fail(makeError("--ranks is {0}, but the moe.batch of @{1} is for {2}", *options.ranks, entry.name,
                            batch.getRanks()));
    options.ranks = batch.getRanks();
  }
  if (!options.ranks)
    options.ranks = 1;
  auto arguments = drawArguments(function, options.seed, *options.ranks);
  if (!arguments)
    return fail(makeError("@{0}: {1}", entry.name, llvm::toString(arguments.takeError())));

  std::optional<Executor> reference;
  if (entry.tolerance) {
    RunOptions interpreted = options;
    interpreted.engine = Engine::Interpreter;
    auto made = createExecutor(function, interpreted);
    if (!made)
      return fail(made.takeError());
    reference = std::move(*made);
    options.poison = true;
  }
  RewrittenFunction rewritten;
  if (auto error = rewrite(function, rewritten, options))
    return fail(std::move(error));
  auto executor = createExecutor(function, options);
  if (!executor)
    return fail(executor.takeError());
  InterruptScope interrupts(*executor->step);
  llvm::Error error = reference ? compareEntry(*executor, *reference, *arguments, *entry.tolerance,
                                               entry.repeat.value_or(3), llvm::outs())
                                : runEntry(*executor, *arguments, entry.repeat.value_or(1), llvm::outs());
  error = llvm::joinErrors(std::move(error), flush(llvm::outs()));
  return error ? fail(std::move(error)) : 0;
}

static int runModule(int argc, char **argv, DialectRegistry &registry) {
  std::variant<CommandLine, int> parsed = parseCommandLine(argc, argv);
  if (int *code = std::get_if<int>(&parsed))
    return *code;
  const CommandLine &line = std::get<CommandLine>(parsed);

  auto file =
      line.run.input == "-" ? llvm::errorOrToExpected(llvm::MemoryBuffer::getSTDIN()) : readFile(line.run.input);
  if (!file)
    return fail(makeError("cannot open input file '{0}': {1}", line.run.input, llvm::toString(file.takeError())));
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false); // A whole step is no help under a message with a location.
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  DiagnosticPrinter diagnostics("plateau-run", line.run.input, *sources, &context);
  if (line.run.remarks) {
    remark::RemarkCategories ours; // `all` alone turns no kind on.
    ours.passed = ours.missed = ours.analysis = ours.failed = "(moe|sched)-.*";
    if (failed(remark::enableOptimizationRemarks(context, /*streamer=*/nullptr,
                                                 std::make_unique<remark::RemarkEmittingPolicyAll>(), ours,
                                                 /*printAsEmitRemarks=*/true)))
      return fail(makeError("the remarks of passes cannot be shown"));
  }
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return fail();
  return line.entry ? runFunction(*module, line.run, *line.entry) : runTraining(*module, line.run, line.training);
}

/// A closed standard stream stays without use: no file that is opened later gets its number, and with it what is
/// printed.
static void occupyStandardStreams() {
  for (int number = 0; number <= 2; ++number)
    if (fcntl(number, F_GETFD) < 0) [[maybe_unused]]
      int same = open("/dev/null", O_RDONLY); // The lowest number that is free.
}

int run::runMain(int argc, char **argv, DialectRegistry &registry) {
  occupyStandardStreams();
  std::signal(SIGPIPE, SIG_IGN); // A reader that has gone is an error of the write, told like any other.
  int code = runModule(argc, argv, registry);
  llvm::errs().clear_error(); // There is no place left to tell it.
  return code;
}
