//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_CONVERSION_PASSES_H
#define PLATEAU_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::plateau {

#define GEN_PASS_DECL
#include "plateau/Conversion/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "plateau/Conversion/Passes.h.inc"

} // namespace mlir::plateau

#endif // PLATEAU_CONVERSION_PASSES_H
