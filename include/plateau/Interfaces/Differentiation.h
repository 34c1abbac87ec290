//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Reverse-mode differentiation of a block of ops through DifferentiableOpInterface.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_DIFFERENTIATION_H
#define PLATEAU_INTERFACES_DIFFERENTIATION_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::plateau {

/// Gives the location of an adjoint from that of its op.
using AdjointLocation = llvm::function_ref<Location(Location)>;

/// Builds the adjoints of the ops of `block`, last first, at the builder's insertion point.
///
/// `inputs` are the values (arguments of the block) whose cotangents are wanted. `cotangents` maps values of the block
/// to the cotangents known so far (the seeds) and is extended; after success an input without an entry does not
/// influence a seed. `restored` maps a value of the forward pass to the value that stands for it in the adjoint (saved
/// or computed again); a value it does not map stands for itself. Fails with a diagnostic at an op that has no adjoint
/// though an input flows through it, and at an adjoint that reads anything but its residuals and cotangents.
LogicalResult buildBlockAdjoint(OpBuilder &builder, Block &block, ValueRange inputs, const IRMapping &restored,
                                llvm::DenseMap<Value, Value> &cotangents, AdjointLocation locate);

} // namespace mlir::plateau

#endif // PLATEAU_INTERFACES_DIFFERENTIATION_H
