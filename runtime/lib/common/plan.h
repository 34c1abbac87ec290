//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The routes of the tokens of one layer: how many rows each rank sends where in each iteration, and in which order they
// lie.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_PLAN_H
#define PLATEAU_RUNTIME_COMMON_PLAN_H

#include "host/chunk_cut.h"
#include "host/least_loaded.h"
#include "host/routes.h"
#include "plateau/runtime.h"
#include "plateau/runtime_footprint.h"
#include <new>

/// Lies at the front of a plan's host memory, its arrays behind it; the table of places lies in the device space. So a
/// plan is written and read like any other memory of a step. Q = chunks · leaves is the most iterations.
struct plr_plan {
  static constexpr uint64_t mark = 0x6e616c7020726c70; // "plr plan"

  plr_context *context;
  plr_group *group;
  plr_plan_shape shape;
  int64_t ranks, localExperts;
  int64_t slots;      ///< Of experts: the rank's own, then the helper slots.
  int64_t iterations; ///< Those that have tokens.

  /// [Q, ranks, slots]: where the rows for each rank's slot end among those that this rank sends in an iteration.
  int32_t *sendEnds;
  /// [Q, slots, ranks]: where the rows for each slot from each rank end among those that this rank receives.
  int32_t *receiveEnds;
  /// [ranks, slots]: scratch memory.
  int32_t *turned;
  /// [Q, slots + 1]: rows of a slot are slotOffsets[slot] … slotOffsets[slot + 1] of an iteration's received ones.
  int64_t *slotOffsets;
  /// [Q, ranks]: rows of each leaf that each rank receives, from all ranks.
  int64_t *leafRows;
  plateau::rt::host::Cut cut;
  /// [ranks, experts]: rows of each rank for each expert; only with balance.
  int32_t *loads;
  plateau::rt::host::Assignment assignment;
  /// [experts]: positions in an expert's list; whatever else the steps count.
  int64_t *positions;
  plateau::rt::host::AssignmentScratch scratch;
  int64_t *rankSums; ///< [ranks]
  /// [tokens, top_k]: the place of a route's row among the rows that this rank sends in the token's iteration (by
  /// destination, slot, token and slot of the token); −1 for none.
  int32_t *sendPlaces;
  int32_t isPooled; ///< Made by plr_plan_create.
  int32_t released;
  uint64_t complete; ///< `mark` once all is there. Memory without a plan hardly ever has it.

  /// A plan without any of its numbers, for `ranks` ranks, in memory of plr_footprint_plan_host bytes.
  static plr_plan *layOut(void *host, plr_context &context, plr_group *group, int64_t ranks,
                          const plr_plan_shape &shape);

  bool isComplete() const { return complete == mark; }
  int64_t getMostIterations() const { return shape.chunks * shape.leaves; }
  int64_t getSendBins() const { return ranks * slots; }

  // Of an iteration that has tokens.

  const int64_t *getOffsets(int64_t iteration) const { return slotOffsets + iteration * (slots + 1); }
  int64_t getRows(int64_t iteration) const { return getOffsets(iteration)[slots]; }
  const int32_t *getSendEnds(int64_t iteration) const { return sendEnds + iteration * getSendBins(); }
  const int32_t *getReceiveEnds(int64_t iteration) const { return receiveEnds + iteration * getSendBins(); }
  int64_t getSentRows(int64_t iteration) const {
    return getSendBins() > 0 ? getSendEnds(iteration)[getSendBins() - 1] : 0;
  }
  plateau::rt::host::TokenSet getTokens(int64_t iteration) const {
    return {shape.tokens, getMostIterations(), cut.firstLeaf[iteration], shape.chunks, cut.leafCount[iteration]};
  }
};

inline plr_plan *plr_plan::layOut(void *host, plr_context &context, plr_group *group, int64_t ranks,
                                  const plr_plan_shape &shape) {
  plr_plan &plan = *new (host) plr_plan{};
  plan.context = &context;
  plan.group = group;
  plan.shape = shape;
  plan.ranks = ranks;
  plan.localExperts = shape.experts / ranks;
  plan.slots = plan.localExperts + shape.helper_slots;
  const int64_t iterations = plan.getMostIterations(), bins = plan.getSendBins(), experts = shape.experts;
  char *next = static_cast<char *>(host) + plr_footprint_lines(PLR_PLAN_HEADER_BYTES);
  auto take = [&next](auto *&array, int64_t count) {
    array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(next);
    next += plr_footprint_lines(static_cast<int64_t>(sizeof *array) * count);
  };
  take(plan.sendEnds, iterations * bins);
  take(plan.receiveEnds, iterations * bins);
  take(plan.turned, bins);
  take(plan.slotOffsets, iterations * (plan.slots + 1));
  take(plan.leafRows, iterations * ranks);
  take(plan.cut.firstLeaf, 3 * iterations);
  plan.cut.leafCount = plan.cut.firstLeaf + iterations;
  plan.cut.iterationOf = plan.cut.leafCount + iterations;
  take(plan.loads, ranks * experts);
  take(plan.assignment.helped, ranks * shape.helper_slots);
  take(plan.assignment.pieces, 2 * experts + ranks * shape.helper_slots);
  take(plan.assignment.firstPiece, experts);
  take(plan.positions, 3 * experts + 3 * ranks);
  plan.scratch.loads = plan.positions + experts;
  plan.scratch.order = plan.scratch.loads + experts;
  plan.scratch.assigned = plan.scratch.order + experts;
  plan.scratch.pending = plan.scratch.assigned + ranks;
  plan.rankSums = plan.scratch.pending + ranks;
  return &plan;
}

static_assert(sizeof(plr_plan) <= PLR_PLAN_HEADER_BYTES, "plr_footprint_plan_host reserves less");

#endif // PLATEAU_RUNTIME_COMMON_PLAN_H
