//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/arena.h"
#include <algorithm>
#include <cstring>
#include <functional>

using namespace plateau::rt;

/// How far behind the arena writes are looked for.
static int64_t getMargin(int64_t bytes) { return std::max<int64_t>(1 << 20, bytes / 8); }

Arena::Arena(char *begin, int64_t bytes, int64_t room, int64_t outside, const plr_tag *owner)
    : begin(begin), bytes(bytes), watched(std::min(room, bytes + getMargin(bytes))), outside(outside), owner(owner) {}

bool Arena::contains(const void *pointer) const {
  std::less<const char *> before;
  const char *address = static_cast<const char *>(pointer);
  return !before(address, begin) && before(address, begin + bytes);
}

void Arena::watch(const Patterns &patterns) {
  std::memset(begin, patterns.untouched, static_cast<size_t>(watched));
  written = 0;
}

void Arena::noteWritten(const char *end) {
  int64_t count = end - begin, known = written.load(std::memory_order_relaxed);
  while (known < count && !written.compare_exchange_weak(known, count, std::memory_order_relaxed))
    ;
}

int64_t Arena::getObserved(const Patterns &patterns) const {
  uint64_t word;
  std::memset(&word, patterns.untouched, sizeof word);
  int64_t end = watched;
  const int64_t least = written.load(std::memory_order_relaxed);
  // By words while they are whole ones of untouched bytes.
  for (uint64_t here; end - least >= static_cast<int64_t>(sizeof word); end -= sizeof word) {
    std::memcpy(&here, begin + end - sizeof word, sizeof word);
    if (here != word)
      break;
  }
  while (end > least && static_cast<unsigned char>(begin[end - 1]) == patterns.untouched)
    --end;
  return outside + end;
}
