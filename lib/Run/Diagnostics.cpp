//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Diagnostics.h"
#include "plateau/Dialect/MoE/IR/Scope.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

DiagnosticPrinter::DiagnosticPrinter(llvm::StringRef tool, llvm::StringRef path, llvm::SourceMgr &sources,
                                     MLIRContext *context)
    : tool(tool), path(path), lines(sources, context),
      names(context, [this](Diagnostic &diagnostic) { return printNamed(diagnostic); }) {}

LogicalResult DiagnosticPrinter::printNamed(Diagnostic &diagnostic) {
  if (LocationAttr(diagnostic.getLocation()).findInstanceOf<FileLineColRange>())
    return failure(); // For the handler that shows the line.
  llvm::StringRef kind = diagnostic.getSeverity() == DiagnosticSeverity::Error     ? "error"
                         : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? "warning"
                                                                                   : "note";
  llvm::errs() << tool << ": " << kind << ": " << path << ": ";
  if (llvm::StringRef name = moe::getLocationName(diagnostic.getLocation()); !name.empty())
    llvm::errs() << name << ": ";
  llvm::errs() << diagnostic << "\n";
  for (Diagnostic &note : diagnostic.getNotes())
    llvm::errs() << tool << ": note: " << note << "\n";
  return success();
}
