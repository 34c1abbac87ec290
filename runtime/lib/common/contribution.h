//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What one rank brings to a collective.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_CONTRIBUTION_H
#define PLATEAU_RUNTIME_COMMON_CONTRIBUTION_H

#include "plateau/runtime.h"
#include <string>

namespace plateau::rt {

/// Data that every rank of a group sends to every other. Ranks' pieces lie one after the other, in rank order.
struct Exchange {
  const int64_t *sends, *receives; ///< Units to and from each rank of the group.
  int64_t bytes;                   ///< Of a unit.
  const void *input;
  void *result;
};

/// Lives until the rank has left the collective; the others read it, and what it points to, until they have.
struct Contribution {
  const char *call;   ///< "plr_all_reduce".
  int64_t count;      ///< As the caller gave it; it must agree, like `call` and `unit`.
  const char *unit;   ///< What `count` counts: "f32", "experts", …; empty when nothing is counted.
  const plr_tag *tag; ///< For messages: who calls.
  const void *input;  ///< What the other ranks read.
  void *result;       ///< Likewise, once all have passed a first time.
  const Exchange *exchanges = nullptr;
  int32_t exchangeCount = 0;
  int64_t hops = 0; ///< Places that data move on in the group; it must agree.
};

/// "plr_all_reduce of 8 f32 for moe.loss_sum (vocabulary, forward)".
std::string describe(const Contribution &contribution);

/// Why these contributions, one for each of `members`, are not one collective; empty when they are.
std::string findMismatch(const Contribution *const *contributions, const int32_t *members, int32_t count);

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_CONTRIBUTION_H
