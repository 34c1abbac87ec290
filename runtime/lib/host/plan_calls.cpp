//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/group.h"
#include "common/plan.h"
#include "host/call.h"
#include "host/routes.h"
#include <algorithm>

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

/// Fills the sizes of a plan from its counts.
static void setSizes(plr_plan &plan) {
  const int64_t ranks = plan.group->getSize(), local = plan.localExperts;
  std::fill(plan.sendRows, plan.sendRows + ranks, 0);
  std::fill(plan.receiveRows, plan.receiveRows + ranks, 0);
  std::fill(plan.expertOffsets, plan.expertOffsets + local + 1, 0);
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t expert = 0; expert < local; ++expert) {
      int64_t received = plan.receiveCounts[rank * local + expert];
      plan.sendRows[rank] += plan.counts[rank * local + expert];
      plan.receiveRows[rank] += received;
      plan.expertOffsets[expert + 1] += received;
    }
  for (int64_t expert = 0; expert < local; ++expert)
    plan.expertOffsets[expert + 1] += plan.expertOffsets[expert];
}

/// Counts and places the routes of this rank, tells the group, and so knows what arrives.
static Outcome exchangeCounts(plr_plan &plan, const Caller &caller, const int32_t *ids) {
  std::string fault = countRoutes(plan.tokens, plan.topK, plan.experts, ids, plan.counts);
  if (!fault.empty())
    return {PLR_BAD_DATA, std::move(fault)};
  placeRoutes(plan.tokens * plan.topK, plan.experts, ids, plan.counts, plan.sendPlaces, plan.next);
  // Until the counts have come, rows of ranks stand for numbers of experts.
  int64_t *local = plan.sendRows;
  std::fill(local, local + plan.group->getSize(), plan.localExperts);
  Exchange exchange = {local, local, sizeof(int64_t), plan.counts, plan.receiveCounts};
  Outcome outcome = plan.group->allToAll(caller, plan.experts, "experts", &exchange, 1);
  if (outcome.status != PLR_OK)
    return outcome;
  setSizes(plan);
  if (plan.getRows() > INT32_MAX)
    return {PLR_INVALID_ARGUMENT,
            "this rank would receive " + std::to_string(plan.getRows()) + " rows, but their number must fit 32 bits"};
  return {};
}

static void placeArrivals(plr_plan &plan) {
  host::placeArrivals(plan.group->getSize(), plan.localExperts, plan.receiveCounts, plan.receivePlaces, plan.next);
}

//===----------------------------------------------------------------------===//
// Plans in memory of the runtime
//===----------------------------------------------------------------------===//

static void releaseTables(plr_plan &plan, const char *call) {
  for (int32_t *table : {plan.sendPlaces, plan.receivePlaces})
    if (table)
      release(*plan.context, PLR_DEVICE, table, call);
  plan.released = 1;
}

static int32_t *allocatePlaces(Call &call, int64_t rows) {
  return static_cast<int32_t *>(allocate(call.getContext(), PLR_DEVICE, rows * static_cast<int64_t>(sizeof(int32_t)),
                                         call.getTag(), call.getName()));
}

/// Whether all went well; else the context knows why.
static bool makePlan(Call &call, plr_plan &plan, const int32_t *ids) {
  plr_lane &lane = call.getLane();
  plan.sendPlaces = allocatePlaces(call, plan.tokens * plan.topK);
  if (!plan.sendPlaces)
    return false;
  Caller caller = {lane.kind, call.getName(), &call.getTag()};
  call.enqueue([&plan, caller, ids](const Running &) { return exchangeCounts(plan, caller, ids); });
  lane.waitIdle();
  if (call.getContext().error.getStatus() != PLR_OK)
    return false;
  plan.receivePlaces = allocatePlaces(call, plan.getRows());
  if (!plan.receivePlaces)
    return false;
  plan.complete = plr_plan::mark; // For the host, which may look at sizes alone.
  // A part of the same call: it has no span of its own.
  lane.enqueue({call.getName(), &call.getTag()}, [&plan](const Running &) -> Outcome {
    ::placeArrivals(plan);
    return {};
  });
  return true;
}

