//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/Main.h"
#include "WriteModule.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Import/BuildLoss.h"
#include "plateau/Import/Json.h"
#include "plateau/InitAllDialects.h"
#include "plateau/Pipelines/TrainingStep.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::importer;

namespace {
/// What to write: the loss alone, or the whole training step.
enum class Emit { Loss, Step };

struct CommandLine {
  std::string config, output;
  bool count = false, json = false;
  Emit emit = Emit::Step;
  int64_t microBatches = 1;
  /// Options that are about something a model need not have.
  bool choosesBalanceKind = false, choosesBiasUpdateRate = false;
  LossOptions loss;
  moe::MoEAttachOptimizerOptions optimizer;
};
} // namespace

//===----------------------------------------------------------------------===//
// The command line
//===----------------------------------------------------------------------===//

/// A positive decimal number of 31 bits. (CLI11 alone would take 010 for 8.)
static CLI::Option *addSize(CLI::App &app, const std::string &name, int64_t &value, const std::string &description) {
  auto read = [&value, name](const std::string &text) {
    if (StringRef(text).getAsInteger(10, value) || value < 1 || value > std::numeric_limits<int32_t>::max())
      throw CLI::ValidationError(name, "'" + text + "' is not an integer in 1..2147483647");
  };
  return app.add_option_function<std::string>(name, read, description)->type_name("INT");
}

/// `Number` is double or an optional one.
template <typename Number>
static CLI::Option *addNumberWithDefault(CLI::App &app, const std::string &name, Number &value,
                                         const std::string &description, const std::string &byDefault,
                                         const std::string &allowed, bool (*isAllowed)(double)) {
  auto read = [&value, name, allowed, isAllowed](const std::string &text) {
    double number;
    if (text.empty() || !llvm::to_float(text, number) || !isAllowed(number))
      throw CLI::ValidationError(name, "'" + text + "' is not " + allowed);
    value = number;
  };
  return app.add_option_function<std::string>(name, read, description + " (default: " + byDefault + ")")
      ->type_name("FLOAT");
}

static CLI::Option *addNumber(CLI::App &app, const std::string &name, double &value, const std::string &description,
                              const std::string &allowed, bool (*isAllowed)(double)) {
  std::string shown;
  llvm::raw_string_ostream(shown) << llvm::format("%g", value);
  return addNumberWithDefault(app, name, value, description, shown, allowed, isAllowed);
}

/// A factor of a part of the loss, or of an update.
static bool isFactor(double value) { return value >= 0 && std::isfinite(float(value)); }
static const char *const factors = "a number >= 0 that fits f32";
/// A part of what there is, not all of it.
static bool isFraction(double value) { return value >= 0 && float(value) < 1; }

template <typename T>
static CLI::Option *addChoice(CLI::App &app, const std::string &name, T &value, const std::string &description,
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
  return app.add_option_function<std::string>(name, read, description)->type_name(words);
}

