//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The arena of a space: memory of a step that was laid out before launch, and how much of it a run has written.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_ARENA_H
#define PLATEAU_RUNTIME_COMMON_ARENA_H

#include "plateau/runtime.h"
#include <atomic>

namespace plateau::rt {

/// Two bytes with which memory is filled while it is watched: `untouched` before the run, `handedOut` what a call is
/// about to write. Seeds that differ by less than 256 differ in either.
struct Patterns {
  unsigned char untouched, handedOut;
  explicit Patterns(int32_t seed)
      : untouched(static_cast<unsigned char>(static_cast<uint32_t>(seed) * 0x9d + 0x5b)),
        handedOut(static_cast<unsigned char>(~untouched)) {}
};

class Arena {
public:
  /// `begin` has `bytes` of the arena and, with what is free behind them, `room` in all. `outside` bytes of the space
  /// are not among those.
  Arena(char *begin, int64_t bytes, int64_t room, int64_t outside, const plr_tag *owner);

  char *getBegin() const { return begin; }
  int64_t getBytes() const { return bytes; }
  const plr_tag &getOwner() const { return *owner; }
  bool contains(const void *pointer) const;
  /// From `pointer`, in the arena, to its end.
  int64_t getBytesFrom(const void *pointer) const { return begin + bytes - static_cast<const char *>(pointer); }

  /// Fills the arena and some of what lies behind it, so that writes past its end show too.
  void watch(const Patterns &patterns);
  /// The bytes before `end` count as written, whatever they hold. Any thread.
  void noteWritten(const char *end);
  /// Bytes of the space up to the last one written since watch(), what lies outside the arena included.
  int64_t getObserved(const Patterns &patterns) const;

private:
  char *begin;
  int64_t bytes, watched, outside;
  const plr_tag *owner;
  std::atomic<int64_t> written{0};
};

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_ARENA_H
