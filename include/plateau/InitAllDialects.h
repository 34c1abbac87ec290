//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Registers the dialects, external models and passes of Plateau, and those of upstream it works with.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INITALLDIALECTS_H
#define PLATEAU_INITALLDIALECTS_H

#include "mlir/IR/DialectRegistry.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

namespace mlir::plateau {

inline void registerAllDialects(DialectRegistry &registry) { registry.insert<moe::MoEDialect>(); }

} // namespace mlir::plateau

#endif // PLATEAU_INITALLDIALECTS_H
