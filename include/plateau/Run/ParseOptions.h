//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// From the words of a command line to options.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_PARSEOPTIONS_H
#define PLATEAU_RUN_PARSEOPTIONS_H

#include "plateau/Run/Options.h"
#include <variant>

namespace mlir::plateau::run {

struct CommandLine {
  RunOptions run;
  TrainingOptions training;
  std::optional<EntryOptions> entry; ///< There for --entry: no training then.
};

/// The options, or the exit code after help or an error has been printed.
std::variant<CommandLine, int> parseCommandLine(int argc, const char *const *argv);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_PARSEOPTIONS_H
