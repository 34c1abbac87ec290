//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Compile/Main.h"
#include "CommandLine.h"
#include "Output.h"
#include "mlir/Parser/Parser.h"
#include "plateau/Compile/Compile.h"
#include "plateau/Pipelines/Rewrite.h"
#include "plateau/Run/Diagnostics.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include <csignal>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::compile;
using run::makeError;

/// The text of an error; none when a diagnostic has told it already.
static int fail(llvm::Error error) {
  if (std::string text = llvm::toString(std::move(error)); !text.empty())
    llvm::errs() << "plateau-compile: error: " << text << "\n";
  return 1;
}

/// The function of that name; without one, @step or the only public function.
static llvm::Expected<func::FuncOp> findFunction(ModuleOp module, const CommandLine &line) {
  func::FuncOp found;
  std::vector<std::string> names;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration())
      continue;
    if (function.getName() == line.function.value_or("step"))
      found = function;
    if (function.isPublic())
      names.push_back(("@" + function.getName()).str());
  }
  if (!found && !line.function && names.size() == 1)
    found = module.lookupSymbol<func::FuncOp>(StringRef(names.front()).drop_front());
  if (!found) {
    std::string list = names.empty() ? "none" : llvm::join(names, ", ");
    if (line.function)
      return makeError("{0}: there is no function @{1} with a body; public ones: {2}", line.input, *line.function,
                       list);
    return makeError("{0}: there is no function @step with a body; public ones: {1}{2}", line.input, list,
                     names.empty() ? "" : "; --function says which to compile");
  }
  StringRef name = found.getName();
  if (!llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return makeError(
        "{0}: @{1} is compiled to the symbol plateau_{1}, so its name may have letters, digits and _ alone", line.input,
        name);
  return found;
}

static llvm::Error compileTo(ModuleOp module, const CommandLine &line) {
  auto function = findFunction(module, line);
  if (!function)
    return function.takeError();
  ScheduleOptions options;
  options.referenceGemm = line.gemm == PLR_GEMM_REFERENCE;
  options.hbmBytes = line.deviceBytes.value_or(-1);
  options.hostBytes = line.hostBytes.value_or(-1);
  options.inFlight = line.inFlight;
  RewrittenFunction rewritten;
  if (!line.rewrite.empty()) {
    auto made = rewriteFunction(*function, line.rewrite);
    if (!made)
      return made.takeError();
    rewritten = std::move(*made);
    *function = rewritten.function;
  }
  FailureOr<CompiledProgram> program = schedule(*function, options);
  if (failed(program))
    return makeError("");
  if (line.emit == Emit::Schedule)
    return writeOutput(line.output,
                       [&](llvm::raw_ostream &os) { program->module->print(os, OpPrintingFlags().enableDebugInfo()); });

  auto target = Target::create(line.isNative);
  if (!target)
    return target.takeError();
  llvm::LLVMContext context;
  auto code = lower(std::move(*program), context, *target);
  if (!code)
    return code.takeError();
  if (line.emit == Emit::LLVM)
    return writeOutput(line.output, [&](llvm::raw_ostream &os) { (*code)->print(os, nullptr); });
  auto object = target->emitObject(**code);
  if (!object)
    return object.takeError();
  return writeOutput(line.output, [&](llvm::raw_ostream &os) { os.write(object->data(), object->size()); });
}

int compile::compileMain(int argc, char **argv, DialectRegistry &registry) {
  std::signal(SIGPIPE, SIG_IGN); // A reader that has gone is an error of the write, told like any other.
  std::variant<CommandLine, int> parsed = parseCommandLine(argc, argv);
  if (int *code = std::get_if<int>(&parsed))
    return *code;
  const CommandLine &line = std::get<CommandLine>(parsed);
  auto file = line.input == "-" ? llvm::errorOrToExpected(llvm::MemoryBuffer::getSTDIN()) : run::readFile(line.input);
  if (!file)
    return fail(makeError("cannot open input file '{0}': {1}", line.input, llvm::toString(file.takeError())));
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false); // A whole step is no help under a message with a location.
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  run::DiagnosticPrinter diagnostics("plateau-compile", line.input, *sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return 1;
  llvm::Error error = compileTo(*module, line);
  return error ? fail(std::move(error)) : 0;
}
