//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// How a plan is made, in one task of a lane.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_PLAN_STEPS_H
#define PLATEAU_RUNTIME_HOST_PLAN_STEPS_H

#include "common/group.h"
#include "common/plan.h"

namespace plateau::rt::host {

/// Fills a plan that was laid out, with its table, together with the other ranks. What they send each other depends on
/// the shape alone.
Outcome makePlan(plr_plan &plan, Caller caller, const int32_t *ids);

/// What came of a plan whose leaves' rows are known and cut, but for the tag and this rank's own ratio. Refuses rows
/// that 32 bits cannot count, on all ranks alike.
Outcome summarize(const plr_plan &plan, plr_plan_record &record);

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_PLAN_STEPS_H
