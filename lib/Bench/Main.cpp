//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/Main.h"
#include "CommandLine.h"
#include "mlir/Parser/Parser.h"
#include "plateau/Bench/VocabReport.h"
#include "plateau/Run/Diagnostics.h"
#include "plateau/Run/Files.h"
#include "llvm/Support/MemoryBuffer.h"
#include <csignal>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;

/// The text of an error; none when a diagnostic has told it already.
static int fail(llvm::Error error) {
  if (std::string text = llvm::toString(std::move(error)); !text.empty())
    llvm::errs() << "plateau-bench: error: " << text << "\n";
  return 1;
}

static int measureVocab(const VocabOptions &options, DialectRegistry &registry) {
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(getVocabText(options), "vocab"), llvm::SMLoc());
  run::DiagnosticPrinter diagnostics("plateau-bench", "vocab", *sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return 1;
  std::vector<VocabPlan> plans;
  for (VocabMethod method : options.methods) {
    FailureOr<VocabPlan> plan = planVocab(*module, method, options);
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

int bench::benchMain(int argc, char **argv, DialectRegistry &registry) {
  std::signal(SIGPIPE, SIG_IGN); // A reader that has gone is an error of the write, told like any other.
  std::variant<VocabOptions, int> parsed = parseCommandLine(argc, argv);
  if (int *code = std::get_if<int>(&parsed))
    return *code;
  return measureVocab(std::get<VocabOptions>(parsed), registry);
}
