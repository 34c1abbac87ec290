//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Files that are whole or not there.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_COMPILE_OUTPUT_H
#define PLATEAU_LIB_COMPILE_OUTPUT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::plateau::compile {

/// Writes what `print` prints: to a file beside `path` that takes its name once it is whole, into a device or a pipe
/// that is there, or to the standard output for "-".
llvm::Error writeOutput(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> print);

} // namespace mlir::plateau::compile

#endif // PLATEAU_LIB_COMPILE_OUTPUT_H