extern "C" plr_plan *plr_plan_create(plr_lane *lane, const plr_tag *tag, plr_group *group, int64_t tokens,
                                     int64_t top_k, int64_t experts, const int32_t *ids) {
  plr_plan *result = nullptr;
  enter(lane, "plr_plan_create", tag, [&](Call &call) {
    checkPlan(call, group, tokens, top_k, experts, ids);
    call.require(!call.isPreparing(), "it waits for rows, which nobody sends while the context prepares; use "
                                      "plr_plan_fill");
    if (call.isRefused())
      return;
    const int64_t ranks = group->getSize();
    PooledPlan pooled = {std::make_unique<unsigned char[]>(plr_footprint_plan_host(ranks, experts)), nullptr};
    pooled.plan = plr_plan::layOut(pooled.memory.get(), call.getContext(), group, ranks, tokens, top_k, experts);
    plr_plan &plan = *pooled.plan;
    plan.isPooled = 1;
    call.getContext().plans.push_back(std::move(pooled));
    if (makePlan(call, plan, ids))
      result = &plan;
    else
      releaseTables(plan, call.getName());
  });
  return result;
}

extern "C" void plr_plan_release(plr_plan *plan) {
  guard(plan ? plan->context : nullptr, "plr_plan_release", [&]() -> plr_status {
    if (!plan->isPooled)
      return plan->context->fail(PLR_INVALID_ARGUMENT,
                                 "plr_plan_release: the plan lies in the caller's memory, made by plr_plan_fill");
    if (plan->released)
      return plan->context->fail(PLR_INVALID_ARGUMENT, "plr_plan_release: the plan was released before");
    releaseTables(*plan, "plr_plan_release");
    return plan->context->error.getStatus();
  });
}

// After a failure the caller's memory may hold anything.
extern "C" int64_t plr_plan_rows(const plr_plan *plan) { return plan && plan->isComplete() ? plan->getRows() : 0; }

//===----------------------------------------------------------------------===//
// Plans in the caller's memory
//===----------------------------------------------------------------------===//

static void checkMemory(Call &call, const char *what, const void *pointer, int64_t bytes, int64_t needed) {
  if (call.isRefused())
    return;
  if (bytes < needed)
    call.refuse("the " + std::string(what) + " memory of the plan has " + std::to_string(bytes) + " bytes, but " +
                std::to_string(needed) + " are needed");
  else if (!pointer && needed > 0)
    call.refuse("the " + std::string(what) + " memory of the plan is null");
  else
    call.aligned(("the " + std::string(what) + " memory of the plan").c_str(), pointer);
}

extern "C" plr_status plr_plan_fill(plr_lane *lane, const plr_tag *tag, plr_group *group, int64_t tokens, int64_t top_k,
                                    int64_t experts, const int32_t *ids, void *host, int64_t host_bytes, void *device,
                                    int64_t device_bytes) {
  return enter(lane, "plr_plan_fill", tag, [&](Call &call) {
    checkPlan(call, group, tokens, top_k, experts, ids);
    if (call.isRefused())
      return;
    const int64_t ranks = group->getSize();
    checkMemory(call, "host", host, host_bytes, plr_footprint_plan_host(ranks, experts));
    checkMemory(call, "device", device, device_bytes, plr_footprint_plan_device(ranks, tokens, top_k));
    call.enqueue([=, caller = Caller{lane->kind, "plr_plan_fill", tag}](const Running &) -> Outcome {
      plr_plan &plan = *plr_plan::layOut(host, group->context, group, ranks, tokens, top_k, experts);
      const int64_t sendBytes = plr_footprint_lines(4 * tokens * top_k);
      plan.sendPlaces = static_cast<int32_t *>(device);
      plan.receivePlaces = reinterpret_cast<int32_t *>(static_cast<char *>(device) + sendBytes);
      if (Outcome outcome = exchangeCounts(plan, caller, ids); outcome.status != PLR_OK)
        return outcome;
      if (int64_t most = (device_bytes - sendBytes) / 4; plan.getRows() > most)
        return {PLR_INVALID_ARGUMENT, "this rank receives " + std::to_string(plan.getRows()) +
                                          " rows, but the device memory of the plan has room for the places of " +
                                          std::to_string(most) + ": the other ranks have more tokens"};
      ::placeArrivals(plan);
      plan.complete = plr_plan::mark;
      return {};
    });
  });
}
