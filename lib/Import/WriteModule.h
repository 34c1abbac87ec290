//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writing a module to a file or a stream so that no failure goes unseen and none leaves half a file.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_IMPORT_WRITEMODULE_H
#define PLATEAU_LIB_IMPORT_WRITEMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::plateau::importer {

/// What messages call the standard output.
inline constexpr llvm::StringLiteral standardOutput = "<stdout>";

/// Writes `module` with its locations. A file takes its name only once it is whole: a failure leaves what was there. A
/// pipe or a device is written to, and "-" is the standard output.
llvm::Error writeModule(ModuleOp module, llvm::StringRef path);

/// Flushes `os` and reports, under `name`, what went wrong in writing to it, for which LLVM would abort at exit.
llvm::Error flush(llvm::raw_fd_ostream &os, llvm::StringRef name);

} // namespace mlir::plateau::importer

#endif // PLATEAU_LIB_IMPORT_WRITEMODULE_H
