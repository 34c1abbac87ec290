//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/ParseOptions.h"
#include "plateau/Pipelines/Rewrite.h"
#include "plateau/Run/MemoryLimits.h"
#include "llvm/ADT/StringExtras.h"
#include <CLI/CLI.hpp>
#include <cmath>
#include <map>

using namespace mlir::plateau;
using namespace mlir::plateau::run;

/// Each rank is a thread of this process, and some more for its lanes.
static constexpr int64_t maxRanks = 1024;

namespace {
/// Declares the options and checks what they say of each other.
class Parser {
public:
  Parser() {
    declareRun();
    declareTraining();
    declareEntry();
    app.get_formatter()->column_width(34);
    app.failure_message([](const CLI::App *, const CLI::Error &error) {
      return std::string("plateau-run: error: ") + error.what() + "\nRun with --help for more information.\n";
    });
  }

  std::variant<CommandLine, int> parse(int argc, const char *const *argv) {
    try {
      app.parse(argc, argv);
      check();
    } catch (const CLI::ParseError &error) {
      return app.exit(error) == 0 ? 0 : 2;
    }
    if (entryOption->count() > 0)
      line.entry = entry;
    return line;
  }

private:
  void declareRun();
  void declareTraining();
  void declareEntry();
  void check();

  CLI::Option *addBytes(const std::string &name, std::optional<int64_t> &target, const std::string &help) {
    auto set = [&target, name](const std::string &text) {
      auto bytes = parseBytes(text);
      if (!bytes)
        throw CLI::ValidationError(name, llvm::toString(bytes.takeError()));
      target = *bytes;
    };
    return app.add_option_function<std::string>(name, set, help)->type_name("BYTES");
  }

  /// A decimal integer in low..high. (CLI11 alone would take 010 for 8.)
  template <typename Target>
  CLI::Option *addInteger(const std::string &name, Target &target, int64_t low, int64_t high, const std::string &help) {
    auto set = [&target, name, low, high](const std::string &text) {
      int64_t value;
      if (llvm::StringRef(text).getAsInteger(10, value) || value < low || value > high)
        throw CLI::ValidationError(name, "'" + text + "' is no integer from " + std::to_string(low) + " to " +
                                             std::to_string(high));
      target = value;
    };
    return app.add_option_function<std::string>(name, set, help)->type_name("INT");
  }

  /// A number that is finite as f32 and at least 0.
  template <typename Target>
  CLI::Option *addNumber(const std::string &name, Target &target, const std::string &what, const std::string &help) {
    auto set = [&target, name, what](const std::string &text) {
      double value;
      if (text.empty() || !llvm::to_float(text, value) || !std::isfinite(static_cast<float>(value)) || value < 0)
        throw CLI::ValidationError(name, "'" + text + "': " + what + " must be finite in f32 and at least 0");
      target = value;
    };
    return app.add_option_function<std::string>(name, set, help)->type_name("FLOAT");
  }

  CLI::Option *addFile(const std::string &name, std::string &target, const std::string &help) {
    auto set = [&target, name](const std::string &text) {
      if (text.empty())
        throw CLI::ValidationError(name, "the name of the file is empty");
      target = text;
    };
    return app.add_option_function<std::string>(name, set, help)->type_name("FILE");
  }

  CLI::App app{"Run a compiled training step on a file of token ids, or one function on drawn arguments (--entry).",
               "plateau-run"};
  CommandLine line;
  EntryOptions entry;
  bool interpret = false, exact = false;
  CLI::Option *entryOption = nullptr;
  std::vector<CLI::Option *> trainingOptions, requiredOptions, entryOptions, compiledOptions;
};
} // namespace

