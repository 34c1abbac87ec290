//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A memory space: one reserved address range of the limit's size, handed out in blocks.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_SPACE_H
#define PLATEAU_RUNTIME_COMMON_SPACE_H

#include "common/arena.h"
#include "common/blocks.h"
#include "common/usage.h"
#include <memory>
#include <string>

namespace plateau::rt {

class Space {
public:
  /// Null, and a message, when the range cannot be reserved. Pages cost memory once they are written, not before. A
  /// limit beyond the machine's memory reserves the machine's memory only.
  static std::unique_ptr<Space> create(plr_space kind, int64_t limit, std::string &message);
  ~Space();
  Space(const Space &) = delete;
  Space &operator=(const Space &) = delete;

  /// Null when no free block is large enough, or there is an arena. Zero bytes give a pointer behind the last block.
  void *allocate(int64_t bytes, const plr_tag &tag);
  /// False when `pointer` is not one that allocate returned, or was released before.
  bool release(void *pointer);

  /// The last memory that the space gives, from its largest free block; null when that is too small.
  Arena *takeArena(int64_t bytes, const plr_tag &tag);
  /// Null before.
  Arena *getArena() const { return arena.get(); }
  bool isArena(const void *pointer) const { return arena && arena->getBytes() > 0 && pointer == arena->getBegin(); }

  bool contains(const void *pointer) const;
  /// Bytes from `pointer` to the end of its block; 0 when no live block starts there.
  int64_t getBytes(const void *pointer) const;

  plr_space_report getReport() const;
  void resetPeak();

  /// Why `bytes` could not be had: the numbers, and who holds the memory.
  std::string describeShortage(int64_t bytes) const;

private:
  Space(plr_space kind, int64_t limit, char *base, int64_t capacity);

  plr_space kind;
  int64_t limit;
  char *base;
  Blocks blocks;
  Usage usage;
  int64_t extent = 0;
  std::unique_ptr<Arena> arena;
  int64_t emptyAllocations = 0; ///< Live allocations of zero bytes; all have one address.
};

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_SPACE_H
