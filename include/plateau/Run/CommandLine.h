//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The command line of plateau-run.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_COMMANDLINE_H
#define PLATEAU_RUN_COMMANDLINE_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::plateau::run {

/// Does what the command line asks for. Exit code 0: done; 1: input refused or run failed; 2: bad command line; 130:
/// interrupted.
int runMain(int argc, char **argv, DialectRegistry &registry);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_COMMANDLINE_H
