//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/space.h"
#include "common/names.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace plateau::rt;

/// Bytes of memory that this machine has.
static int64_t getMachineBytes() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
}

/// Behind the blocks there is room for the address that empty allocations share.
static size_t getReservation(int64_t capacity) { return static_cast<size_t>(capacity) + Blocks::granularity; }

std::unique_ptr<Space> Space::create(plr_space kind, int64_t limit, std::string &message) {
  int64_t capacity = std::min(limit, getMachineBytes()) / Blocks::granularity * Blocks::granularity;
  void *base = mmap(nullptr, getReservation(capacity), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    message = std::string("cannot reserve ") + std::to_string(capacity) + " bytes of addresses for the " +
              getSpaceName(kind) + " space (limit " + std::to_string(limit) + " bytes): " + std::strerror(errno) +
              "; lower the limit, or raise the process's limit on address space (ulimit -v)";
    return nullptr;
  }
  return std::unique_ptr<Space>(new Space(kind, limit, static_cast<char *>(base), capacity));
}

Space::Space(plr_space kind, int64_t limit, char *base, int64_t capacity)
    : kind(kind), limit(limit), base(base), blocks(capacity) {}

Space::~Space() { munmap(base, getReservation(blocks.getCapacity())); }

void *Space::allocate(int64_t bytes, const plr_tag &tag) {
  if (arena)
    return nullptr;
  if (bytes == 0) {
    ++emptyAllocations;
    usage.add(0, tag);
    return base + blocks.getCapacity();
  }
  int64_t freeBefore = blocks.getFreeBytes();
  std::optional<int64_t> offset = blocks.allocate(bytes, &tag);
  if (!offset)
    return nullptr;
  int64_t taken = freeBefore - blocks.getFreeBytes();
  usage.add(taken, tag);
  extent = std::max(extent, blocks.getExtent());
  return base + *offset;
}

Arena *Space::takeArena(int64_t bytes, const plr_tag &tag) {
  const int64_t room = blocks.getLargestFree();
  std::optional<Blocks::Range> taken = blocks.takeFromLargest(bytes, &tag);
  if (!taken)
    return nullptr;
  arena = std::make_unique<Arena>(base + taken->offset, bytes, room, blocks.getCapacity() - room, &tag);
  usage.add(taken->bytes, tag);
  extent = std::max(extent, blocks.getCapacity() - room + taken->bytes);
  return arena.get();
}

bool Space::release(void *pointer) {
  if (!contains(pointer) || isArena(pointer))
    return false;
  int64_t offset = static_cast<char *>(pointer) - base;
  if (offset == blocks.getCapacity()) {
    if (emptyAllocations == 0)
      return false;
    --emptyAllocations;
    return true;
  }
  std::optional<Blocks::Released> released = blocks.release(offset);
  if (!released)
    return false;
  usage.remove(released->bytes, *released->owner);
  return true;
}

bool Space::contains(const void *pointer) const {
  uintptr_t address = reinterpret_cast<uintptr_t>(pointer), begin = reinterpret_cast<uintptr_t>(base);
  return address >= begin && address - begin <= static_cast<uintptr_t>(blocks.getCapacity());
}

int64_t Space::getBytes(const void *pointer) const {
  return contains(pointer) ? blocks.getLiveBytes(static_cast<const char *>(pointer) - base).value_or(0) : 0;
}

plr_space_report Space::getReport() const {
  plr_space_report report = {};
  usage.report(report);
  report.limit_bytes = limit;
  report.extent_bytes = extent;
  return report;
}

void Space::resetPeak() {
  usage.resetPeak();
  extent = blocks.getExtent();
}

std::string Space::describeShortage(int64_t bytes) const {
  std::string text = std::to_string(bytes) + " bytes asked, " + std::to_string(blocks.getFreeBytes()) +
                     " bytes free (largest free block " + std::to_string(blocks.getLargestFree()) + "), limit of the " +
                     getSpaceName(kind) + " space " + std::to_string(limit) + " bytes";
  if (blocks.getCapacity() < limit / Blocks::granularity * Blocks::granularity)
    text += ", of which this machine has " + std::to_string(blocks.getCapacity());
  if (bytes <= blocks.getFreeBytes())
    text += "; there is room, but not in one piece";
  std::vector<Blocks::Live> live = blocks.getLive();
  size_t shown = std::min<size_t>(live.size(), 5);
  std::partial_sort(live.begin(), live.begin() + shown, live.end(), [](const Blocks::Live &a, const Blocks::Live &b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.offset < b.offset;
  });
  text += shown == 0 ? "; nothing is live" : "; the largest of " + std::to_string(live.size()) + " live buffers:";
  for (size_t i = 0; i < shown; ++i)
    text += (i == 0 ? " " : "; ") + std::to_string(live[i].bytes) + " bytes of " + describe(*live[i].owner);
  return text;
}
