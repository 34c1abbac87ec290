//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "plateau/Pipelines/Rewrite.h"
#include "plateau/Run/MemoryLimits.h"
#include <CLI/CLI.hpp>
#include <map>

using namespace mlir::plateau;
using namespace mlir::plateau::compile;

template <typename T>
static void addChoice(CLI::App &app, const std::string &name, T &value, const std::string &description,
                      const std::map<std::string, T> &choices) {
  std::string words;
  for (const auto &[word, choice] : choices)
    words += (words.empty() ? "" : "|") + word;
  auto read = [&value, name, words, choices](const std::string &text) {
    auto found = choices.find(text);
    if (found == choices.end())
      throw CLI::ValidationError(name, "'" + text + "' is not one of " + words);
    value = found->second;
  };
  app.add_option_function<std::string>(name, read, description)->type_name(words);
}

static void addBytes(CLI::App &app, const std::string &name, std::optional<int64_t> &value,
                     const std::string &description) {
  auto read = [&value, name](const std::string &text) {
    auto bytes = run::parseBytes(text);
    if (!bytes)
      throw CLI::ValidationError(name, llvm::toString(bytes.takeError()));
    value = *bytes;
  };
  app.add_option_function<std::string>(name, read, description)->type_name("BYTES");
}

std::variant<CommandLine, int> compile::parseCommandLine(int argc, const char *const *argv) {
  CommandLine line;
  CLI::App app("Compiles a training step to an object file that runs with the runtime alone.", "plateau-compile");
  app.get_formatter()->column_width(34);
  app.add_option("input", line.input, "Module with the step, as text or bytecode; - for the standard input")
      ->type_name("FILE")
      ->required();
  app.add_option("-o,--output", line.output, "File to write; - for the standard output")->type_name("FILE")->required();
  app.add_option("--function", line.function,
                 "Function to compile (default: step, or the only public one); the object exports plateau_NAME")
      ->type_name("NAME");
  addChoice<Emit>(app, "--emit", line.emit, "What to write (default: object)",
                  {{"object", Emit::Object}, {"llvm", Emit::LLVM}, {"schedule", Emit::Schedule}});
  addChoice<bool>(app, "--cpu", line.isNative, "This machine's processor, or any x86-64 (default: native)",
                  {{"native", true}, {"generic", false}});
  addChoice<plr_gemm_kind>(app, "--gemm", line.gemm, "Products that scratch memory is sized for (default: onednn)",
                           {{"onednn", PLR_GEMM_ONEDNN}, {"reference", PLR_GEMM_REFERENCE}});
  addBytes(app, "--hbm-bytes", line.deviceBytes, "Budget of the device space of a rank (default: none)");
  addBytes(app, "--host-bytes", line.hostBytes, "Budget of the host space of a rank (default: none)");
  auto readInFlight = [&line](const std::string &text) {
    if (llvm::StringRef(text).getAsInteger(10, line.inFlight) || line.inFlight < 1 || line.inFlight > 64)
      throw CLI::ValidationError("--in-flight", "'" + text + "' is no integer from 1 to 64");
  };
  app.add_option_function<std::string>("--in-flight", readInFlight,
                                       "Micro-batches in flight: the forward pass of one beside the backward pass of "
                                       "another")
      ->type_name("INT");
  auto readRewrite = [&line](const std::string &text) {
    if (llvm::Error error = checkRewrite(text))
      throw CLI::ValidationError("--rewrite", llvm::toString(std::move(error)));
    line.rewrite = text;
  };
  app.add_option_function<std::string>("--rewrite", readRewrite,
                                       "Passes on tensors to run before the step is scheduled: "
                                       "\"func.func(moe-ring-vocab{move=weights})\"")
      ->type_name("PIPELINE");
  app.failure_message([](const CLI::App *, const CLI::Error &error) {
    return std::string("plateau-compile: error: ") + error.what() + "\nRun with --help for more information.\n";
  });
  try {
    app.parse(argc, argv);
    if (line.output.empty())
      throw CLI::ValidationError("--output", "the name of the file is empty");
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return line;
}
