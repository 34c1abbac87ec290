//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The first error of a context, which sticks.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_ERROR_H
#define PLATEAU_RUNTIME_COMMON_ERROR_H

#include "plateau/runtime.h"
#include <atomic>
#include <mutex>
#include <string>

namespace plateau::rt {

/// Any thread may fail it or ask it; the first failure wins.
class StickyError {
public:
  plr_status getStatus() const { return status.load(std::memory_order_acquire); }

  /// Valid, and unchanging, once there is a status.
  const char *getMessage() const { return getStatus() == PLR_OK ? "" : message.c_str(); }

  /// Records the failure unless there is one already; returns the status that stands.
  plr_status fail(plr_status newStatus, std::string text);

  /// Asks for a failure with PLR_INTERRUPTED at the next call. Safe in a signal handler.
  void interrupt() { interrupted.store(true, std::memory_order_relaxed); }
  bool isInterrupted() const { return interrupted.load(std::memory_order_relaxed); }

private:
  static_assert(std::atomic<bool>::is_always_lock_free, "plr_interrupt must be safe in a signal handler");

  std::atomic<plr_status> status{PLR_OK};
  std::atomic<bool> interrupted{false};
  std::mutex mutex;
  std::string message;
};

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_ERROR_H
