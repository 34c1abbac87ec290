//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/group.h"
#include "common/plan.h"
#include "host/call.h"
#include "host/plan_steps.h"
#include <climits>

using namespace plateau::rt;
using namespace plateau::rt::host;

/// What the shape's numbers are by themselves.
static void checkNumbers(Call &call, const plr_plan_shape &shape) {
  auto fits = [&](const char *what, int64_t value) {
    if (!call.isRefused() && value > INT32_MAX)
      call.refuse(std::string(what) + " is " + std::to_string(value) + ", but must fit 32 bits");
  };
  call.size("tokens", shape.tokens);
  call.size("top_k", shape.top_k, 1);
  call.size("experts", shape.experts, 1);
  call.size("helper_slots", shape.helper_slots);
  call.size("chunks", shape.chunks, 1);
  call.size("leaves", shape.leaves, 1);
  call.size("capacity", shape.capacity);
  call.size("alpha_numerator", shape.alpha_numerator);
  call.size("alpha_denominator", shape.alpha_denominator, 1);
  call.size("min_rows", shape.min_rows, 1);
  call.size("threshold_numerator", shape.threshold_numerator);
  call.size("threshold_denominator", shape.threshold_denominator, 1);
  fits("experts", shape.experts);
  fits("helper_slots", shape.helper_slots);
  fits("capacity", shape.capacity);
}

static void checkShape(Call &call, const plr_group *group, const plr_plan_shape *shape, const int32_t *ids) {
  call.require(group, "the group is null");
  if (group && &group->context != &call.getContext())
    call.refuse("the group is another context's");
  call.require(shape, "the shape is null");
  if (call.isRefused())
    return;
  checkNumbers(call, *shape);
  call.tensor("ids", ids, {shape->tokens, shape->top_k});
  if (call.isRefused())
    return;
  const plr_plan_shape &s = *shape;
  const int64_t ranks = group->getSize();
  constexpr int64_t mostIterations = int64_t(1) << 20;
  if (s.tokens > INT32_MAX / s.top_k)
    call.refuse("tokens is " + std::to_string(s.tokens) + " and top_k " + std::to_string(s.top_k) +
                ", but the rows that a rank sends must fit 32 bits");
  else if (s.experts % ranks != 0)
    call.refuse("experts is " + std::to_string(s.experts) + ", which cannot be divided equally among the " +
                std::to_string(ranks) + " ranks of the group");
  else if (s.helper_slots > s.experts - s.experts / ranks)
    call.refuse("helper_slots is " + std::to_string(s.helper_slots) + ", but the other ranks have " +
                std::to_string(s.experts - s.experts / ranks) + " experts");
  else if (s.helper_slots > 0 && s.alpha_numerator == 0)
    call.refuse("helper_slots is " + std::to_string(s.helper_slots) +
                ", but alpha_numerator is 0: nobody helps without balance");
  else if (s.chunks > mostIterations / s.leaves)
    call.refuse("chunks is " + std::to_string(s.chunks) + " and leaves " + std::to_string(s.leaves) +
                ", but their product must be at most " + std::to_string(mostIterations));
  else if (s.leaves > 1 && s.capacity < 1)
    call.refuse("leaves is " + std::to_string(s.leaves) +
                ", but capacity is 0: without one nothing decides which leaves an iteration takes");
}

//===----------------------------------------------------------------------===//
// Plans in memory of the runtime
//===----------------------------------------------------------------------===//

static void releaseTable(plr_plan &plan, const char *call) {
  if (plan.sendPlaces)
    release(*plan.context, PLR_DEVICE, plan.sendPlaces, call);
  plan.released = 1;
}

extern "C" plr_plan *plr_plan_create(plr_lane *lane, const plr_tag *tag, plr_group *group, const plr_plan_shape *shape,
                                     const int32_t *ids) {
  plr_plan *result = nullptr;
  enter(lane, "plr_plan_create", tag, [&](Call &call) {
    checkShape(call, group, shape, ids);
    call.require(!call.isPreparing(), "it waits for rows, which nobody sends while the context prepares; use "
                                      "plr_plan_fill");
    if (call.isRefused())
      return;
    plr_context &context = call.getContext();
    context.planRecords.reserve();
    const int64_t ranks = group->getSize();
    PooledPlan pooled = {std::make_unique<unsigned char[]>(static_cast<size_t>(plr_footprint_plan_host(
                             ranks, shape->experts, shape->helper_slots, shape->chunks, shape->leaves))),
                         nullptr};
    pooled.plan = plr_plan::layOut(pooled.memory.get(), context, group, ranks, *shape);
    plr_plan &plan = *pooled.plan;
    plan.isPooled = 1;
    context.plans.push_back(std::move(pooled));
    plan.sendPlaces =
        static_cast<int32_t *>(allocate(context, PLR_DEVICE, shape->tokens * shape->top_k * 4, *tag, call.getName()));
    if (plan.sendPlaces)
      call.enqueue([&plan, ids, caller = Caller{lane->kind, call.getName(), tag}](const Running &) {
        return makePlan(plan, caller, ids);
      });
    lane->waitIdle();
    if (context.error.getStatus() == PLR_OK)
      result = &plan;
    else
      releaseTable(plan, call.getName());
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
    releaseTable(*plan, "plr_plan_release");
    return plan->context->error.getStatus();
  });
}

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

extern "C" plr_status plr_plan_fill(plr_lane *lane, const plr_tag *tag, plr_group *group, const plr_plan_shape *shape,
                                    const int32_t *ids, void *host, int64_t host_bytes, void *device,
                                    int64_t device_bytes) {
  return enter(lane, "plr_plan_fill", tag, [&](Call &call) {
    checkShape(call, group, shape, ids);
    if (call.isRefused())
      return;
    const int64_t ranks = group->getSize();
    checkMemory(call, "host", host, host_bytes,
                plr_footprint_plan_host(ranks, shape->experts, shape->helper_slots, shape->chunks, shape->leaves));
    checkMemory(call, "device", device, device_bytes, plr_footprint_plan_device(shape->tokens, shape->top_k));
    call.getContext().planRecords.reserve();
    call.enqueue([=, shape = *shape, caller = Caller{lane->kind, "plr_plan_fill", tag}](const Running &) {
      plr_plan &plan = *plr_plan::layOut(host, group->context, group, ranks, shape);
      plan.sendPlaces = static_cast<int32_t *>(device);
      return makePlan(plan, caller, ids);
    });
  });
}

//===----------------------------------------------------------------------===//
// What a plan says
//===----------------------------------------------------------------------===//

// After a failure the caller's memory may hold anything.
extern "C" int64_t plr_plan_iterations(const plr_plan *plan) {
  return plan && plan->isComplete() ? plan->iterations : 0;
}

extern "C" int64_t plr_plan_rows(const plr_plan *plan, int64_t iteration) {
  return iteration >= 0 && iteration < plr_plan_iterations(plan) ? plan->getRows(iteration) : 0;
}

extern "C" int64_t plr_plan_records(plr_context *context, int64_t first, plr_plan_record *records, int64_t capacity) {
  return context ? context->planRecords.read(first, records, records ? capacity : 0) : 0;
}
