//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// From the words of a command line to what they ask for.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_BENCH_COMMANDLINE_H
#define PLATEAU_LIB_BENCH_COMMANDLINE_H

#include "plateau/Bench/VocabOptions.h"
#include <variant>

namespace mlir::plateau::bench {

/// The options, or the exit code when that is all there is to do.
std::variant<VocabOptions, int> parseCommandLine(int argc, const char *const *argv);

} // namespace mlir::plateau::bench

#endif // PLATEAU_LIB_BENCH_COMMANDLINE_H
