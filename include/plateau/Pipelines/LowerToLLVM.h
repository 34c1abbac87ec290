//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What both paths end with.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_PIPELINES_LOWERTOLLVM_H
#define PLATEAU_PIPELINES_LOWERTOLLVM_H

#include "mlir/Pass/PassManager.h"

namespace mlir::plateau {

/// Adds to `manager` (on modules) what functions on tensors need before they are converted to programs.
void buildPrepareTensorsPipeline(OpPassManager &manager);

/// Adds to `manager` (on modules) what lowers compiled kernels, loops and calls to the LLVM dialect alone.
void buildLowerToLLVMPipeline(OpPassManager &manager);

} // namespace mlir::plateau

#endif // PLATEAU_PIPELINES_LOWERTOLLVM_H
