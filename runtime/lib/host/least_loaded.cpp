//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/least_loaded.h"
#include <algorithm>
#include <cstdint>
#include <numeric>

using namespace plateau::rt::host;

namespace {

/// Products of a fraction's terms and sums of rows.
__extension__ typedef __int128 Wide;

class Planner {
public:
  Planner(int64_t ranks, const plr_plan_shape &shape, const Assignment &result, const AssignmentScratch &scratch)
      : ranks(ranks), local(shape.experts / ranks), shape(shape), result(result), scratch(scratch),
        total(std::accumulate(scratch.loads, scratch.loads + shape.experts, int64_t(0))),
        cap(static_cast<int64_t>(static_cast<Wide>(shape.alpha_numerator) * total / shape.alpha_denominator / ranks)) {}

  void run();

private:
  int64_t getLoad(int64_t rank) const { return scratch.assigned[rank] + scratch.pending[rank]; }
  /// Whether the ranks are so even that every expert stays where it is. `pending` holds the loads of ranks.
  bool isEven() const {
    int64_t most = *std::max_element(scratch.pending, scratch.pending + ranks);
    return static_cast<Wide>(most) * ranks * shape.threshold_denominator <
           static_cast<Wide>(total) * shape.threshold_numerator;
  }
  void assign(int64_t expert);
  void give(int64_t rank, int64_t slot, int64_t rows);
  /// The helper slot of a rank that has this expert, or a free one; −1 for none.
  int64_t findSlot(int64_t rank, int64_t expert) const;

  const int64_t ranks, local;
  const plr_plan_shape &shape;
  const Assignment &result;
  const AssignmentScratch &scratch;
  const int64_t total, cap;
  int32_t pieces = 0;
  int64_t position = 0; ///< In the list of the expert at hand.
};

} // namespace

void Planner::give(int64_t rank, int64_t slot, int64_t rows) {
  position += rows;
  scratch.assigned[rank] += rows;
  result.pieces[pieces++] = {position, static_cast<int32_t>(rank), static_cast<int32_t>(slot)};
}

int64_t Planner::findSlot(int64_t rank, int64_t expert) const {
  const int32_t *helped = result.helped + rank * shape.helper_slots;
  for (int64_t slot = 0; slot < shape.helper_slots; ++slot) // Slots are taken in order.
    if (helped[slot] == expert || helped[slot] < 0)
      return slot;
  return -1;
}

void Planner::assign(int64_t expert) {
  const int64_t owner = expert / local;
  int64_t left = scratch.loads[expert];
  position = 0;
  result.firstPiece[expert] = pieces;
  scratch.pending[owner] -= left;
  if (int64_t own = std::min(left, cap - getLoad(owner)); own > 0) {
    give(owner, expert % local, own);
    left -= own;
  }
  while (left > 0) {
    int64_t helper = -1, slot = -1;
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (rank != owner && (helper < 0 || getLoad(rank) < getLoad(helper)))
        if (int64_t place = findSlot(rank, expert); place >= 0) {
          helper = rank;
          slot = place;
        }
    if (helper < 0) {
      give(owner, expert % local, left);
      return;
    }
    // Where the least loaded rank has room for too few rows, all do, and it gets all that is left.
    int64_t rows = std::min(left, cap - getLoad(helper));
    if (rows < shape.min_rows)
      rows = left;
    result.helped[helper * shape.helper_slots + slot] = static_cast<int32_t>(expert);
    give(helper, local + slot, rows);
    left -= rows;
  }
}

void Planner::run() {
  const int64_t experts = shape.experts;
  std::fill(result.helped, result.helped + ranks * shape.helper_slots, -1);
  std::fill(scratch.assigned, scratch.assigned + ranks, 0);
  std::fill(scratch.pending, scratch.pending + ranks, 0);
  for (int64_t expert = 0; expert < experts; ++expert)
    scratch.pending[expert / local] += scratch.loads[expert];
  if (isEven()) {
    assignToOwners(ranks, shape, result);
    return;
  }
  std::iota(scratch.order, scratch.order + experts, 0);
  std::sort(scratch.order, scratch.order + experts, [this](int64_t a, int64_t b) {
    return scratch.loads[a] != scratch.loads[b] ? scratch.loads[a] > scratch.loads[b] : a < b;
  });
  for (int64_t i = 0; i < experts; ++i)
    assign(scratch.order[i]);
}

void plateau::rt::host::assignToOwners(int64_t ranks, const plr_plan_shape &shape, const Assignment &result) {
  const int64_t local = shape.experts / ranks;
  std::fill(result.helped, result.helped + ranks * shape.helper_slots, -1);
  for (int64_t expert = 0; expert < shape.experts; ++expert) {
    result.firstPiece[expert] = static_cast<int32_t>(expert);
    result.pieces[expert] = {INT64_MAX, static_cast<int32_t>(expert / local), static_cast<int32_t>(expert % local)};
  }
}

void plateau::rt::host::assignLeastLoaded(int64_t ranks, const plr_plan_shape &shape, const Assignment &result,
                                          const AssignmentScratch &scratch) {
  Planner(ranks, shape, result, scratch).run();
}
