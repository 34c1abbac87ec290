//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// plateau-opt with the passes that only tests use, all called test-...
//===----------------------------------------------------------------------===//

#include "TestPasses.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "plateau/InitAllDialects.h"
#include "plateau/InitAllPasses.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  mlir::plateau::registerAllDialects(registry);
  mlir::plateau::registerAllPasses();
  mlir::plateau::registerSchedTestPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Plateau test driver\n", registry));
}
