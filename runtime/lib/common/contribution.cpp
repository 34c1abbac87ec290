//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/contribution.h"
#include "common/names.h"
#include <array>
#include <cstring>

using namespace plateau::rt;

/// The numbers of a shape that ranks share, in the order of their names.
static std::array<int64_t, 11> getShared(const plr_plan_shape &s) {
  return {s.experts,
          s.top_k,
          s.helper_slots,
          s.chunks,
          s.leaves,
          s.capacity,
          s.alpha_numerator,
          s.alpha_denominator,
          s.min_rows,
          s.threshold_numerator,
          s.threshold_denominator};
}

static std::string describe(const plr_plan_shape &shape) {
  static const char *const before[] = {
      "",  " experts, top_k ", ", helper_slots ", ", chunks ", ", leaves ", ", capacity ", ", alpha ",
      "/", ", min_rows ",      ", threshold ",    "/"};
  std::string text;
  const std::array<int64_t, 11> numbers = getShared(shape);
  for (size_t i = 0; i < numbers.size(); ++i)
    text += before[i] + std::to_string(numbers[i]);
  return text;
}

std::string plateau::rt::describe(const Contribution &contribution) {
  std::string text = contribution.call;
  if (contribution.shape)
    text += " of " + ::describe(*contribution.shape);
  else if (*contribution.unit)
    text += " of " + std::to_string(contribution.count) + " " + contribution.unit;
  if (contribution.hops != 0)
    text += " by " + std::to_string(contribution.hops) + (contribution.hops == 1 ? " hop" : " hops");
  return text + " for " + describe(*contribution.tag);
}

static bool agree(const Contribution &a, const Contribution &b) {
  return std::strcmp(a.call, b.call) == 0 && std::strcmp(a.unit, b.unit) == 0 && a.count == b.count &&
         a.exchangeCount == b.exchangeCount && a.hops == b.hops && !a.shape == !b.shape &&
         (!a.shape || getShared(*a.shape) == getShared(*b.shape));
}

std::string plateau::rt::findMismatch(const Contribution *const *contributions, const int32_t *members, int32_t count) {
  bool same = true;
  for (int32_t i = 1; i < count; ++i)
    same &= agree(*contributions[0], *contributions[i]);
  if (!same)
    return "the ranks do not make the same call";
  for (int32_t part = 0; part < contributions[0]->exchangeCount; ++part)
    for (int32_t from = 0; from < count; ++from)
      for (int32_t to = 0; to < count; ++to) {
        const Exchange &sender = contributions[from]->exchanges[part], &receiver = contributions[to]->exchanges[part];
        if (sender.blocks != receiver.blocks)
          return "rank " + std::to_string(members[from]) + " sends " + std::to_string(sender.blocks) +
                 " pieces to rank " + std::to_string(members[to]) + ", which expects " +
                 std::to_string(receiver.blocks);
        for (int64_t block = 0; block < sender.blocks; ++block) {
          int64_t sent = getPiece(sender.sends, sender.sends.getNumber(to, count, block, sender.blocks), sender.bytes)
                             .bytes,
                  expected = getPiece(receiver.receives, receiver.receives.getNumber(from, count, block, sender.blocks),
                                      receiver.bytes)
                                 .bytes;
          if (sent != expected)
            return "rank " + std::to_string(members[from]) + " sends " + std::to_string(sent) + " bytes" +
                   (sender.blocks > 1 ? " of piece " + std::to_string(block) : "") + " to rank " +
                   std::to_string(members[to]) + ", which expects " + std::to_string(expected);
        }
      }
  return {};
}
