//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Events: a lane and how many of its tasks must have run.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_EVENTS_H
#define PLATEAU_RUNTIME_HOST_EVENTS_H

#include "plateau/runtime.h"
#include <deque>

struct plr_event {
  plr_lane *lane;
  uint64_t ticket; ///< Complete when the lane has run this many tasks.
};

namespace plateau::rt::host {

/// The events of a context. Their addresses stay; all are free again after reset().
class EventPool {
public:
  plr_event *take(plr_lane *lane, uint64_t ticket) {
    if (used == events.size())
      events.emplace_back();
    plr_event *event = &events[used++];
    *event = {lane, ticket};
    return event;
  }
  void reset() { used = 0; }

private:
  std::deque<plr_event> events;
  size_t used = 0;
};

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_EVENTS_H
