//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which scratch memory the lanes may be using still. It is handed out again before its tasks have run, to calls on any
// lane: those whose bytes overlap must wait for each other, and no others.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_SCRATCH_USES_H
#define PLATEAU_RUNTIME_HOST_SCRATCH_USES_H

#include "host/events.h"
#include <vector>

namespace plateau::rt::host {

class ScratchUses {
public:
  /// What is enqueued on `lane` from now on runs after all uses of these bytes on other lanes.
  void await(plr_lane &lane, const void *bytes, int64_t count) const;
  /// The task enqueued last, after await(), uses these bytes.
  void note(plr_lane &lane, const void *bytes, int64_t count);
  /// No lane has anything left to run.
  void clear() { uses.clear(); }

private:
  struct Use {
    plr_event event;
    const char *begin, *end;
  };
  std::vector<Use> uses;
};

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_SCRATCH_USES_H
