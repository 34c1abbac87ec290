//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A layer's experts in the form of each method, with its memory planned.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_DISPATCHMETHODS_H
#define PLATEAU_BENCH_DISPATCHMETHODS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "plateau/Bench/DispatchOptions.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

namespace mlir::plateau::bench {

/// A method on the sizes of the options.
struct DispatchPlan {
  DispatchMethod method;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function; ///< In the method's form, on tensors.
  moe::PlanOp routing;   ///< The op of it that makes the plan of routes.
  /// Of a rank, all spaces, with room for whatever the routing may be: arenas, arguments and results; the least that
  /// they could be; and the arenas alone.
  int64_t plannedBytes = 0, lowerBoundBytes = 0, workingSetBytes = 0;
  int64_t hostFences = 0;

  /// Only memory that no routing can pass is worth planning: the others run from a pool.
  bool isPooled() const { return method != DispatchMethod::Pipelined; }
  moe::PlanType getType() { return routing.getPlan().getType(); }
};

/// Gives a copy of `module`, that of getLayerText, the form of `method`, schedules and plans. What is wrong is said in
/// diagnostics.
FailureOr<DispatchPlan> planDispatch(ModuleOp module, DispatchMethod method, const DispatchOptions &options);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_DISPATCHMETHODS_H
