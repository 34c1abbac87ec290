//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// From the words of a command line to what they ask for.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_BENCH_COMMANDLINE_H
#define PLATEAU_LIB_BENCH_COMMANDLINE_H

#include "plateau/Bench/DispatchOptions.h"
#include "plateau/Bench/VocabOptions.h"
#include <variant>

namespace CLI {
class App;
} // namespace CLI

namespace mlir::plateau::bench {

/// The options of what is asked for, or the exit code when that is all there is to do.
using CommandLine = std::variant<VocabOptions, DispatchOptions, int>;
CommandLine parseCommandLine(int argc, const char *const *argv);

void declareDispatch(CLI::App &app, DispatchOptions &options);
/// Throws a CLI::ValidationError when options do not go together.
void checkDispatch(DispatchOptions &options);

} // namespace mlir::plateau::bench

#endif // PLATEAU_LIB_BENCH_COMMANDLINE_H