/// Adds the options that shape a program, which counting has no use for.
static void addProgramOptions(CLI::App &app, CommandLine &line) {
  moe::MoEAttachOptimizerOptions &optimizer = line.optimizer;
  CLI::Option *required[] = {
      addSize(app, "--ranks", line.loss.ranks, "Ranks that train together"),
      addSize(app, "--tokens", line.loss.tokens, "Tokens of each rank and step (with --padded: the most)"),
      addSize(app, "--sequence", line.loss.sequence, "Tokens of a sequence; divides --tokens"),
      addChoice<WorkingType>(app, "--dtype", line.loss.workingType,
                             "Working type: of parameters and of what products read",
                             {{"f32", WorkingType::F32}, {"bf16", WorkingType::BF16}}),
      app.add_option("-o,--output", line.output, "File to write; - is the standard output")->type_name("FILE")};
  for (CLI::Option *option : required)
    option->group("Required without --count");
  CLI::Option *optional[] = {
      addSize(app, "--expert-ranks", line.loss.expertRanks,
              "Ranks that divide the experts among them; divides --ranks and the experts (default: 1)"),
      addSize(
          app, "--vocab-ranks", line.loss.vocabularyRanks,
          "Ranks that divide the embedding table and the output projection among them; divides --ranks (default: 1)"),
      addSize(app, "--micro-batches", line.microBatches,
              "Parts in which a rank's tokens are computed, their gradients added in f32 (default: 1)"),
      app.add_flag(
          "--padded", line.loss.padded,
          "Let each rank have any number of tokens up to --tokens, as plateau-run --rank-tokens says; not with "
          "--micro-batches or losses of routers"),
      addChoice<Checkpoint>(app, "--checkpoint", line.loss.checkpoint,
                            "What the backward pass computes again instead of keeping (default: none)",
                            {{"none", Checkpoint::None}, {"layer", Checkpoint::Layer}}),
      addChoice<Emit>(app, "--emit", line.emit, "The forward loss alone, or the whole training step (default: step)",
                      {{"loss", Emit::Loss}, {"step", Emit::Step}}),
      addNumberWithDefault(app, "--balance-loss", line.loss.balanceLoss,
                           "Factor of the loss that evens out experts, for each layer",
                           "router_aux_loss_coef where output_router_logits is true", factors, isFactor),
      addChoice<BalanceKind>(app, "--balance-kind", line.loss.balanceKind,
                             "Whether experts are to be even over all tokens or in each sequence (default: global)",
                             {{"global", BalanceKind::Global}, {"sequence", BalanceKind::Sequence}}),
      addNumber(app, "--z-loss", line.loss.zLoss, "Factor of the loss that keeps a router's logits small", factors,
                isFactor),
      addNumber(app, "--label-smoothing", line.loss.labelSmoothing,
                "Part of each label that goes to all tokens of the vocabulary alike", "a number in [0, 1)", isFraction),
      addNumber(app, "--vocab-z-loss", line.loss.vocabularyZLoss,
                "Factor of the loss that keeps the logits of the vocabulary small", factors, isFactor),
      addNumberWithDefault(app, "--logit-softcap", line.loss.logitSoftcap,
                           "Bound of the logits of the vocabulary, which a tanh keeps them within; 0 for none",
                           "final_logit_softcapping", factors, isFactor),
      addNumber(app, "--bias-update-rate", optimizer.biasUpdateRate,
                "What a step adds to or takes from a router's correction bias", factors, isFactor),
      addNumber(app, "--weight-decay", optimizer.weightDecay, "Weight decay of AdamW", "a number >= 0",
                [](double value) { return value >= 0 && std::isfinite(value); }),
      addNumber(app, "--clip-norm", optimizer.clipNorm, "Largest gradient norm; inf for no clipping",
                "a number > 0 that fits f32, or inf",
                [](double value) { return float(value) > 0 && std::isinf(float(value)) == std::isinf(value); }),
      addNumber(app, "--beta1", optimizer.beta1, "Decay of AdamW's first moment", "a number in [0, 1)",
                [](double value) { return value >= 0 && value < 1; }),
      addNumber(app, "--beta2", optimizer.beta2, "Decay of AdamW's second moment", "a number in [0, 1)",
                [](double value) { return value >= 0 && value < 1; }),
      addNumber(app, "--epsilon", optimizer.epsilon, "AdamW's epsilon", "a number > 0 that fits f32",
                [](double value) { return float(value) > 0 && std::isfinite(float(value)); })};
  std::vector<CLI::Option *> all(std::begin(required), std::end(required));
  all.insert(all.end(), std::begin(optional), std::end(optional));
  app.final_callback([&app, &line, all, needed = std::size(required)] {
    for (size_t index = 0; index < all.size(); ++index) {
      CLI::Option *option = all[index];
      if (line.count && option->count())
        throw CLI::ExcludesError("--count", option->get_name());
      if (!line.count && index < needed && !option->count())
        throw CLI::RequiredError(option->get_name());
    }
    if (line.json && !line.count)
      throw CLI::RequiresError("--json", "--count");
    if (line.count)
      return;
    line.choosesBalanceKind = app.get_option("--balance-kind")->count() > 0;
    line.choosesBiasUpdateRate = app.get_option("--bias-update-rate")->count() > 0;
    for (auto [option, count] :
         {std::pair("--expert-ranks", line.loss.expertRanks), {"--vocab-ranks", line.loss.vocabularyRanks}})
      if (line.loss.ranks % count)
        throw CLI::ValidationError(option, std::to_string(count) + " does not divide --ranks " +
                                               std::to_string(line.loss.ranks));
    if (line.loss.tokens % line.loss.sequence)
      throw CLI::ValidationError("--tokens", std::to_string(line.loss.tokens) + " is not a multiple of --sequence " +
                                                 std::to_string(line.loss.sequence));
    if (line.loss.tokens / line.loss.sequence % line.microBatches)
      throw CLI::ValidationError("--micro-batches", std::to_string(line.microBatches) + " does not divide the " +
                                                        std::to_string(line.loss.tokens / line.loss.sequence) +
                                                        " sequences of --tokens");
    if (line.loss.padded && line.microBatches > 1)
      throw CLI::ValidationError("--padded", "is not supported with --micro-batches " +
                                                 std::to_string(line.microBatches) + ", only with 1");
    line.optimizer.microBatches = line.microBatches;
    line.loss.tokens /= line.microBatches;
    line.loss.takesLabelCount = line.microBatches > 1;
    line.loss.microBatches = line.microBatches;
  });
}

