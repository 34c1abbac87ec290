//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/scratch_uses.h"
#include "host/lane.h"
#include <algorithm>
#include <array>

using namespace plateau::rt::host;

void ScratchUses::await(plr_lane &lane, const void *bytes, int64_t count) const {
  const char *begin = static_cast<const char *>(bytes), *end = begin + count;
  std::array<plr_event, PLR_LANES> last = {};
  for (const Use &use : uses)
    if (use.begin < end && begin < use.end && last[use.event.lane->kind].ticket <= use.event.ticket)
      last[use.event.lane->kind] = use.event;
  for (const plr_event &event : last)
    if (event.lane)
      lane.enqueueWait(event);
}

void ScratchUses::note(plr_lane &lane, const void *bytes, int64_t count) {
  if (count == 0)
    return;
  const char *begin = static_cast<const char *>(bytes), *end = begin + count;
  // Whoever waits for this use waits for those before it too: their tasks ran on this lane, or it has waited for them.
  uses.erase(
      std::remove_if(uses.begin(), uses.end(), [&](const Use &use) { return begin <= use.begin && use.end <= end; }),
      uses.end());
  uses.push_back({{&lane, lane.getTicket()}, begin, end});
}
