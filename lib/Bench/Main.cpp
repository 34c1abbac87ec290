//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/Main.h"
#include "CommandLine.h"
#include "mlir/Parser/Parser.h"
#include "plateau/Bench/DispatchReport.h"
#include "plateau/Bench/DispatchText.h"
#include "plateau/Bench/VocabReport.h"
#include "plateau/Run/Diagnostics.h"
#include "plateau/Run/Files.h"
#include "llvm/Support/MemoryBuffer.h"
#include <csignal>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;

namespace {
/// A text and the module that it is, null when a diagnostic has said why not.
struct Source {
  Source(StringRef name, const std::string &text, DialectRegistry &registry)
      : context(registry), sources(std::make_shared<llvm::SourceMgr>()),
        diagnostics("plateau-bench", name, *sources, &context) {
    context.printOpOnDiagnostic(false);
    sources->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), llvm::SMLoc());
    module = parseSourceFile<ModuleOp>(sources, &context);
  }

  MLIRContext context;
  std::shared_ptr<llvm::SourceMgr> sources;
  run::DiagnosticPrinter diagnostics;
  OwningOpRef<ModuleOp> module;
};
} // namespace

/// The text of an error; none when a diagnostic has told it already.
static int fail(llvm::Error error) {
  if (std::string text = llvm::toString(std::move(error)); !text.empty())
    llvm::errs() << "plateau-bench: error: " << text << "\n";
  return 1;
}

static int measureVocab(const VocabOptions &options, DialectRegistry &registry) {
  Source source("vocab", getVocabText(options), registry);
  if (!source.module)
    return 1;
  std::vector<VocabPlan> plans;
  for (VocabMethod method : options.methods) {
    FailureOr<VocabPlan> plan = planVocab(*source.module, method, options);
    if (failed(plan)) {
      llvm::errs() << "plateau-bench: note: while planning " << stringifyMethod(method) << "\n";
      return 1;
    }
    plans.push_back(std::move(*plan));
  }
  std::vector<VocabFigures> figures;
  if (!options.planOnly) {
    auto measured = runVocab(plans, options);
    if (!measured)
      return fail(measured.takeError());
    figures = std::move(*measured);
  }
  printVocab(llvm::outs(), plans, figures, options);
  if (auto error = run::flush(llvm::outs()))
    return fail(std::move(error));
  return 0;
}

static int measureDispatch(const DispatchOptions &options, DialectRegistry &registry) {
  Source source("dispatch", getLayerText(options), registry);
  if (!source.module)
    return 1;
  std::vector<DispatchPlan> plans;
  for (DispatchMethod method : dispatchMethods) {
    FailureOr<DispatchPlan> plan = planDispatch(*source.module, method, options);
    if (failed(plan)) {
      llvm::errs() << "plateau-bench: note: while planning " << stringifyMethod(method) << "\n";
      return 1;
    }
    plans.push_back(std::move(*plan));
  }
  std::vector<DispatchFigures> figures;
  if (options.planOnly) {
    for (DispatchPlan &plan : plans) {
      auto routing = runRouting(plan, options);
      if (!routing)
        return fail(routing.takeError());
      figures.emplace_back().routing = *routing;
    }
  } else {
    auto measured = runDispatch(plans, options);
    if (!measured)
      return fail(measured.takeError());
    figures = std::move(*measured);
  }
  printDispatch(llvm::outs(), plans, figures, options);
  if (auto error = run::flush(llvm::outs()))
    return fail(std::move(error));
  return 0;
}

int bench::benchMain(int argc, char **argv, DialectRegistry &registry) {
  std::signal(SIGPIPE, SIG_IGN); // A reader that has gone is an error of the write, told like any other.
  CommandLine parsed = parseCommandLine(argc, argv);
  if (int *code = std::get_if<int>(&parsed))
    return *code;
  if (auto *dispatch = std::get_if<DispatchOptions>(&parsed))
    return measureDispatch(*dispatch, registry);
  return measureVocab(std::get<VocabOptions>(parsed), registry);
}
