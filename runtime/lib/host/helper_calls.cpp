//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Weights on their way to the ranks that help with an expert, and gradients on their way back.
#include "common/group.h"
#include "host/plan_use.h"
#include "host/scratch.h"
#include <algorithm>

using namespace plateau::rt;
using namespace plateau::rt::host;

/// Whether some rank helps some other; all ranks know alike.
static bool hasHelpers(const plr_plan &plan) {
  const int32_t *helped = plan.assignment.helped, *end = helped + plan.ranks * plan.shape.helper_slots;
  return std::any_of(helped, end, [](int32_t expert) { return expert >= 0; });
}

extern "C" plr_status plr_migrate_experts(plr_lane *lane, const plr_tag *tag, plr_plan *plan, plr_type type,
                                          int64_t count, const void *weights, void *helpers) {
  return enter(lane, "plr_migrate_experts", tag, [&](Call &call) {
    checkPlan(call, plan);
    call.type("type", type);
    call.size("count", count);
    if (call.isRefused() || call.isPreparing())
      return;
    call.tensor("weights", weights, {plan->localExperts, count});
    call.tensor("helpers", helpers, {plan->shape.helper_slots, count});
    if (call.isRefused() || !hasHelpers(*plan))
      return;
    call.enqueue([=, caller = Caller{lane->kind, "plr_migrate_experts", tag}](const Running &) {
      const int64_t slots = plan->shape.helper_slots;
      return plan->group->fetchRows(caller, type, count, plan->localExperts, weights, slots,
                                    plan->assignment.helped + plan->group->place * slots, helpers);
    });
  });
}

extern "C" plr_status plr_return_expert_grads(plr_lane *lane, const plr_tag *tag, plr_plan *plan, int64_t count,
                                              const float *helper_grads, float *grads, void *workspace,
                                              int64_t workspace_bytes) {
  return enter(lane, "plr_return_expert_grads", tag, [&](Call &call) {
    checkPlan(call, plan);
    call.size("count", count);
    const Workspace given = {workspace, workspace_bytes};
    given.check(call);
    if (call.isRefused() || call.isPreparing())
      return;
    call.tensor("helper_grads", helper_grads, {plan->shape.helper_slots, count});
    call.tensor("grads", grads, {plan->localExperts, count});
    if (call.isRefused() || !hasHelpers(*plan))
      return;
    Scratch scratch(call, given, plr_footprint_return_experts(plan->ranks, count), call.getTag().component);
    scratch.enqueue([=, staging = static_cast<float *>(scratch.get()),
                     caller = Caller{lane->kind, "plr_return_expert_grads", tag}](const Running &) {
      return plan->group->addRows(caller, count, plan->localExperts, helper_grads, plan->shape.helper_slots,
                                  plan->assignment.helped, staging, grads);
    });
  });
}
