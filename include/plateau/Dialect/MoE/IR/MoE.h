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
#include "plateau/Interfaces/Component.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include "plateau/Interfaces/FootprintOpInterface.h"

#include "plateau/Dialect/MoE/IR/MoEEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "plateau/Dialect/MoE/IR/MoEAttrs.h.inc"
#include "plateau/Dialect/MoE/IR/MoEDialect.h.inc"
#define GET_OP_CLASSES
#include "plateau/Dialect/MoE/IR/MoEOps.h.inc"

#endif // PLATEAU_DIALECT_MOE_IR_MOE_H
