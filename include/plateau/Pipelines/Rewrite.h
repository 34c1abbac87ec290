//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Passes on tensors that whoever runs or compiles a step chooses by name.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_PIPELINES_REWRITE_H
#define PLATEAU_PIPELINES_REWRITE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::plateau {

/// A function in a module of its own.
struct RewrittenFunction {
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};

/// Fails when `pipeline` is no text of a pass pipeline; the error names it and says why. Passes are known once they are
/// registered.
llvm::Error checkRewrite(llvm::StringRef pipeline);

/// `pipeline` with moe-verify-spaces behind each of its passes.
std::string addVerifiers(llvm::StringRef pipeline);

/// A copy of `function` and of the grids of its module, changed by the passes of `pipeline`, each of which
/// moe-verify-spaces follows. What is passed and returned must stay as it was. Causes that stand in the IR are reported
/// as diagnostics; the error then has no text.
llvm::Expected<RewrittenFunction> rewriteFunction(func::FuncOp function, llvm::StringRef pipeline);

} // namespace mlir::plateau

#endif // PLATEAU_PIPELINES_REWRITE_H
