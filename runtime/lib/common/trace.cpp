//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/trace.h"

using namespace plateau::rt;

/// end_ns of a call that has not run.
static constexpr int64_t notRun = -1;

plr_span *Trace::append(const plr_tag *tag, const char *call, plr_lane_kind lane) {
  if (size == chunks.size() * chunkSpans)
    chunks.push_back(std::make_unique<Chunk>());
  plr_span &span = (*chunks[size / chunkSpans])[size % chunkSpans];
  ++size;
  span = {};
  span.tag = tag;
  span.call = call;
  span.lane = lane;
  span.end_ns = notRun;
  return &span;
}

int64_t Trace::read(int64_t first, plr_span *spans, int64_t capacity) const {
  int64_t number = 0;
  for (size_t i = 0; i < size; ++i) {
    const plr_span &span = (*chunks[i / chunkSpans])[i % chunkSpans];
    if (span.end_ns == notRun)
      continue;
    if (number >= first && number - first < capacity)
      spans[number - first] = span;
    ++number;
  }
  return number;
}

void Trace::clear() { size = 0; }

int64_t Trace::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
}
