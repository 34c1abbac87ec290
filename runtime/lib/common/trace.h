//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The spans of a context, in the order of the calls.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_TRACE_H
#define PLATEAU_RUNTIME_COMMON_TRACE_H

#include "plateau/runtime.h"
#include <array>
#include <chrono>
#include <memory>
#include <vector>

namespace plateau::rt {

/// A span is made by the calling thread and filled by the thread of its lane; only the caller's side touches the list.
class Trace {
public:
  /// A span of a call that has not run, at an address that stays until clear().
  plr_span *append(const plr_tag *tag, const char *call, plr_lane_kind lane);

  /// The lanes must be idle. Calls that a failure kept from running have no span.
  int64_t read(int64_t first, plr_span *spans, int64_t capacity) const;
  void clear();

  int64_t now() const;

private:
  static constexpr size_t chunkSpans = 512;
  using Chunk = std::array<plr_span, chunkSpans>;

  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Chunk>> chunks; ///< Kept by clear() for reuse.
  size_t size = 0;
};

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_TRACE_H
