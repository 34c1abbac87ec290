//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Where the plans of a function go.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHPLANS_H
#define PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHPLANS_H

#include "PipelineDispatchGroups.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::plateau::moe {

/// A plan, under all its names, and the ops on its rows.
struct PlanUses {
  PlanOp op;
  SmallVector<Value> names; ///< In checkpoint regions, and as their results.
  std::string reason;       ///< Why its rows cannot be taken in parts; empty when they can.
  Location place;           ///< What the reason is about.
  SmallVector<DispatchGroup> groups;

  explicit PlanUses(PlanOp op) : op(op), place(op.getLoc()) {}
};

/// The plans that a function makes.
SmallVector<std::unique_ptr<PlanUses>> findPlans(FunctionOpInterface function);

} // namespace mlir::plateau::moe

#endif // PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHPLANS_H
