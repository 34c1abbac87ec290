//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Kinds of options of a command line.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_BENCH_COMMANDLINETYPES_H
#define PLATEAU_LIB_BENCH_COMMANDLINETYPES_H

#include "llvm/ADT/StringRef.h"
#include <CLI/CLI.hpp>

namespace mlir::plateau::bench {

/// A decimal integer in low..high. (CLI11 alone would take 010 for 8.)
template <typename Target>
CLI::Option *addInteger(CLI::App &app, const std::string &name, Target &target, int64_t low, int64_t high,
                        const std::string &help) {
  auto set = [&target, name, low, high](const std::string &text) {
    int64_t value;
    if (llvm::StringRef(text).getAsInteger(10, value) || value < low || value > high)
      throw CLI::ValidationError(name, "'" + text + "' is no integer from " + std::to_string(low) + " to " +
                                           std::to_string(high));
    target = value;
  };
  return app.add_option_function<std::string>(name, set, help)->type_name("INT");
}

/// One of two words.
inline void addChoice(CLI::App &app, const std::string &name, bool &isSecond, const std::string &first,
                      const std::string &second, const std::string &help) {
  auto set = [&isSecond, name, first, second](const std::string &text) {
    if (text != first && text != second)
      throw CLI::ValidationError(name, "'" + text + "' is neither " + first + " nor " + second);
    isSecond = text == second;
  };
  app.add_option_function<std::string>(name, set, help)->type_name(first + "|" + second);
}

inline void addSeed(CLI::App &app, uint64_t &seed) {
  auto set = [&seed](const std::string &text) {
    if (llvm::StringRef(text).getAsInteger(10, seed))
      throw CLI::ValidationError("--seed", "'" + text + "' is no integer from 0 to 2^64-1");
  };
  app.add_option_function<std::string>("--seed", set, "Seed of the data (default 0)")->type_name("INT");
}

} // namespace mlir::plateau::bench

#endif // PLATEAU_LIB_BENCH_COMMANDLINETYPES_H
