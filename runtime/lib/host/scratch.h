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
/// The two arguments of a call that say where its scratch memory lies.
struct Workspace {
  void *pointer;
  int64_t bytes;

  bool isPool() const { return bytes == PLR_FROM_POOL; }
  void check(Call &call) const {
    if (bytes < PLR_FROM_POOL)
      call.refuse("workspace_bytes is " + std::to_string(bytes) +
                  ", but must not be negative, unless it is -1 (PLR_FROM_POOL)");
    else if (isPool())
      call.require(!pointer, "there is a workspace, but workspace_bytes is -1 (PLR_FROM_POOL)");
    else
      call.aligned("the workspace", pointer);
  }
};

class Scratch {
public:
  /// No memory of the pool for zero bytes. A shortage there fails the context, and a workspace that is too small does.
  Scratch(Call &call, const Workspace &workspace, int64_t bytes, plr_component component = PLR_WORKSPACE)
      : call(call), tag(call.getTag()), bytes(bytes), isPooled(workspace.isPool() && bytes > 0 && !call.isPreparing()) {
    tag.component = component;
    if (isPooled)
      pointer = allocate(call.getContext(), PLR_DEVICE, bytes, tag, call.getName());
    else if (!workspace.isPool()) {
      call.workspace(workspace.pointer, workspace.bytes, bytes,
                     component == PLR_WORKSPACE ? " by the library on the machine that runs it; compile the step there"
                                                : "");
      pointer = bytes > 0 ? workspace.pointer : nullptr;
    }
  }
  ~Scratch() {
    if (isPooled && pointer)
      release(call.getContext(), PLR_DEVICE, pointer, call.getName());
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  void *get() const { return pointer; }

  /// As Call::enqueue; with memory of the pool, once no other lane's task uses the same bytes.
  template <typename Body>
  void enqueue(const Body &body, const void *extra = nullptr, size_t extraBytes = 0) {
    plr_context &context = call.getContext();
    if (context.error.getStatus() != PLR_OK)
      return;
    if (isPooled)
      context.scratchUses.await(call.getLane(), pointer, bytes);
    call.enqueue(body, extra, extraBytes);
    if (isPooled)
      context.scratchUses.note(call.getLane(), pointer, bytes);
  }

private:
  Call &call;
  plr_tag tag;
  int64_t bytes;
  bool isPooled;
  void *pointer = nullptr;
};

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_SCRATCH_H
