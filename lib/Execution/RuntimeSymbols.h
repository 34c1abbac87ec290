//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_EXECUTION_RUNTIMESYMBOLS_H
#define PLATEAU_LIB_EXECUTION_RUNTIMESYMBOLS_H

#include "mlir/ExecutionEngine/ExecutionEngine.h"

namespace mlir::plateau {

/// Tells `engine` where the calls of the runtime are that compiled code makes.
void registerRuntimeSymbols(ExecutionEngine &engine);

} // namespace mlir::plateau

#endif // PLATEAU_LIB_EXECUTION_RUNTIMESYMBOLS_H
