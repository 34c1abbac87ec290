//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "CommandLineTypes.h"
#include "plateau/Run/MemoryLimits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir::plateau;
using namespace mlir::plateau::bench;

namespace {
struct MoveWord {
  const char *word;
  VocabMethod method;
};
} // namespace

/// In the order in which `all` runs them; auto, which is one of them again, comes behind.
static constexpr MoveWord moveWords[] = {{"standard", VocabMethod::Standard},
                                         {"standard-inplace", VocabMethod::StandardInPlace},
                                         {"vocab-parallel", VocabMethod::VocabParallel},
                                         {"weights", VocabMethod::RingWeights},
                                         {"activations", VocabMethod::RingActivations},
                                         {"none", VocabMethod::Tiles},
                                         {"auto", VocabMethod::Auto}};

static void addMove(CLI::App &app, llvm::SmallVector<VocabMethod> &methods) {
  auto set = [&methods](const std::string &text) {
    methods.clear();
    for (llvm::StringRef word : llvm::split(text, ',')) {
      llvm::SmallVector<VocabMethod> named;
      for (const MoveWord &move : moveWords)
        if (word == move.word || (word == "all" && move.method != VocabMethod::Auto))
          named.push_back(move.method);
      if (named.empty())
        throw CLI::ValidationError("--move", "'" + word.str() +
                                                 "' is not one of all, standard, standard-inplace, vocab-parallel, "
                                                 "weights, activations, none, auto");
      for (VocabMethod method : named)
        if (!llvm::is_contained(methods, method))
          methods.push_back(method);
    }
  };
  app.add_option_function<std::string>(
         "--move", set,
         "Methods, separated by commas: what goes round the ranks (weights, activations, none, auto), or all logits at "
         "once (standard, standard-inplace, vocab-parallel), or all of them (default: all)")
      ->type_name("WORD,...");
}

static void declareVocab(CLI::App &app, VocabOptions &options) {
  // Within these bounds no tensor passes 2^60 elements.
  addInteger(app, "--tokens", options.tokens, 1, int64_t(1) << 28, "Tokens of a rank")->required();
  addInteger(app, "--hidden", options.hidden, 1, int64_t(1) << 20, "Width of a token's row")->required();
  addInteger(app, "--vocab", options.vocabulary, 1, INT32_MAX, "Size of the vocabulary, divided over the ranks")
      ->required();
  addInteger(app, "--ranks", options.ranks, 1, 1024, "Number of ranks (default 1)");
  addChoice(app, "--dtype", options.isBF16, "f32", "bf16",
            "Type of tokens' rows and of the table (default f32); gradients are f32");
  addMove(app, options.methods);
  auto setTileBytes = [&options](const std::string &text) {
    auto bytes = run::parseBytes(text);
    if (!bytes)
      throw CLI::ValidationError("--tile-bytes", llvm::toString(bytes.takeError()));
    options.tileBytes = *bytes;
  };
  app.add_option_function<std::string>("--tile-bytes", setTileBytes, "The most that a tile has (default 16MiB)")
      ->type_name("BYTES");
  addChoice(app, "--hop", options.hopsByTile, "shard", "tile",
            "How much goes on to the next rank at once: all, or tile by tile in less memory (default shard)");
  app.add_flag("--plan-only", options.planOnly, "Plan and count, but run and allocate nothing");
  addInteger(app, "--repeat", options.repeat, 1, 1 << 20, "Timed runs of each method, after two others (default 5)");
  addSeed(app, options.seed);
  app.add_flag("--json", options.json, "Print one JSON object a method");
}

/// What counts operations is 64 bits wide.
static void checkSizes(const VocabOptions &options) {
  std::optional<int64_t> product = 16;
  for (int64_t size : {options.tokens, options.hidden, options.getShardRows(), int64_t(options.ranks)})
    product = product ? llvm::checkedMul(*product, size) : std::nullopt;
  if (!product)
    throw CLI::ValidationError("vocab", "tokens times hidden times vocabulary passes 2^59; give smaller sizes");
}

CommandLine bench::parseCommandLine(int argc, const char *const *argv) {
  VocabOptions options;
  DispatchOptions dispatchOptions;
  CLI::App app("Compares methods for one part of a step: memory, bytes sent, time.", "plateau-bench");
  app.get_formatter()->column_width(34);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App *, const CLI::Error &error) {
    return std::string("plateau-bench: error: ") + error.what() + "\nRun with --help for more information.\n";
  });
  CLI::App *vocab = app.add_subcommand("vocab", "Vocabulary loss and its gradients, from tokens' rows and the table");
  declareVocab(*vocab, options);
  CLI::App *dispatch = app.add_subcommand(
      "dispatch", "Experts of a layer and their gradients, from tokens' rows and routes to rows back at home");
  declareDispatch(*dispatch, dispatchOptions);
  try {
    app.parse(argc, argv);
    if (dispatch->parsed()) {
      checkDispatch(dispatchOptions);
      return dispatchOptions;
    }
    checkSizes(options);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.methods.empty())
    for (const MoveWord &move : moveWords)
      if (move.method != VocabMethod::Auto)
        options.methods.push_back(move.method);
  return options;
}
