//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_TRANSFORMS_PASSES_H
#define PLATEAU_DIALECT_MOE_TRANSFORMS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::plateau::moe {

#define GEN_PASS_DECL
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"

} // namespace mlir::plateau::moe

#endif // PLATEAU_DIALECT_MOE_TRANSFORMS_PASSES_H
