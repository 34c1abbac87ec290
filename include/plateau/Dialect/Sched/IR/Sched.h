//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The sched dialect: its attributes, types and ops.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_SCHED_H
#define PLATEAU_DIALECT_SCHED_IR_SCHED_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "plateau/Interfaces/Component.h"
#include <optional>

#include "plateau/Dialect/Sched/IR/SchedEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "plateau/Dialect/Sched/IR/SchedAttrs.h.inc"
#include "plateau/Dialect/Sched/IR/SchedDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "plateau/Dialect/Sched/IR/SchedTypes.h.inc"

#include "plateau/Dialect/Sched/IR/LaneOpInterface.h.inc"
#define GET_OP_CLASSES
#include "plateau/Dialect/Sched/IR/SchedOps.h.inc"

namespace mlir::plateau::sched {

/// Slots start at multiples of it.
inline constexpr int64_t slotAlignment = 64;

/// Bytes of a static memref, each element rounded up to whole bytes.
int64_t getBytes(Type memory);

} // namespace mlir::plateau::sched

#endif // PLATEAU_DIALECT_SCHED_IR_SCHED_H
