//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What plateau-compile is asked for.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_COMPILE_COMMANDLINE_H
#define PLATEAU_LIB_COMPILE_COMMANDLINE_H

#include "plateau/runtime.h"
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace mlir::plateau::compile {

enum class Emit { Object, LLVM, Schedule };

struct CommandLine {
  std::string input, output;
  std::optional<std::string> function;
  Emit emit = Emit::Object;
  bool isNative = true;
  plr_gemm_kind gemm = PLR_GEMM_ONEDNN;
  std::optional<int64_t> deviceBytes, hostBytes;
  int64_t inFlight = 0;
  std::string rewrite; ///< Passes before the step is scheduled; none when empty.
};

/// The options, or the exit code when that is all there is to do.
std::variant<CommandLine, int> parseCommandLine(int argc, const char *const *argv);

} // namespace mlir::plateau::compile

#endif // PLATEAU_LIB_COMPILE_COMMANDLINE_H