void Parser::declareRun() {
  app.add_option("input", line.run.input, "Module with the step, as text or bytecode; - for the standard input")
      ->type_name("FILE")
      ->required();
  addInteger("--ranks", line.run.ranks, 1, maxRanks, "Number of ranks; must be that of the module");
  auto setSeed = [this](const std::string &text) {
    if (llvm::StringRef(text).getAsInteger(10, line.run.seed))
      throw CLI::ValidationError("--seed", "'" + text + "' is no integer from 0 to 2^64-1");
  };
  app.add_option_function<std::string>("--seed", setSeed, "Seed of parameters and of drawn arguments (default 0)")
      ->type_name("INT");
  app.add_flag("--interpret", interpret, "Run by the reference interpreter in float64");
  app.add_flag("--exact", exact, "Run by the interpreter with floats as integers modulo 2^61-1, and print digests");
  app.add_flag("--strict", line.run.strict,
               "Fail, instead of going on, when less memory than asked for can be had, and at a router's logit that is "
               "not finite");
  auto setRewrite = [this](const std::string &text) {
    if (llvm::Error error = checkRewrite(text))
      throw CLI::ValidationError("--rewrite", llvm::toString(std::move(error)));
    line.run.rewrite = text;
  };
  app.add_option_function<std::string>(
         "--rewrite", setRewrite,
         "Passes on tensors to run first: \"func.func(moe-ring-vocab{move=weights})\"; with --compare "
         "the interpreter runs what was there before")
      ->type_name("PIPELINE");
  auto setGemm = [this](const std::string &kind) {
    if (kind != "onednn" && kind != "reference")
      throw CLI::ValidationError("--gemm", "'" + kind + "' is neither onednn nor reference");
    line.run.gemm = kind == "onednn" ? PLR_GEMM_ONEDNN : PLR_GEMM_REFERENCE;
  };
  compiledOptions = {
      addBytes("--hbm-bytes", line.run.deviceBytes,
               "Limit of the device space of a rank (default: half of what is usable)"),
      addBytes("--host-bytes", line.run.hostBytes,
               "Limit of the host space of a rank (default: half of what is usable)"),
      app.add_option_function<std::string>("--gemm", setGemm,
                                           "Matrix products by oneDNN (default) or by plain loops in a "
                                           "fixed order")
          ->type_name("onednn|reference"),
      app.add_flag(
          "--dynamic", line.run.dynamic,
          "Memory from a pool while the step runs, freed after last use, instead of a plan that is proven before"),
      addInteger("--in-flight", line.run.inFlight, 1, 64,
                 "Micro-batches in flight: the forward pass of one beside the backward pass of another"),
      app.add_flag("--remarks", line.run.remarks, "Say what rewrites and planning did to the memory, as notes"),
      app.add_flag("--poison", line.run.poison, "Fill memory with NaN when it is handed out and when it is released"),
  };
  for (CLI::Option *option : compiledOptions)
    option->group("Compiled code");
}

void Parser::declareTraining() {
  TrainingOptions &training = line.training;
  auto setRankTokens = [&training](const std::string &text) {
    training.rankTokens.clear();
    for (llvm::StringRef number : llvm::split(text, ',')) {
      int64_t &tokens = training.rankTokens.emplace_back();
      if (number.getAsInteger(10, tokens) || tokens < 0 || tokens > INT32_MAX)
        throw CLI::ValidationError("--rank-tokens",
                                   "'" + text + "': '" + number.str() + "' is no integer from 0 to 2147483647");
    }
  };
  requiredOptions = {
      addInteger("--steps", training.steps, 0, INT32_MAX, "Number of steps"),
      addFile("--data", training.data, "Flat file of little-endian 32-bit token ids"),
      addNumber("--lr", training.learningRate, "the learning rate", "Learning rate of every step"),
  };
  std::vector<CLI::Option *> traced = {
      addFile("--trace", training.trace, "Write a Chrome trace while the run goes on"),
      addFile("--report", training.report, "Write a page that shows the memory of the planned step"),
      addFile("--gemm-shapes", training.gemmShapes, "Write the shapes of the run's matrix products"),
      app.add_flag("--profile", training.profile, "Print where the time went"),
      addInteger(
          "--orders", training.orders, 1, 1 << 20,
          "Instead of training, run the first step with the lanes in this many orders, drawn by chance, and fail when "
          "a bit differs (needs --steps 1)"),
  };
  trainingOptions = {
      addFile("--init", training.init, "Start from a safetensors file: parameters, or all that --save wrote"),
      addFile("--save", training.save, "Write parameters and optimizer state as safetensors after the last step"),
      addFile("--save-gradients", training.saveGradients, "Write the gradients of the last step as safetensors"),
      addInteger("--first-step", training.firstStep, 1, INT32_MAX,
                 "Number of the first step in the data, from 1 (default: where the --init file stopped)"),
      app.add_option_function<std::string>("--rank-tokens", setRankTokens,
                                           "Tokens of each rank in a step, separated by commas (default: as many as "
                                           "there are rows); for steps made with --padded")
          ->type_name("INT,..."),
      addInteger("--document-end", training.documentEnd, 0, UINT32_MAX, "Token id that ends a document"),
      app.add_flag("--json", training.json, "Print one JSON object a step"),
  };
  for (CLI::Option *option : requiredOptions)
    option->group("Training (required)");
  for (CLI::Option *option : trainingOptions)
    option->group("Training");
  for (CLI::Option *option : traced)
    option->group("Training by compiled code");
  trainingOptions.insert(trainingOptions.end(), traced.begin(), traced.end());
  trainingOptions.insert(trainingOptions.end(), requiredOptions.begin(), requiredOptions.end());
  compiledOptions.insert(compiledOptions.end(), traced.begin(), traced.end());
}

