//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The routes of the tokens of one layer: how many rows each rank sends where, and in which order they lie.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_PLAN_H
#define PLATEAU_RUNTIME_COMMON_PLAN_H

#include "plateau/runtime.h"
#include "plateau/runtime_footprint.h"
#include <new>

/// Lies at the front of a plan's host memory, its arrays of sizes behind it; tables of rows lie in the device space. So
/// a plan is written and read like any other memory of a step.
struct plr_plan {
  static constexpr uint64_t mark = 0x6e616c7020726c70; // "plr plan"

  plr_context *context;
  plr_group *group;
  int64_t tokens, topK, experts, localExperts;
  /// Rows of this rank's expert e are expertOffsets[e] … expertOffsets[e + 1] of the received ones.
  int64_t *expertOffsets;
  /// Rows sent to, and received from, each rank of the group.
  int64_t *sendRows, *receiveRows;
  /// [experts]: rows this rank sends to each expert.
  int64_t *counts;
  /// [ranks of the group, local experts]: rows received from each rank for each of this rank's experts.
  int64_t *receiveCounts;
  /// [experts]: scratch of the loops that place rows.
  int64_t *next;
  /// [tokens, top_k]: the place of a route's row among the rows this rank sends (by destination expert, then token and
  /// slot); −1 for none.
  int32_t *sendPlaces;
  /// [received]: the place, expert-major, of each row in the order of arrival (by source rank, then expert).
  int32_t *receivePlaces;
  int32_t isPooled; ///< Made by plr_plan_create.
  int32_t released;
  uint64_t complete; ///< `mark` once the sizes are there. Memory without a plan hardly ever has it.

  /// A plan without any of its numbers, for `ranks` ranks, in memory of plr_footprint_plan_host bytes.
  static plr_plan *layOut(void *host, plr_context &context, plr_group *group, int64_t ranks, int64_t tokens,
                          int64_t topK, int64_t experts) {
    plr_plan &plan = *new (host) plr_plan{};
    plan.context = &context;
    plan.group = group;
    plan.tokens = tokens;
    plan.topK = topK;
    plan.experts = experts;
    plan.localExperts = experts / ranks;
    auto *numbers = reinterpret_cast<int64_t *>(static_cast<char *>(host) + PLR_PLAN_HEADER_BYTES);
    auto take = [&](int64_t count) {
      int64_t *array = numbers;
      numbers += count;
      return array;
    };
    plan.expertOffsets = take(plan.localExperts + 1);
    plan.sendRows = take(ranks);
    plan.receiveRows = take(ranks);
    plan.counts = take(experts);
    plan.receiveCounts = take(experts);
    plan.next = take(experts);
    return &plan;
  }

  bool isComplete() const { return complete == mark; }
  int64_t getRows() const { return expertOffsets[localExperts]; }
  int64_t getLocalExperts() const { return localExperts; }
};

static_assert(sizeof(plr_plan) <= PLR_PLAN_HEADER_BYTES, "plr_footprint_plan_host reserves less");

#endif // PLATEAU_RUNTIME_COMMON_PLAN_H
