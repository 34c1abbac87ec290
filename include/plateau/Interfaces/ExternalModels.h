//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Upstream ops join the interfaces of Plateau by external models.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_EXTERNALMODELS_H
#define PLATEAU_INTERFACES_EXTERNALMODELS_H

namespace mlir {
class DialectRegistry;
}

namespace mlir::plateau {

void registerArithDifferentiableModels(DialectRegistry &registry);
void registerLinalgDifferentiableModels(DialectRegistry &registry);
void registerMathDifferentiableModels(DialectRegistry &registry);
void registerShardModels(DialectRegistry &registry);
void registerTensorDifferentiableModels(DialectRegistry &registry);

} // namespace mlir::plateau

#endif // PLATEAU_INTERFACES_EXTERNALMODELS_H