void Parser::declareEntry() {
  entryOption = app.add_option("--entry", entry.name, "Run this function on drawn arguments and print its results")
                    ->type_name("NAME")
                    ->group("One function");
  entryOptions = {
      addNumber("--compare", entry.tolerance, "the tolerance",
                "Fail when compiled code and interpreter differ by more than this, relative to the largest value"),
      addInteger("--repeat", entry.repeat, 1, 1 << 20,
                 "Number of runs, which must give the same bits (default 1; 3 with --compare)"),
  };
  for (CLI::Option *option : entryOptions)
    option->group("One function");
}

void Parser::check() {
  auto refuse = [](CLI::Option *option, const std::string &why) {
    if (option->count() > 0)
      throw CLI::ValidationError(option->get_name(), why);
  };
  bool isEntry = entryOption->count() > 0;
  if (isEntry) {
    for (CLI::Option *option : trainingOptions)
      refuse(option, "belongs to a training run, not to --entry");
  } else {
    for (CLI::Option *option : requiredOptions)
      if (option->count() == 0)
        throw CLI::RequiredError(option->get_name());
    for (CLI::Option *option : entryOptions)
      refuse(option, "needs --entry");
  }
  if (interpret || exact) {
    for (CLI::Option *option : compiledOptions)
      refuse(option, "is for compiled code; the interpreter has no such thing");
    line.run.engine = exact ? Engine::Exact : Engine::Interpreter;
    if (entry.tolerance)
      throw CLI::ValidationError("--compare",
                                 "runs both the interpreter and compiled code; it takes no --interpret or --exact");
  }
  if (exact && line.training.json)
    throw CLI::ValidationError("--json", "an exact run has digests and no loss to print as JSON");
  if (line.training.steps == 0 && !line.training.saveGradients.empty())
    throw CLI::ValidationError("--save-gradients", "there are no gradients after 0 steps");
  std::map<std::string, std::string> written;
  for (auto [name, path] : {std::pair("--save", &line.training.save),
                            {"--save-gradients", &line.training.saveGradients},
                            {"--trace", &line.training.trace},
                            {"--gemm-shapes", &line.training.gemmShapes},
                            {"--report", &line.training.report}})
    if (auto [other, isNew] = written.try_emplace(*path, name); !path->empty() && !isNew)
      throw CLI::ValidationError(name, "writes to '" + *path + "', as does " + other->second);
  if (line.run.dynamic && !line.training.report.empty())
    throw CLI::ValidationError("--report", "shows the memory that is planned; with --dynamic nothing is");
  if (line.run.dynamic && line.run.inFlight)
    throw CLI::ValidationError("--in-flight", "is for planned memory; with --dynamic all calls are on one lane");
  if (line.training.orders) {
    if (line.run.dynamic)
      throw CLI::ValidationError("--orders", "is for planned memory; with --dynamic all calls are on one lane");
    if (line.training.steps != 1)
      throw CLI::ValidationError("--orders", "looks at the first step alone: give --steps 1");
    for (const auto &[path, name] : written)
      if (!path.empty())
        throw CLI::ValidationError(name, "writes nothing in a run with --orders");
  }
  line.run.trace = line.training.profile || !line.training.trace.empty() || !line.training.gemmShapes.empty() ||
                   !line.training.report.empty();
}

std::variant<CommandLine, int> run::parseCommandLine(int argc, const char *const *argv) {
  return Parser().parse(argc, argv);
}
