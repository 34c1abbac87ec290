//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Registers the dialects of Plateau, and the external models by which upstream ops join its interfaces.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INITALLDIALECTS_H
#define PLATEAU_INITALLDIALECTS_H

#include "mlir/IR/DialectRegistry.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/Sched/IR/Sched.h"
#include "plateau/Interfaces/ExternalModels.h"

namespace mlir::plateau {

inline void registerAllDialects(DialectRegistry &registry) {
  registry.insert<moe::MoEDialect, sched::SchedDialect>();
  registerArithDifferentiableModels(registry);
  registerLinalgDifferentiableModels(registry);
  registerMathDifferentiableModels(registry);
  registerShardModels(registry);
  registerTensorDifferentiableModels(registry);
}

} // namespace mlir::plateau

#endif // PLATEAU_INITALLDIALECTS_H
