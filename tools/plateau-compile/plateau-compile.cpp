//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Compiles training steps ahead of time.
//===----------------------------------------------------------------------===//

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Transforms/Passes.h"
#include "plateau/Compile/Main.h"
#include "plateau/InitAllDialects.h"
#include "plateau/InitAllPasses.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::plateau::registerAllDialects(registry);
  mlir::registerTransformsPasses();
  mlir::plateau::registerAllPasses(); // For --rewrite.
  return mlir::plateau::compile::compileMain(argc, argv, registry);
}
