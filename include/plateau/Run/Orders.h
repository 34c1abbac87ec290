//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Runs a step again with its lanes in other orders.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_ORDERS_H
#define PLATEAU_RUN_ORDERS_H

#include "plateau/Run/Executors.h"
#include "plateau/Run/StepSignature.h"
#include "plateau/Run/TokenData.h"

namespace mlir::plateau::run {

/// Runs the first step as it is, then with the lanes in `count` orders drawn from seeds 1 ... count, each on poisoned
/// arenas. Fails when a byte of a state group or of a result differs, naming the seed, the rank and the result: the
/// schedule then lacks a wait.
llvm::Error checkOrders(Executor &executor, const StepSignature &signature, const TokenData &data, float learningRate,
                        uint64_t stateSeed, int64_t count);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_ORDERS_H
