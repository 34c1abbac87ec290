//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "CommandLineTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;
using llvm::StringRef;

static bool isDigits(StringRef text) { return !text.empty() && text.size() <= 12 && llvm::all_of(text, llvm::isDigit); }

static void setProfile(RoutingProfile &profile, const std::string &text) {
  profile = {};
  if (text == "balanced")
    return;
  auto [percent, hot] = StringRef(text).split('/');
  if (!isDigits(percent) || !isDigits(hot) || percent.getAsInteger(10, profile.percent) || profile.percent > 100 ||
      hot.getAsInteger(10, profile.hotExperts) || profile.hotExperts < 1)
    throw CLI::ValidationError("--profile",
                               "'" + text +
                                   "' is neither balanced nor r/h, r per cent of the tokens on the first h "
                                   "experts");
}

static void setCapacity(RowCapacity &capacity, const std::string &text) {
  StringRef number = text;
  capacity = {};
  capacity.isTimesMean = number.consume_back("x");
  auto [whole, fraction] = number.split('.');
  capacity.denominator = 1;
  for (size_t digit = 0; digit < fraction.size() && digit < 6; ++digit)
    capacity.denominator *= 10;
  bool isNumber = isDigits(whole) && whole.size() <= 10 &&
                  (number == whole || (capacity.isTimesMean && isDigits(fraction) && fraction.size() <= 6));
  if (!isNumber || (whole + fraction).str().empty() ||
      StringRef((whole + fraction).str()).getAsInteger(10, capacity.numerator) || capacity.numerator < 1)
    throw CLI::ValidationError("--capacity-rows",
                               "'" + text + "' is neither a number of rows nor, like 1.1x, a number of times the mean");
}

/// A decimal number or a quotient of two integers.
static void addFraction(CLI::App &app, const std::string &name, std::string &target, const std::string &help) {
  auto set = [&target, name](const std::string &text) {
    auto isPair = [&](char separator) {
      auto [left, right] = StringRef(text).split(separator);
      return isDigits(left) && isDigits(right);
    };
    if (!isDigits(text) && !isPair('.') && !isPair('/'))
      throw CLI::ValidationError(name, "'" + text + "' is no number like 1, 1.3 or 13/10");
    target = text;
  };
  app.add_option_function<std::string>(name, set, help)->type_name("NUMBER");
}

void bench::declareDispatch(CLI::App &app, DispatchOptions &options) {
  app.add_option_function<std::string>(
         "--profile", [&options](const std::string &text) { setProfile(options.profile, text); },
         "What tokens choose: balanced, or r/h, where the first r per cent of a rank's tokens choose the first h "
         "experts "
         "alone and the others the rest")
      ->type_name("balanced|r/h")
      ->required();
  // Within these bounds no tensor passes 2^60 elements.
  addInteger(app, "--tokens", options.tokens, 1, int64_t(1) << 24, "Tokens of a rank")->required();
  addInteger(app, "--hidden", options.hidden, 1, int64_t(1) << 20, "Width of a token's row")->required();
  addInteger(app, "--expert-hidden", options.expertHidden, 1, int64_t(1) << 20, "Width of an expert")->required();
  addInteger(app, "--experts", options.experts, 1, 1 << 16, "Number of experts, divided over the ranks")->required();
  addInteger(app, "--top-k", options.topK, 1, 1 << 10, "Experts of a token")->required();
  addInteger(app, "--ranks", options.ranks, 1, 1024, "Number of ranks")->required();
  addInteger(app, "--chunks", options.chunks, 1, int64_t(1) << 24, "Chunks of pipelined-llep (default 8)");
  addFraction(app, "--alpha", options.alpha,
              "llep: rows that a rank computes, as a number of times the mean, while others can take what is above "
              "(default 1)");
  addInteger(app, "--min-rows", options.minRows, 1, int64_t(1) << 40,
             "llep: fewest rows of an expert that are worth its weights' way (default 1024)");
  addFraction(app, "--imbalance-threshold", options.threshold,
              "llep: below this ratio of the fullest rank's rows to the mean every expert stays at home (default 1.3)");
  addInteger(app, "--helper-slots", options.helperSlots, 0, 1 << 16,
             "llep: experts of other ranks that a rank may help with (default 4)");
  app.add_option_function<std::string>(
         "--capacity-rows", [&options](const std::string &text) { setCapacity(options.capacity, text); },
         "Most rows that a rank receives in an iteration of pipelined-llep: a number, or like 1.1x a number of times "
         "the "
         "mean, which is top-k · tokens of a chunk (default 1.25x)")
      ->type_name("ROWS|FACTORx");
  addInteger(app, "--in-flight", options.inFlight, 1, 1 << 10, "Iterations of pipelined-llep at a time (default 2)");
  addChoice(app, "--dtype", options.isBF16, "f32", "bf16",
            "Type of rows and weights (default f32); gradients of weights are f32");
  app.add_flag("--contiguous", options.isContiguous,
               "Figures of send and received as if chunks were of consecutive tokens; implies --plan-only");
  app.add_flag("--forward-only", options.forwardOnly, "No gradients");
  app.add_flag("--plan-only", options.planOnly,
               "Plan memory and route tokens, but compute nothing and allocate no rows");
  addInteger(app, "--repeat", options.repeat, 1, 1 << 20, "Timed runs of each method, after two others (default 5)");
  addSeed(app, options.seed);
  app.add_flag("--json", options.json, "Print one JSON object a method");
}

void bench::checkDispatch(DispatchOptions &options) {
  if (options.experts % options.ranks != 0)
    throw CLI::ValidationError("dispatch", std::to_string(options.experts) + " experts do not divide over " +
                                               std::to_string(options.ranks) + " ranks; give a multiple of the ranks");
  if (options.profile.hotExperts >= options.experts)
    throw CLI::ValidationError("dispatch", "profile " + options.profile.getName() + " leaves no expert of " +
                                               std::to_string(options.experts) +
                                               " to the other tokens; give fewer than that behind the /");
  if (options.chunks > options.tokens)
    throw CLI::ValidationError("dispatch", std::to_string(options.chunks) + " chunks of " +
                                               std::to_string(options.tokens) +
                                               " tokens: give at most as many chunks as tokens");
  // What counts bytes is 64 bits wide.
  auto fits = [](std::initializer_list<int64_t> sizes) {
    std::optional<int64_t> product = 16;
    for (int64_t size : sizes)
      product = product ? llvm::checkedMul(*product, size) : std::nullopt;
    return product.has_value();
  };
  int64_t width = std::max(options.hidden, 2 * options.expertHidden);
  if (!fits({options.ranks, options.tokens, options.topK, width}) ||
      !fits({options.experts, options.expertHidden, options.hidden}))
    throw CLI::ValidationError("dispatch", "rows of all tokens, or weights of all experts, pass 2^59 elements; give "
                                           "smaller sizes");
  if (!options.capacity.isTimesMean && !fits({options.capacity.numerator, width}))
    throw CLI::ValidationError("dispatch", "the capacity passes 2^59 elements; give fewer rows");
  options.planOnly |= options.isContiguous;
}
