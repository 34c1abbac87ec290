//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The routes of the tokens of one layer: how many rows each rank sends where, and in which order they lie.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_PLAN_H
#define PLATEAU_RUNTIME_COMMON_PLAN_H

#include "plateau/runtime.h"
#include <vector>

/// Sizes are known on the host once the plan is made; tables of rows lie in the device space.
struct plr_plan {
  plr_context &context;
  plr_group *group;
  int64_t tokens, topK, experts;
  /// Rows of this rank's expert e are expertOffsets[e] … expertOffsets[e + 1] of the received ones.
  std::vector<int64_t> expertOffsets = {0};
  /// Rows sent to, and received from, each rank of the group.
  std::vector<int64_t> sendRows = {}, receiveRows = {};
  /// [tokens, top_k]: the place of a route's row among the rows this rank sends (by destination expert, then token and
  /// slot); −1 for none.
  int32_t *sendPlaces = nullptr;
  /// [received]: the place, expert-major, of each row in the order of arrival (by source rank, then expert).
  int32_t *receivePlaces = nullptr;
  /// [ranks of the group, local experts]: rows received from each rank for each of this rank's experts.
  std::vector<int64_t> receiveCounts = {};
  bool released = false;

  int64_t getRows() const { return expertOffsets.back(); }
  int64_t getLocalExperts() const { return static_cast<int64_t>(expertOffsets.size()) - 1; }
};

#endif // PLATEAU_RUNTIME_COMMON_PLAN_H
