//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/error.h"

using namespace plateau::rt;

plr_status StickyError::fail(plr_status newStatus, std::string text) {
  std::lock_guard<std::mutex> lock(mutex);
  if (status.load(std::memory_order_relaxed) == PLR_OK) {
    message = std::move(text);
    status.store(newStatus, std::memory_order_release);
  }
  return status.load(std::memory_order_relaxed);
}
