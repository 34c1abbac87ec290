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

/// Where the pieces of a side of an exchange end, in units, in the order in which they lie: numbers of either width, or
/// pieces of one unit each.
struct Ends {
  const int32_t *narrow = nullptr;
  const int64_t *wide = nullptr;

  int64_t operator[](int64_t i) const { return narrow ? narrow[i] : wide ? wide[i] : i + 1; }
};

/// One side: a piece for each rank of the group and each block, without gaps.
struct ExchangeSide {
  Ends ends;
  bool isBlockMajor = false; ///< [blocks, ranks] instead of [ranks, blocks].

  int64_t getNumber(int64_t rank, int64_t ranks, int64_t block, int64_t blocks) const {
    return isBlockMajor ? block * ranks + rank : rank * blocks + block;
  }
};

/// Data that every rank of a group sends to every other.
struct Exchange {
  ExchangeSide sends, receives;
  int64_t bytes; ///< Of a unit.
  const void *input;
  void *result;
  int64_t blocks = 1; ///< Pieces from one rank to another; it must agree.
};

/// Where a piece begins, and its size.
struct ByteRange {
  int64_t begin, bytes;
};
inline ByteRange getPiece(const ExchangeSide &side, int64_t number, int64_t bytes) {
  int64_t begin = number == 0 ? 0 : side.ends[number - 1];
  return {begin * bytes, (side.ends[number] - begin) * bytes};
}

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
  int64_t hops = 0;                      ///< Places that data move on in the group; it must agree.
  const plr_plan_shape *shape = nullptr; ///< Of a plan; all but the tokens must agree.
};

/// "plr_all_reduce of 8 f32 for moe.loss_sum (vocabulary, forward)".
std::string describe(const Contribution &contribution);

/// Why these contributions, one for each of `members`, are not one collective; empty when they are.
std::string findMismatch(const Contribution *const *contributions, const int32_t *members, int32_t count);

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_CONTRIBUTION_H
