//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The generated definitions of all ops; their verifiers stand in one file for each family.
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "plateau/Dialect/MoE/IR/MoEOps.cpp.inc"
