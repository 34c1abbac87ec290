//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/group.h"
#include "host/plan_use.h"
#include "host/scratch.h"

using namespace plateau::rt;
using namespace plateau::rt::host;

namespace {
/// Rows of one width on their way between tokens and experts. `sent` holds them as this rank sends them in
/// plr_dispatch; plr_combine goes the other way.
struct Part {
  int64_t rowBytes = 0; ///< 0: the call has no such part.
  const void *input = nullptr;
  void *result = nullptr;
  void *sent = nullptr;
};

/// A call: what its task needs.
struct Move {
  Caller caller;
  plr_plan *plan;
  int64_t iteration;
  plr_type type;
  int64_t columns;
  Part rows, values;

  /// A rank that is alone needs no staging: send order, by slot, token and slot of the token, is the order at the
  /// experts too.
  bool isAlone() const { return plan->ranks == 1; }
  TokenSet getTokens() const { return plan->getTokens(iteration); }
  /// From `sent` to the places at the experts of all ranks, or back.
  Outcome exchange(bool back) const;
};
} // namespace

Outcome Move::exchange(bool back) const {
  // A rank sends by destination and slot; what it receives lies by slot and source.
  ExchangeSide tokens, experts;
  tokens.ends.narrow = plan->getSendEnds(iteration);
  experts.ends.narrow = plan->getReceiveEnds(iteration);
  experts.isBlockMajor = true;
  Exchange exchanges[2];
  for (int i = 0; i < 2; ++i) {
    const Part &part = i == 0 ? rows : values;
    exchanges[i] = back ? Exchange{experts, tokens, part.rowBytes, part.input, part.sent, plan->slots}
                        : Exchange{tokens, experts, part.rowBytes, part.sent, part.result, plan->slots};
  }
  return plan->group->allToAll(caller, columns, type == PLR_BF16 ? "bf16 columns" : "f32 columns", exchanges, 2);
}

static Outcome dispatch(const Move &move) {
  const plr_plan &plan = *move.plan;
  const bool alone = move.isAlone();
  const Part &rows = move.rows, &values = move.values;
  scatterRows(move.getTokens(), plan.shape.top_k, rows.rowBytes, plan.sendPlaces, rows.input,
              alone ? rows.result : rows.sent);
  if (values.rowBytes > 0)
    scatterValues(move.getTokens(), plan.shape.top_k, plan.sendPlaces, static_cast<const float *>(values.input),
                  static_cast<float *>(alone ? values.result : values.sent));
  return alone ? Outcome{} : move.exchange(false);
}

static Outcome combine(const Move &move) {
  const plr_plan &plan = *move.plan;
  const bool alone = move.isAlone();
  const Part &rows = move.rows, &values = move.values;
  if (!alone)
    if (Outcome outcome = move.exchange(true); outcome.status != PLR_OK)
      return outcome;
  if (rows.rowBytes > 0)
    sumSlots(move.type, move.getTokens(), plan.shape.top_k, move.columns, plan.sendPlaces,
             alone ? rows.input : rows.sent, rows.result);
  if (values.rowBytes > 0)
    gatherValues(move.getTokens(), plan.shape.top_k, plan.sendPlaces,
                 static_cast<const float *>(alone ? values.input : values.sent), static_cast<float *>(values.result));
  return {};
}

/// Gives the parts their staging memory and enqueues the task.
static void enqueueMove(Call &call, Move move, const Workspace &workspace, Outcome (*run)(const Move &)) {
  const plr_plan &plan = *move.plan;
  const int64_t sent = plan.getSentRows(move.iteration);
  call.tensor("staging", &plan, {sent, move.columns});
  if (call.isRefused())
    return;
  const int64_t bytes = plr_footprint_exchange(plan.ranks, sent, move.rows.rowBytes, move.values.rowBytes > 0);
  Scratch scratch(call, workspace, bytes, call.getTag().component);
  if (call.getContext().error.getStatus() != PLR_OK)
    return;
  char *next = static_cast<char *>(scratch.get());
  if (next)
    for (Part *part : {&move.rows, &move.values}) {
      part->sent = next;
      next += plr_footprint_lines(sent * part->rowBytes);
    }
  scratch.enqueue([=](const Running &) { return run(move); });
}

/// Checks what the two calls have in common; whether there is anything to do.
static bool begin(Call &call, const plr_plan *plan, int64_t iteration, plr_type type, int64_t columns,
                  const Workspace &workspace) {
  checkPlan(call, plan, iteration);
  call.type("type", type);
  call.size("columns", columns);
  workspace.check(call);
  return !call.isRefused() && !call.isPreparing() && iteration < plan->iterations;
}

extern "C" plr_status plr_dispatch(plr_lane *lane, const plr_tag *tag, plr_plan *plan, int64_t iteration, plr_type type,
                                   int64_t columns, const void *input, const float *values, void *rows,
                                   float *row_values, void *workspace, int64_t workspace_bytes) {
  return enter(lane, "plr_dispatch", tag, [&](Call &call) {
    const Workspace given = {workspace, workspace_bytes};
    if (!begin(call, plan, iteration, type, columns, given))
      return;
    Move move = {{lane->kind, call.getName(), tag}, plan, iteration, type, columns, {}, {}};
    const int64_t received = plan->getRows(iteration);
    if (input || rows) {
      call.tensor("input", input, {plan->shape.tokens, columns});
      call.tensor("rows", rows, {received, columns});
      move.rows = {columns * getTypeBytes(type), input, rows};
    }
    if (values || row_values) {
      call.tensor("values", values, {plan->shape.tokens, plan->shape.top_k});
      call.tensor("row_values", row_values, {received});
      move.values = {sizeof(float), values, row_values};
    }
    enqueueMove(call, move, given, &dispatch);
  });
}

extern "C" plr_status plr_combine(plr_lane *lane, const plr_tag *tag, plr_plan *plan, int64_t iteration, plr_type type,
                                  int64_t columns, const void *rows, const float *row_values, void *result,
                                  float *values, void *workspace, int64_t workspace_bytes) {
  return enter(lane, "plr_combine", tag, [&](Call &call) {
    const Workspace given = {workspace, workspace_bytes};
    if (!begin(call, plan, iteration, type, columns, given))
      return;
    Move move = {{lane->kind, call.getName(), tag}, plan, iteration, type, columns, {}, {}};
    const int64_t received = plan->getRows(iteration);
    if (rows || result) {
      call.tensor("rows", rows, {received, columns});
      call.tensor("result", result, {plan->shape.tokens, columns});
      move.rows = {columns * getTypeBytes(type), rows, result};
    }
    if (row_values || values) {
      call.tensor("row_values", row_values, {received});
      call.tensor("values", values, {plan->shape.tokens, plan->shape.top_k});
      move.values = {sizeof(float), row_values, values};
    }
    enqueueMove(call, move, given, &combine);
  });
}
