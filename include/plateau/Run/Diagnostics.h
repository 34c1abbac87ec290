//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// How tools print diagnostics about the file that they read.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_DIAGNOSTICS_H
#define PLATEAU_RUN_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

namespace mlir::plateau::run {

/// While it lives, the diagnostics of a context go to the standard error: with the line that they are about, or, since
/// imported files have no lines, with the name of the op after that of tool and file.
class DiagnosticPrinter {
public:
  DiagnosticPrinter(llvm::StringRef tool, llvm::StringRef path, llvm::SourceMgr &sources, MLIRContext *context);

private:
  LogicalResult printNamed(Diagnostic &diagnostic);

  std::string tool, path;
  SourceMgrDiagnosticHandler lines;
  ScopedDiagnosticHandler names; ///< Asked first.
};

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_DIAGNOSTICS_H
