//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The entry point of plateau-compile.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_COMPILE_MAIN_H
#define PLATEAU_COMPILE_MAIN_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::plateau::compile {

/// Compiles a function of a module to an object file. The exit code: 0, 1 for an error in what is read, compiled or
/// written, 2 for a bad command line.
int compileMain(int argc, char **argv, DialectRegistry &registry);

} // namespace mlir::plateau::compile

#endif // PLATEAU_COMPILE_MAIN_H
