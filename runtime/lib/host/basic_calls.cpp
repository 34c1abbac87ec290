//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/call.h"
#include <cstring>

using namespace plateau::rt::host;

extern "C" plr_status plr_copy(plr_lane *lane, const plr_tag *tag, void *destination, const void *source,
                               int64_t bytes) {
  return enter(lane, "plr_copy", tag, [&](Call &call) {
    call.size("bytes", bytes);
    call.require(bytes == 0 || destination, "destination is null");
    call.require(bytes == 0 || source, "source is null");
    call.enqueue([=](const Running &) -> Outcome {
      if (bytes > 0)
        std::memmove(destination, source, static_cast<size_t>(bytes));
      return {};
    });
  });
}

extern "C" plr_status plr_zero(plr_lane *lane, const plr_tag *tag, void *destination, int64_t bytes) {
  return enter(lane, "plr_zero", tag, [&](Call &call) {
    call.size("bytes", bytes);
    call.require(bytes == 0 || destination, "destination is null");
    call.enqueue([=](const Running &) -> Outcome {
      if (bytes > 0)
        std::memset(destination, 0, static_cast<size_t>(bytes));
      return {};
    });
  });
}

extern "C" plr_status plr_launch(plr_lane *lane, const plr_tag *tag, plr_kernel function, void *const *arguments,
                                 int64_t count) {
  return enter(lane, "plr_launch", tag, [&](Call &call) {
    constexpr int64_t most = plr_lane::maxExtraBytes / sizeof(void *);
    call.require(function, "the function is null");
    call.size("count", count);
    call.require(count <= 0 || arguments, "arguments is null");
    if (count > most)
      call.refuse("count is " + std::to_string(count) + ", but a kernel takes at most " + std::to_string(most) +
                  " arguments");
    call.enqueue(
        [=](const Running &running) -> Outcome {
          function(static_cast<void **>(running.extra));
          return {};
        },
        arguments, call.isRefused() ? 0 : static_cast<size_t>(count) * sizeof(void *));
  });
}
