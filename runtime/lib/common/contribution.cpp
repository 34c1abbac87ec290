//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/contribution.h"
#include "common/names.h"
#include <cstring>

using namespace plateau::rt;

std::string plateau::rt::describe(const Contribution &contribution) {
  std::string text = contribution.call;
  if (*contribution.unit)
    text += " of " + std::to_string(contribution.count) + " " + contribution.unit;
  if (contribution.hops != 0)
    text += " by " + std::to_string(contribution.hops) + (contribution.hops == 1 ? " hop" : " hops");
  return text + " for " + describe(*contribution.tag);
}

static bool agree(const Contribution &a, const Contribution &b) {
  return std::strcmp(a.call, b.call) == 0 && std::strcmp(a.unit, b.unit) == 0 && a.count == b.count &&
         a.exchangeCount == b.exchangeCount && a.hops == b.hops;
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
        int64_t sent = sender.sends[to] * sender.bytes, expected = receiver.receives[from] * receiver.bytes;
        if (sent != expected)
          return "rank " + std::to_string(members[from]) + " sends " + std::to_string(sent) + " bytes to rank " +
                 std::to_string(members[to]) + ", which expects " + std::to_string(expected);
      }
  return {};
}
