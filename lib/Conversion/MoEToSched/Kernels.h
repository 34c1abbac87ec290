//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Elementwise linalg.generic ops as LLVM functions on raw pointers.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_CONVERSION_MOETOSCHED_KERNELS_H
#define PLATEAU_LIB_CONVERSION_MOETOSCHED_KERNELS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::plateau {

class KernelBuilder {
public:
  explicit KernelBuilder(ModuleOp module) : module(module) {}

  /// The kernel of `op`: `void kernel(void **pointers)`, inputs first, then results. Equal ops share one. Fails with a
  /// diagnostic when `op` is not elementwise.
  FailureOr<LLVM::LLVMFuncOp> getKernel(linalg::GenericOp op);

private:
  LLVM::LLVMFuncOp build(linalg::GenericOp op);

  ModuleOp module;
  llvm::StringMap<LLVM::LLVMFuncOp> kernels;
};

} // namespace mlir::plateau

#endif // PLATEAU_LIB_CONVERSION_MOETOSCHED_KERNELS_H
