//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What a function on tensors costs a rank, counted op by op.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_PROGRAMCOST_H
#define PLATEAU_BENCH_PROGRAMCOST_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::plateau::bench {

struct ProgramCost {
  int64_t sentBytes = 0; ///< That a rank sends to others, by CollectiveOpInterface.
  int64_t flops = 0;     ///< 2 m n k of each matrix product.
};

/// Ops in loops count as often as they run. Fails, with a diagnostic, at a loop whose bounds are not constants or a
/// grid that is not there.
FailureOr<ProgramCost> getProgramCost(func::FuncOp function);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_PROGRAMCOST_H
