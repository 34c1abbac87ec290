//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Execution/StepExecutor.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::plateau;

static int64_t getBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
}

int64_t StepExecutor::getArgumentBytes(unsigned index) const {
  return getBytes(func::FuncOp(function).getArgumentTypes()[index]);
}

int64_t StepExecutor::getResultBytes(unsigned index) const {
  return getBytes(func::FuncOp(function).getResultTypes()[index]);
}
