//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Memory that a call needs while it runs.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_SCRATCH_H
#define PLATEAU_RUNTIME_HOST_SCRATCH_H

#include "host/call.h"

namespace plateau::rt::host {

/// In the device space like every byte of a step. It is free again once the task is enqueued: the order of calls is the
/// order of reuse.
class Scratch {
public:
  /// The call fails when there is no memory.
  Scratch(Call &call, int64_t bytes, plr_component component) : call(call), tag(call.getTag()), bytes(bytes) {
    tag.component = component;
    pointer = bytes > 0 ? allocate(call.getContext(), PLR_DEVICE, bytes, tag, call.getName()) : nullptr;
  }
  ~Scratch() {
    if (pointer)
      release(call.getContext(), PLR_DEVICE, pointer, call.getName());
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  /// Null when nothing was asked for.
  void *get() const { return pointer; }

  /// Before the task is enqueued: another lane's call may be using the same bytes still.
  void awaitOthers() { call.getContext().scratchUses.await(call.getLane(), pointer, bytes); }
  /// After the task is enqueued.
  void noteUse() { call.getContext().scratchUses.note(call.getLane(), pointer, bytes); }

private:
  Call &call;
  plr_tag tag;
  int64_t bytes;
  void *pointer;
};

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_SCRATCH_H
