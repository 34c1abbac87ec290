//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/blocks.h"
#include <algorithm>

using namespace plateau::rt;

Blocks::Blocks(int64_t size) : capacity(size / granularity * granularity), freeBytes(capacity), last(0) {
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

void Blocks::insertFree(int32_t index) { freeBlocks.emplace(blocks[index].bytes, blocks[index].offset, index); }

void Blocks::eraseFree(int32_t index) { freeBlocks.erase({blocks[index].bytes, blocks[index].offset, index}); }

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
  int32_t index = std::get<2>(*best);
  freeBlocks.erase(best);
  if (blocks[index].bytes > bytes) {
    Block rest = {blocks[index].offset + bytes, blocks[index].bytes - bytes, index, blocks[index].next, nullptr};
    int32_t restIndex = newBlock(rest);
    if (rest.next == none)
      last = restIndex;
    else
      blocks[rest.next].previous = restIndex;
    blocks[index].next = restIndex;
    blocks[index].bytes = bytes;
    insertFree(restIndex);
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

int64_t Blocks::getExtent() const { return blocks[last].owner ? capacity : blocks[last].offset; }

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
