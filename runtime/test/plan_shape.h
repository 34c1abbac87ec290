//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Shapes of plans, for tests.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_TEST_PLAN_SHAPE_H
#define PLATEAU_RUNTIME_TEST_PLAN_SHAPE_H

#include "plateau/runtime.h"
#include "plateau/runtime_footprint.h"

namespace plateau::rt::test {

/// Of a plan with one iteration and every expert on its own rank.
inline plr_plan_shape makeShape(int64_t tokens, int64_t topK, int64_t experts) {
  return {tokens, topK, experts, 0, 1, 1, 0, 0, 1, 1, 1, 1};
}

inline int64_t getPlanHostBytes(int64_t ranks, const plr_plan_shape &shape) {
  return plr_footprint_plan_host(ranks, shape.experts, shape.helper_slots, shape.chunks, shape.leaves);
}

inline plr_plan *createPlan(plr_lane *lane, const plr_tag *tag, plr_group *group, int64_t tokens, int64_t topK,
                            int64_t experts, const int32_t *ids) {
  plr_plan_shape shape = makeShape(tokens, topK, experts);
  return plr_plan_create(lane, tag, group, &shape, ids);
}

inline plr_status fillPlan(plr_lane *lane, const plr_tag *tag, plr_group *group, int64_t tokens, int64_t topK,
                           int64_t experts, const int32_t *ids, void *host, int64_t hostBytes, void *device,
                           int64_t deviceBytes) {
  plr_plan_shape shape = makeShape(tokens, topK, experts);
  return plr_plan_fill(lane, tag, group, &shape, ids, host, hostBytes, device, deviceBytes);
}

} // namespace plateau::rt::test

#endif // PLATEAU_RUNTIME_TEST_PLAN_SHAPE_H
