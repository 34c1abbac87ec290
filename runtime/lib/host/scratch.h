//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Scratch memory of a call.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_SCRATCH_H
#define PLATEAU_RUNTIME_HOST_SCRATCH_H

#include "host/call.h"

namespace plateau::rt::host {

/// Lies in the device space like every byte of a step, under the component workspace unless the call names another. It
/// is free again once the call has enqueued its task: the order of calls is the order of reuse.
class Scratch {
public:
  /// No memory for zero bytes. A shortage fails the context.
  Scratch(Call &call, int64_t bytes, plr_component component = PLR_WORKSPACE)
      : call(call), tag(call.getTag()), bytes(bytes) {
    tag.component = component;
    pointer = bytes > 0 ? allocate(call.getContext(), PLR_DEVICE, bytes, tag, call.getName()) : nullptr;
  }
  ~Scratch() {
    if (pointer)
      release(call.getContext(), PLR_DEVICE, pointer, call.getName());
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  void *get() const { return pointer; }

  /// As Call::enqueue, once no other lane's task uses the same bytes.
  template <typename Body>
  void enqueue(const Body &body, const void *extra = nullptr, size_t extraBytes = 0) {
    plr_context &context = call.getContext();
    if (context.error.getStatus() != PLR_OK)
      return;
    context.scratchUses.await(call.getLane(), pointer, bytes);
    call.enqueue(body, extra, extraBytes);
    context.scratchUses.note(call.getLane(), pointer, bytes);
  }

private:
  Call &call;
  plr_tag tag;
  int64_t bytes;
  void *pointer;
};

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_SCRATCH_H
