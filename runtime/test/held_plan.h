//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A plan of given row counts, without ranks that exchange them.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_TEST_HELD_PLAN_H
#define PLATEAU_RUNTIME_TEST_HELD_PLAN_H

#include "common/plan.h"
#include "plan_shape.h"
#include <vector>

namespace plateau::rt::test {

/// What grouped products read: the rows of each expert, of which the last `helperSlots` are other ranks'. Its memory
/// goes with it.
class HeldPlan {
public:
  HeldPlan(plr_context *context, const std::vector<int64_t> &counts, int64_t helperSlots = 0) {
    plr_plan_shape shape = makeShape(0, 1, static_cast<int64_t>(counts.size()) - helperSlots);
    shape.helper_slots = helperSlots;
    memory.resize(static_cast<size_t>(getPlanHostBytes(1, shape)) / 8);
    plan = plr_plan::layOut(memory.data(), *context, nullptr, 1, shape);
    for (size_t i = 0; i < counts.size(); ++i)
      plan->slotOffsets[i + 1] = plan->slotOffsets[i] + counts[i];
    plan->iterations = 1;
    plan->complete = plr_plan::mark;
  }
  HeldPlan(const HeldPlan &) = delete;
  HeldPlan &operator=(const HeldPlan &) = delete;

  operator const plr_plan *() const { return plan; }
  plr_plan *operator->() const { return plan; }

private:
  std::vector<int64_t> memory; ///< Zeros.
  plr_plan *plan = nullptr;
};

} // namespace plateau::rt::test

#endif // PLATEAU_RUNTIME_TEST_HELD_PLAN_H
