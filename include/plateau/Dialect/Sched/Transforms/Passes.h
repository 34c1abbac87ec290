//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_TRANSFORMS_PASSES_H
#define PLATEAU_DIALECT_SCHED_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "plateau/Dialect/Sched/IR/Sched.h"

namespace mlir::plateau::sched {

#define GEN_PASS_DECL
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"

} // namespace mlir::plateau::sched

#endif // PLATEAU_DIALECT_SCHED_TRANSFORMS_PASSES_H
