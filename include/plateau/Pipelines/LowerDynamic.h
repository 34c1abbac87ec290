//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// From functions on tensors to LLVM, with memory from the runtime's pool.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_PIPELINES_LOWERDYNAMIC_H
#define PLATEAU_PIPELINES_LOWERDYNAMIC_H

#include "mlir/Pass/PassManager.h"

namespace mlir::plateau {

/// Adds to `manager` (a pass manager on modules) what lowers every public function to calls of the runtime: the dynamic
/// path.
void buildLowerDynamicPipeline(OpPassManager &manager);

/// Registers the pipeline as `plateau-lower-dynamic`.
void registerLowerDynamicPipeline();

} // namespace mlir::plateau

#endif // PLATEAU_PIPELINES_LOWERDYNAMIC_H
