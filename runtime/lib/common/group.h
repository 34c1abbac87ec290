//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The ranks of a collective, seen from one of them, and what they can do together within a task of a lane.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_GROUP_H
#define PLATEAU_RUNTIME_COMMON_GROUP_H

#include "common/meeting.h"

namespace plateau::rt {

/// Which task calls: what the ranks compare, and what messages name.
struct Caller {
  plr_lane_kind lane;
  const char *call;
  const plr_tag *tag;
  const plr_plan_shape *shape = nullptr; ///< Of the plan that it makes.
};

const char *getTypeName(plr_type type);
int64_t getTypeBytes(plr_type type);

} // namespace plateau::rt

/// The collectives run in the thread of a lane and return when this rank's part is done and nobody reads its memory any
/// more. A task may call several. An outcome that is not PLR_OK is one on every rank of the group.
struct plr_group {
  plr_group(plr_context &context, std::vector<int32_t> members);

  int32_t getSize() const { return static_cast<int32_t>(members.size()); }

  plateau::rt::host::Outcome allReduce(const plateau::rt::Caller &caller, plr_type type, int64_t count,
                                       const void *input, void *result);
  plateau::rt::host::Outcome allGather(const plateau::rt::Caller &caller, plr_type type, int64_t count,
                                       const void *input, void *result);
  plateau::rt::host::Outcome reduceScatter(const plateau::rt::Caller &caller, plr_type type, int64_t count,
                                           const void *input, void *result);
  plateau::rt::host::Outcome shift(const plateau::rt::Caller &caller, plr_type type, int64_t hops, int64_t count,
                                   const void *input, void *result);
  /// Several exchanges at once. `count` and `unit` are compared with those of the other ranks and otherwise not used.
  plateau::rt::host::Outcome allToAll(const plateau::rt::Caller &caller, int64_t count, const char *unit,
                                      const plateau::rt::Exchange *exchanges, int32_t exchangeCount);

  // The tables of all ranks, of `local` rows of `count` elements each, are one table in rank order.

  /// result[i] = row numbers[i] of the table whose parts are the inputs, where numbers[i] is not negative; i < rows.
  plateau::rt::host::Outcome fetchRows(const plateau::rt::Caller &caller, plr_type type, int64_t count, int64_t local,
                                       const void *input, int64_t rows, const int32_t *numbers, void *result);
  /// Row numbers[r, i] of the table whose parts are the results += row i < rows of rank r's input, where numbers[r, i]
  /// is not negative, and all ranks have the same ones; r ascending, then i. `staging` holds a row.
  plateau::rt::host::Outcome addRows(const plateau::rt::Caller &caller, int64_t count, int64_t local,
                                     const float *input, int64_t rows, const int32_t *numbers, float *staging,
                                     float *result);

  plr_context &context;
  const std::vector<int32_t> members; ///< Ascending.
  const int32_t place;                ///< This rank's.

private:
  /// All ranks of the group run `body`, a function of the meeting at which all have arrived.
  template <typename Body>
  plateau::rt::host::Outcome meet(plr_lane_kind lane, const plateau::rt::Contribution &mine, const Body &body);

  std::array<plateau::rt::Meeting *, PLR_LANES> meetings = {}; ///< Null for a group of one.
};

#endif // PLATEAU_RUNTIME_COMMON_GROUP_H