//===----------------------------------------------------------------------===//
// What it does
//===----------------------------------------------------------------------===//

/// Puts the name of the configuration before an error that says what is wrong with it as a whole.
static llvm::Error inFile(const SourceText &source, llvm::Error error) {
  return error ? source.error(llvm::toString(std::move(error))) : llvm::Error::success();
}

/// An option that nothing in the program heeds is an error, not silence.
static llvm::Error checkHeeded(const ModelConfig &config, const CommandLine &line) {
  if (line.choosesBalanceKind &&
      (config.sparse.empty() || line.loss.balanceLoss.value_or(config.experts.balanceLoss) == 0))
    return llvm::createStringError("there is no balance loss for --balance-kind to shape: give --balance-loss too");
  if (line.choosesBiasUpdateRate && (config.sparse.empty() || !config.experts.correctionBias))
    return llvm::createStringError(
        "no router has a correction bias for --bias-update-rate: that takes layers with experts "
        "and \"topk_method\": \"noaux_tc\"");
  return llvm::Error::success();
}

static llvm::Error emit(const SourceText &source, const ModelConfig &config, ArrayRef<Parameter> parameters,
                        const CommandLine &line) {
  if (llvm::Error error = inFile(source, checkLossOptions(config, line.loss)))
    return error;
  if (llvm::Error error = inFile(source, checkHeeded(config, line)))
    return error;
  DialectRegistry registry;
  registerLossDialects(registry);
  plateau::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = buildLoss(&context, config, parameters, line.loss);
  if (!module)
    return inFile(source, llvm::createStringError("the program built from it is not valid; see above"));
  if (line.emit == Emit::Step) {
    PassManager manager(&context);
    buildTrainingStepPipeline(manager, line.optimizer);
    if (failed(manager.run(*module)))
      return inFile(source, llvm::createStringError("no training step could be made of its loss; see above"));
  }
  return writeModule(*module, line.output);
}

static llvm::Error run(const CommandLine &line) {
  llvm::Expected<SourceText> source = SourceText::read(line.config);
  if (!source)
    return source.takeError();
  llvm::Expected<ModelConfig> config = parseConfig(*source, llvm::errs());
  if (!config)
    return config.takeError();
  llvm::Expected<std::vector<Parameter>> parameters = listParameters(*config);
  if (!parameters)
    return inFile(*source, parameters.takeError());
  if (!line.count)
    return emit(*source, *config, *parameters, line);
  (line.json ? printCountsAsJson : printCounts)(llvm::outs(), countParameters(*config, *parameters));
  return flush(llvm::outs(), standardOutput);
}

int mlir::plateau::importer::importMain(int argc, char **argv) {
  std::signal(SIGPIPE, SIG_IGN); // A reader that has gone is an error of the write, told like any other.
  CommandLine line;
  CLI::App app("Writes the training step of a model, given its Hugging Face config.json, as MLIR.", "plateau-import");
  app.add_option("config", line.config, "The model's config.json")->required()->type_name("FILE");
  app.add_flag("--count", line.count, "Print the numbers of parameters, and make no program");
  app.add_flag("--json", line.json, "With --count: print one JSON object");
  addProgramOptions(app, line);
  app.failure_message([](const CLI::App *, const CLI::Error &error) {
    return std::string("plateau-import: error: ") + error.what() + "\nRun with --help for more information.\n";
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (llvm::Error error = run(line)) {
    llvm::errs() << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
