//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The command line of plateau-bench.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_MAIN_H
#define PLATEAU_BENCH_MAIN_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::plateau::bench {

/// Measures what the command line asks for. Exit code 0: done; 1: it cannot be run, or methods disagree; 2: bad command
/// line.
int benchMain(int argc, char **argv, DialectRegistry &registry);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_MAIN_H
