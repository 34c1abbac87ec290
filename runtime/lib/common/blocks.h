//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Blocks of an address range: best fit, the lowest address among equals, free neighbours joined at once. Small blocks
// keep to the end of the range: in a large hole they would spoil it for the large block that comes back to it.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_BLOCKS_H
#define PLATEAU_RUNTIME_COMMON_BLOCKS_H

#include "plateau/runtime.h"
#include <memory_resource>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace plateau::rt {

/// Offsets and sizes are multiples of the granularity. Knows nothing of memory, only of numbers.
class Blocks {
public:
  static constexpr int64_t granularity = 64;

  /// Blocks of less than `smallBytes` are small.
  explicit Blocks(int64_t capacity, int64_t smallBytes = 1 << 18);

  /// `bytes` is positive. Returns the offset of a block, or nothing when no free block is large enough. A large block
  /// takes the best fit. So does a small one when the best fit is itself smaller than a large block; otherwise it takes
  /// the end of the highest free block that holds it.
  std::optional<int64_t> allocate(int64_t bytes, const plr_tag *owner);

  struct Range {
    int64_t offset, bytes;
  };
  /// The front of the largest free block, whole lines; with no bytes where that block begins. Nothing when it is too
  /// small.
  std::optional<Range> takeFromLargest(int64_t bytes, const plr_tag *owner);

  struct Released {
    int64_t bytes;
    const plr_tag *owner;
  };
  /// Nothing when no live block starts at `offset`.
  std::optional<Released> release(int64_t offset);

  int64_t getCapacity() const { return capacity; }
  int64_t getFreeBytes() const { return freeBytes; }
  int64_t getLargestFree() const;
  /// What lies outside the largest free block: live blocks, and the holes between them.
  int64_t getExtent() const { return capacity - getLargestFree(); }
  /// Bytes of the live block that starts at `offset`, if one does.
  std::optional<int64_t> getLiveBytes(int64_t offset) const;

  struct Live {
    int64_t offset, bytes;
    const plr_tag *owner;
  };
  /// The live blocks, lowest offset first.
  std::vector<Live> getLive() const;

private:
  /// Makes the free block `index` a live one of `bytes`, at its front or at its end; returns its offset.
  int64_t take(int32_t index, int64_t bytes, bool atEnd, const plr_tag *owner);
  static constexpr int32_t none = -1;

  /// All blocks, free and live, form one list by ascending offset without gaps.
  struct Block {
    int64_t offset, bytes;
    int32_t previous, next;
    const plr_tag *owner; ///< Null when free.
  };
  /// Ordered by size, then by offset: the first one not smaller than a request is the best fit.
  using FreeKey = std::tuple<int64_t, int64_t, int32_t>;

  int32_t newBlock(const Block &block);
  void insertFree(int32_t index);
  /// The highest free block of at least `bytes`; there is one.
  int32_t findHighestFree(int64_t bytes) const;
  void eraseFree(int32_t index);
  /// Joins `index` with the block after it, whose entry becomes reusable.
  void absorbNext(int32_t index);

  int64_t capacity, smallBytes;
  int64_t freeBytes;
  int32_t last; ///< The block of the highest offset.
  std::vector<Block> blocks;
  std::vector<int32_t> unusedEntries;
  std::pmr::unsynchronized_pool_resource memory; ///< So that nodes are reused without a trip to malloc.
  std::pmr::set<FreeKey> freeBlocks{&memory};
  std::pmr::set<std::pair<int64_t, int32_t>> freeByOffset{&memory};
  std::pmr::unordered_map<int64_t, int32_t> liveBlocks{&memory};
};

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_BLOCKS_H
