//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The moe dialect: its attributes and ops.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_MOE_H
#define PLATEAU_DIALECT_MOE_IR_MOE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "plateau/Interfaces/Component.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include "plateau/Interfaces/FootprintOpInterface.h"
#include "plateau/Interfaces/RoutedOpInterface.h"
#include <optional>

namespace mlir::plateau::moe {

/// No tensor has more elements: the bytes of so many, of any type in use, and sums of a few such sizes fit 64 bits.
inline constexpr int64_t maxElements = int64_t(1) << 60;

/// The elements of a static shape; none when there are more than `maxElements`.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);

/// The results of the op, when it stands in a checkpoint region, are kept for the backward pass and not computed again.
template <typename ConcreteType>
class SavedByCheckpoint : public OpTrait::TraitBase<ConcreteType, SavedByCheckpoint> {};

} // namespace mlir::plateau::moe

#include "plateau/Dialect/MoE/IR/MoEEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "plateau/Dialect/MoE/IR/MoEAttrs.h.inc"
#include "plateau/Dialect/MoE/IR/MoEDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "plateau/Dialect/MoE/IR/MoETypes.h.inc"
#define GET_OP_CLASSES
#include "plateau/Dialect/MoE/IR/MoEOps.h.inc"

namespace mlir::plateau::moe {

/// RO1: an op on rows names an iteration exactly when its plan has several.
LogicalResult verifyIndex(Operation *op, PlanType plan, Value index);

} // namespace mlir::plateau::moe

#endif // PLATEAU_DIALECT_MOE_IR_MOE_H
