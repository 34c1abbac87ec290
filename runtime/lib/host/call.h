//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What every call on a lane does: check its arguments, then enqueue one task.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_CALL_H
#define PLATEAU_RUNTIME_HOST_CALL_H

#include "common/context.h"
#include <initializer_list>

namespace plateau::rt::host {

/// One call: arguments are checked one after the other, and the first that is wrong fails the context. Then enqueue()
/// does nothing.
class Call {
public:
  Call(plr_lane &lane, const char *name, const plr_tag *tag);

  plr_lane &getLane() const { return lane; }
  plr_context &getContext() const { return lane.context; }
  const plr_tag &getTag() const { return *tag; }
  const char *getName() const { return name; }

  /// Fails the context with "<call> of <op>: <text>".
  void fail(plr_status status, const std::string &text);
  void refuse(const std::string &text);
  void require(bool holds, const char *text) {
    if (!holds)
      refuse(text);
  }
  /// `value` is at least `least`.
  void size(const char *what, int64_t value, int64_t least = 0) {
    if (value < least)
      refuseSize(what, value, least);
  }
  void flag(const char *what, int32_t value);
  void type(const char *what, plr_type value);
  /// The tensor of these sizes can be addressed, and is there unless it is empty. The sizes were checked before.
  void tensor(const char *what, const void *pointer, std::initializer_list<int64_t> sizes);
  /// `who` says where the need comes from.
  void workspace(const void *pointer, int64_t bytes, int64_t needed, const char *who = "");
  /// `pointer` is a multiple of 64.
  void aligned(const char *what, const void *pointer);

  bool isRefused() const { return refused; }
  /// The call checks what it can and makes what the library must make, but runs nothing and looks into no plan.
  bool isPreparing() const { return lane.context.preparing; }

  /// `body` is a function of Running. It runs on the lane unless the context fails before.
  template <typename Body>
  void enqueue(const Body &body, const void *extra = nullptr, size_t extraBytes = 0) {
    if (!refused && !isPreparing())
      lane.enqueue({name, tag, takeSpan()}, body, extra, extraBytes);
  }
  /// The call's span, for what is known when it is enqueued; null without a trace.
  plr_span *takeSpan() {
    if (!span && lane.context.config.trace && !isPreparing())
      span = lane.context.trace.append(tag, name, lane.kind);
    return span;
  }

private:
  void refuseSize(const char *what, int64_t value, int64_t least);

  plr_lane &lane;
  const char *name;
  const plr_tag *tag;
  plr_span *span = nullptr;
  bool refused = false;
};

/// The frame of a call of the C ABI on a lane; `body` is a function of Call.
template <typename Body>
plr_status enter(plr_lane *lane, const char *name, const plr_tag *tag, const Body &body) noexcept {
  return guard(lane ? &lane->context : nullptr, name, [&] {
    Call call(*lane, name, tag);
    if (!call.isRefused())
      body(call);
    return lane->context.error.getStatus();
  });
}

/// The outcome of a kernel that met bad data, or did not.
inline Outcome fromFault(std::string fault) {
  if (fault.empty())
    return {};
  return {PLR_BAD_DATA, std::move(fault)};
}

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_CALL_H
