//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Executors.h"
#include "plateau/Run/StepSignature.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

llvm::Error run::readOutput(StepExecutor &executor, int rank, unsigned index, llvm::MutableArrayRef<char> bytes) {
  if (std::optional<unsigned> argument = getDonatingArgument(executor.getFunction(), index))
    return executor.readArgument(rank, *argument, bytes);
  return executor.readResult(rank, index, bytes);
}
