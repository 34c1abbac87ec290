//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/group.h"
#include "common/plan.h"
#include "host/call.h"
#include "host/routes.h"
#include "host/scratch.h"

using namespace plateau::rt;
using namespace plateau::rt::host;

namespace {
/// Rows of one width on their way between tokens and experts. `sent` holds them as this rank sends them in
/// plr_dispatch, `received` as they arrive there; plr_combine goes the other way.
struct Part {
  int64_t rowBytes = 0; ///< 0: the call has no such part.
  const void *input = nullptr;
  void *result = nullptr;
  void *sent = nullptr, *received = nullptr;
};

/// A call: what its task needs.
struct Move {
  Caller caller;
  plr_plan *plan;
  plr_type type;
  int64_t columns;
  Part rows, values;

  /// A rank that is alone needs no staging: send order, by expert, token and slot, is the order at the experts too.
  bool isAlone() const { return plan->group->getSize() == 1; }
  int64_t getRoutes() const { return plan->tokens * plan->topK; }
  /// From `sent` to `received` of all ranks, or back.
  Outcome exchange(bool back) const;
};
} // namespace

Outcome Move::exchange(bool back) const {
  const int64_t *sends = plan->sendRows, *receives = plan->receiveRows;
  Exchange exchanges[2];
  for (int i = 0; i < 2; ++i) {
    const Part &part = i == 0 ? rows : values;
    exchanges[i] = back ? Exchange{receives, sends, part.rowBytes, part.received, part.sent}
                        : Exchange{sends, receives, part.rowBytes, part.sent, part.received};
  }
  return plan->group->allToAll(caller, columns, type == PLR_BF16 ? "bf16 columns" : "f32 columns", exchanges, 2);
}

static Outcome dispatch(const Move &move) {
  const plr_plan &plan = *move.plan;
  const bool alone = move.isAlone();
  const Part &rows = move.rows, &values = move.values;
  scatterRows(move.getRoutes(), plan.topK, rows.rowBytes, plan.sendPlaces, rows.input, alone ? rows.result : rows.sent);
  scatterRows(move.getRoutes(), 1, values.rowBytes, plan.sendPlaces, values.input, alone ? values.result : values.sent);
  if (alone)
    return {};
  if (Outcome outcome = move.exchange(false); outcome.status != PLR_OK)
    return outcome;
  for (const Part &part : {rows, values})
    scatterRows(plan.getRows(), 1, part.rowBytes, plan.receivePlaces, part.received, part.result);
  return {};
}

static Outcome combine(const Move &move) {
  const plr_plan &plan = *move.plan;
  const bool alone = move.isAlone();
  const Part &rows = move.rows, &values = move.values;
  if (!alone) {
    for (const Part &part : {rows, values})
      gatherRows(plan.getRows(), part.rowBytes, plan.receivePlaces, part.input, part.received);
    if (Outcome outcome = move.exchange(true); outcome.status != PLR_OK)
      return outcome;
  }
  if (rows.rowBytes > 0)
    sumSlots(move.type, plan.tokens, plan.topK, move.columns, plan.sendPlaces, alone ? rows.input : rows.sent,
             rows.result);
  gatherRows(move.getRoutes(), values.rowBytes, plan.sendPlaces, alone ? values.input : values.sent, values.result);
  return {};
}

static void checkPlan(Call &call, const plr_plan *plan) {
  if (!plan)
    call.refuse("the plan is null");
  else if (call.isPreparing())
    return;
  else if (!plan->isComplete())
    call.refuse("there is no plan: plr_plan_fill has not run, or a fence behind it is missing");
  else if (plan->context != &call.getContext())
    call.refuse("the plan is another context's");
  else if (plan->released)
    call.refuse("the plan was released");
}

static int64_t countSent(const plr_plan &plan) {
  int64_t result = 0;
  for (int32_t rank = 0; rank < plan.group->getSize(); ++rank)
    result += plan.sendRows[rank];
  return result;
}

/// Gives the parts their staging memory and enqueues the task.
static void enqueueMove(Call &call, Move move, const Workspace &workspace, Outcome (*run)(const Move &)) {
  const plr_plan &plan = *move.plan;
  const int64_t sent = countSent(plan), received = plan.getRows();
  call.tensor("staging", &plan, {sent + received, move.columns});
  if (call.isRefused())
    return;
  const int64_t bytes =
      plr_footprint_exchange(plan.group->getSize(), sent, received, move.rows.rowBytes, move.values.rowBytes > 0);
  Scratch scratch(call, workspace, bytes, call.getTag().component);
  if (call.getContext().error.getStatus() != PLR_OK)
    return;
  char *next = static_cast<char *>(scratch.get());
  if (next)
    for (Part *part : {&move.rows, &move.values}) {
      part->sent = next;
      next += plr_footprint_lines(sent * part->rowBytes);
      part->received = next;
      next += plr_footprint_lines(received * part->rowBytes);
    }
  scratch.enqueue([=](const Running &) { return run(move); });
}

extern "C" plr_status plr_dispatch(plr_lane *lane, const plr_tag *tag, plr_plan *plan, plr_type type, int64_t columns,
                                   const void *input, const float *values, void *rows, float *row_values,
                                   void *workspace, int64_t workspace_bytes) {
  return enter(lane, "plr_dispatch", tag, [&](Call &call) {
    checkPlan(call, plan);
    call.type("type", type);
    call.size("columns", columns);
    const Workspace given = {workspace, workspace_bytes};
    given.check(call);
    if (call.isRefused() || call.isPreparing())
      return;
    Move move = {{lane->kind, call.getName(), tag}, plan, type, columns, {}, {}};
    if (input || rows) {
      call.tensor("input", input, {plan->tokens, columns});
      call.tensor("rows", rows, {plan->getRows(), columns});
      move.rows = {columns * getTypeBytes(type), input, rows};
    }
    if (values || row_values) {
      call.tensor("values", values, {plan->tokens, plan->topK});
      call.tensor("row_values", row_values, {plan->getRows()});
      move.values = {sizeof(float), values, row_values};
    }
    enqueueMove(call, move, given, &dispatch);
  });
}

extern "C" plr_status plr_combine(plr_lane *lane, const plr_tag *tag, plr_plan *plan, plr_type type, int64_t columns,
                                  const void *rows, const float *row_values, void *result, float *values,
                                  void *workspace, int64_t workspace_bytes) {
  return enter(lane, "plr_combine", tag, [&](Call &call) {
    checkPlan(call, plan);
    call.type("type", type);
    call.size("columns", columns);
    const Workspace given = {workspace, workspace_bytes};
    given.check(call);
    if (call.isRefused() || call.isPreparing())
      return;
    Move move = {{lane->kind, call.getName(), tag}, plan, type, columns, {}, {}};
    if (rows || result) {
      call.tensor("rows", rows, {plan->getRows(), columns});
      call.tensor("result", result, {plan->tokens, columns});
      move.rows = {columns * getTypeBytes(type), rows, result};
    }
    if (row_values || values) {
      call.tensor("row_values", row_values, {plan->getRows()});
      call.tensor("values", values, {plan->tokens, plan->topK});
      move.values = {sizeof(float), row_values, values};
    }
    enqueueMove(call, move, given, &combine);
  });
}
