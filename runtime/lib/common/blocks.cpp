//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/blocks.h"
#include <algorithm>

using namespace plateau::rt;

Blocks::Blocks(int64_t size, int64_t smallBytes)
    : capacity(size / granularity * granularity), smallBytes(smallBytes), freeBytes(capacity), last(0) {
  // A range of no bytes is one free block of no bytes, which fits nothing.
  newBlock({0, capacity, none, none, nullptr});
  insertFree(0);
}

int32_t Blocks::newBlock(const Block &block) {
  if (unusedEntries.empty()) {
    blocks.push_back(block);
    return static_cast<int32_t>(blocks.size()) - 1;
  }
  int32_t index = unusedEntries.back();
  unusedEntries.pop_back();
  blocks[index] = block;
  return index;
}

void Blocks::insertFree(int32_t index) {
  freeBlocks.emplace(blocks[index].bytes, blocks[index].offset, index);
  freeByOffset.emplace(blocks[index].offset, index);
}

void Blocks::eraseFree(int32_t index) {
  freeBlocks.erase({blocks[index].bytes, blocks[index].offset, index});
  freeByOffset.erase({blocks[index].offset, index});
}

int32_t Blocks::findHighestFree(int64_t bytes) const {
  auto found = std::find_if(freeByOffset.rbegin(), freeByOffset.rend(),
                            [&](const auto &entry) { return blocks[entry.second].bytes >= bytes; });
  return found->second;
}

void Blocks::absorbNext(int32_t index) {
  int32_t next = blocks[index].next;
  blocks[index].bytes += blocks[next].bytes;
  blocks[index].next = blocks[next].next;
  if (blocks[next].next == none)
    last = index;
  else
    blocks[blocks[next].next].previous = index;
  unusedEntries.push_back(next);
}

std::optional<int64_t> Blocks::allocate(int64_t bytes, const plr_tag *owner) {
  if (bytes > capacity)
    return std::nullopt;
  bytes = (bytes + granularity - 1) / granularity * granularity;
  auto best = freeBlocks.lower_bound({bytes, 0, none});
  if (best == freeBlocks.end())
    return std::nullopt;
  auto [bestBytes, bestOffset, index] = *best;
  bool atEnd = bytes < smallBytes && bestBytes >= smallBytes;
  if (atEnd)
    index = findHighestFree(bytes);
  return take(index, bytes, atEnd, owner);
}

std::optional<Blocks::Range> Blocks::takeFromLargest(int64_t bytes, const plr_tag *owner) {
  if (bytes > getLargestFree())
    return std::nullopt;
  if (freeBlocks.empty())
    return Range{capacity, 0};
  auto [largest, offset, index] = *freeBlocks.rbegin();
  if (bytes == 0)
    return Range{offset, 0};
  bytes = (bytes + granularity - 1) / granularity * granularity;
  return Range{take(index, bytes, /*atEnd=*/false, owner), bytes};
}

int64_t Blocks::take(int32_t index, int64_t bytes, bool atEnd, const plr_tag *owner) {
  eraseFree(index);
  if (int64_t rest = blocks[index].bytes - bytes; rest > 0) {
    // The part at the lower address keeps the entry.
    int64_t lower = atEnd ? rest : bytes;
    int32_t upper =
        newBlock({blocks[index].offset + lower, blocks[index].bytes - lower, index, blocks[index].next, nullptr});
    if (blocks[upper].next == none)
      last = upper;
    else
      blocks[blocks[upper].next].previous = upper;
    blocks[index].next = upper;
    blocks[index].bytes = lower;
    insertFree(atEnd ? index : upper);
    if (atEnd)
      index = upper;
  }
  blocks[index].owner = owner;
  freeBytes -= bytes;
  liveBlocks.emplace(blocks[index].offset, index);
  return blocks[index].offset;
}

std::optional<Blocks::Released> Blocks::release(int64_t offset) {
  auto found = liveBlocks.find(offset);
  if (found == liveBlocks.end())
    return std::nullopt;
  int32_t index = found->second;
  liveBlocks.erase(found);
  Released released = {blocks[index].bytes, blocks[index].owner};
  freeBytes += released.bytes;
  blocks[index].owner = nullptr;
  if (int32_t next = blocks[index].next; next != none && !blocks[next].owner) {
    eraseFree(next);
    absorbNext(index);
  }
  if (int32_t previous = blocks[index].previous; previous != none && !blocks[previous].owner) {
    eraseFree(previous);
    absorbNext(previous);
    index = previous;
  }
  insertFree(index);
  return released;
}

int64_t Blocks::getLargestFree() const { return freeBlocks.empty() ? 0 : std::get<0>(*freeBlocks.rbegin()); }

std::optional<int64_t> Blocks::getLiveBytes(int64_t offset) const {
  auto found = liveBlocks.find(offset);
  if (found == liveBlocks.end())
    return std::nullopt;
  return blocks[found->second].bytes;
}

std::vector<Blocks::Live> Blocks::getLive() const {
  std::vector<Live> live;
  for (int32_t index = last; index != none; index = blocks[index].previous)
    if (blocks[index].owner)
      live.push_back({blocks[index].offset, blocks[index].bytes, blocks[index].owner});
  std::reverse(live.begin(), live.end());
  return live;
}
