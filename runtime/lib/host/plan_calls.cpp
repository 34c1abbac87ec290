//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/group.h"
#include "common/plan.h"
#include "host/call.h"
#include "host/routes.h"

using namespace plateau::rt;
using namespace plateau::rt::host;

static void checkPlan(Call &call, const plr_group *group, int64_t tokens, int64_t topK, int64_t experts,
                      const int32_t *ids) {
  call.require(group, "the group is null");
  if (group && &group->context != &call.getContext())
    call.refuse("the group is another context's");
  call.size("tokens", tokens);
  call.size("top_k", topK, 1);
  call.size("experts", experts, 1);
  call.tensor("ids", ids, {tokens, topK});
  if (call.isRefused())
    return;
  if (tokens > INT32_MAX / topK)
    call.refuse("tokens is " + std::to_string(tokens) + " and top_k " + std::to_string(topK) +
                ", but the rows that a rank sends must fit 32 bits");
  if (experts > INT32_MAX)
    call.refuse("experts is " + std::to_string(experts) + ", but must fit 32 bits");
  if (experts % group->getSize() != 0)
    call.refuse("experts is " + std::to_string(experts) + ", which cannot be divided equally among the " +
                std::to_string(group->getSize()) + " ranks of the group");
}

/// Counts and places the routes of this rank, and tells the group.
static Outcome exchangeCounts(plr_plan &plan, const Caller &caller, const int32_t *ids, int64_t *counts) {
  std::string fault = countRoutes(plan.tokens, plan.topK, plan.experts, ids, counts);
  if (!fault.empty())
    return {PLR_BAD_DATA, std::move(fault)};
  placeRoutes(plan.tokens * plan.topK, plan.experts, ids, counts, plan.sendPlaces);
  // Until the counts have come, rows of ranks stand for numbers of experts.
  std::vector<int64_t> &local = plan.sendRows;
  local.assign(plan.group->getSize(), plan.experts / plan.group->getSize());
  Exchange exchange = {local.data(), local.data(), sizeof(int64_t), counts, plan.receiveCounts.data()};
  return plan.group->allToAll(caller, plan.experts, "experts", &exchange, 1);
}

/// Fills the sizes of a plan from its counts.
static void setSizes(plr_plan &plan, const std::vector<int64_t> &counts) {
  const int64_t ranks = plan.group->getSize(), local = plan.experts / ranks;
  plan.sendRows.assign(ranks, 0);
  plan.receiveRows.assign(ranks, 0);
  plan.expertOffsets.assign(local + 1, 0);
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t expert = 0; expert < local; ++expert) {
      int64_t received = plan.receiveCounts[rank * local + expert];
      plan.sendRows[rank] += counts[rank * local + expert];
      plan.receiveRows[rank] += received;
      plan.expertOffsets[expert + 1] += received;
    }
  for (int64_t expert = 0; expert < local; ++expert)
    plan.expertOffsets[expert + 1] += plan.expertOffsets[expert];
}

static void releaseTables(plr_plan &plan, const char *call) {
  for (int32_t *table : {plan.sendPlaces, plan.receivePlaces})
    if (table)
      release(plan.context, PLR_DEVICE, table, call);
  plan.released = true;
}

static int32_t *allocatePlaces(Call &call, int64_t rows) {
  return static_cast<int32_t *>(allocate(call.getContext(), PLR_DEVICE, rows * static_cast<int64_t>(sizeof(int32_t)),
                                         call.getTag(), call.getName()));
}

/// Whether all went well; else the context knows why.
static bool makePlan(Call &call, plr_plan &plan, const int32_t *ids) {
  plr_context &context = call.getContext();
  plr_lane &lane = call.getLane();
  plan.sendPlaces = allocatePlaces(call, plan.tokens * plan.topK);
  if (!plan.sendPlaces)
    return false;
  std::vector<int64_t> counts(plan.experts);
  plan.receiveCounts.resize(plan.experts);
  Caller caller = {lane.kind, call.getName(), &call.getTag()};
  call.enqueue([&plan, caller, ids, counts = counts.data()](const Running &) {
    return exchangeCounts(plan, caller, ids, counts);
  });
  lane.waitIdle();
  if (context.error.getStatus() != PLR_OK)
    return false;

  setSizes(plan, counts);
  if (plan.getRows() > INT32_MAX) {
    call.refuse("this rank would receive " + std::to_string(plan.getRows()) +
                " rows, but their number must fit 32 bits");
    return false;
  }
  plan.receivePlaces = allocatePlaces(call, plan.getRows());
  if (!plan.receivePlaces)
    return false;
  // A part of the same call: it has no span of its own.
  lane.enqueue({call.getName(), &call.getTag()}, [&plan](const Running &) -> Outcome {
    placeArrivals(plan.group->getSize(), plan.getLocalExperts(), plan.receiveCounts.data(), plan.receivePlaces);
    return {};
  });
  return true;
}

extern "C" plr_plan *plr_plan_create(plr_lane *lane, const plr_tag *tag, plr_group *group, int64_t tokens,
                                     int64_t top_k, int64_t experts, const int32_t *ids) {
  plr_plan *result = nullptr;
  enter(lane, "plr_plan_create", tag, [&](Call &call) {
    checkPlan(call, group, tokens, top_k, experts, ids);
    if (call.isRefused())
      return;
    auto &plans = call.getContext().plans;
    plans.push_back(std::unique_ptr<plr_plan>(new plr_plan{call.getContext(), group, tokens, top_k, experts}));
    plr_plan &plan = *plans.back();
    if (makePlan(call, plan, ids))
      result = &plan;
    else
      releaseTables(plan, call.getName());
  });
  return result;
}

extern "C" void plr_plan_release(plr_plan *plan) {
  guard(plan ? &plan->context : nullptr, "plr_plan_release", [&]() -> plr_status {
    if (plan->released)
      return plan->context.fail(PLR_INVALID_ARGUMENT, "plr_plan_release: the plan was released before");
    releaseTables(*plan, "plr_plan_release");
    return plan->context.error.getStatus();
  });
}

extern "C" int64_t plr_plan_rows(const plr_plan *plan) { return plan ? plan->getRows() : 0; }
