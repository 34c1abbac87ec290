//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the calls that use a plan check.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_PLAN_USE_H
#define PLATEAU_RUNTIME_HOST_PLAN_USE_H

#include "common/plan.h"
#include "host/call.h"

namespace plateau::rt::host {

/// Nobody looks into a plan while the context prepares.
inline void checkPlan(Call &call, const plr_plan *plan) {
  if (!plan)
    call.refuse("the plan is null");
  else if (call.isPreparing() || call.isRefused())
    return;
  else if (!plan->isComplete())
    call.refuse("there is no plan: plr_plan_fill has not run, or a fence behind it is missing");
  else if (plan->context != &call.getContext())
    call.refuse("the plan is another context's");
  else if (plan->released)
    call.refuse("the plan was released");
}

/// Likewise, and the number of an iteration.
inline void checkPlan(Call &call, const plr_plan *plan, int64_t iteration) {
  checkPlan(call, plan);
  call.size("iteration", iteration);
  if (call.isRefused() || call.isPreparing())
    return;
  if (iteration >= plan->getMostIterations())
    call.refuse("iteration is " + std::to_string(iteration) + ", but the plan has at most " +
                std::to_string(plan->getMostIterations()));
  else if (int64_t rows = iteration < plan->iterations ? plan->getRows(iteration) : 0;
           plan->shape.capacity > 0 && rows > plan->shape.capacity)
    call.refuse("iteration " + std::to_string(iteration) + " has " + std::to_string(rows) +
                " rows, but the capacity is " + std::to_string(plan->shape.capacity) +
                ": something has written over the plan");
}

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_PLAN_USE_H
