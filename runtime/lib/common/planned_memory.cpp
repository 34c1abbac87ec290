//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// The calls that lay memory out once and observe what a run writes of it.
#include "common/context.h"
#include "common/names.h"
#include <algorithm>
#include <cstring>

using namespace plateau::rt;
using namespace plateau::rt::host;

static plr_status takeArena(plr_context &context, plr_space space, int64_t bytes, const plr_tag *tag, void *&pointer) {
  if (space < 0 || space >= PLR_SPACES)
    return context.fail(PLR_INVALID_ARGUMENT,
                        "plr_arena: there is no space " + std::to_string(space) + "; 0 is the device's, 1 the host's");
  if (std::string fault = checkTag(tag); !fault.empty())
    return context.fail(PLR_INVALID_ARGUMENT, "plr_arena: " + fault);
  if (bytes < 0)
    return context.fail(PLR_INVALID_ARGUMENT,
                        "plr_arena: " + describe(*tag) + " asks for " + std::to_string(bytes) + " bytes");
  Space &memory = *context.spaces[space];
  if (const Arena *arena = memory.getArena(); arena && arena->getBytes() != bytes)
    return context.fail(PLR_INVALID_ARGUMENT, "plr_arena: " + describe(*tag) + " asks for " + std::to_string(bytes) +
                                                  " bytes, but the arena of the " + getSpaceName(space) +
                                                  " space has " + std::to_string(arena->getBytes()) + ", taken for " +
                                                  describe(arena->getOwner()) +
                                                  "; a context has one arena in each space");
  if (memory.getArena()) {
    pointer = memory.getArena()->getBegin();
    return PLR_OK;
  }
  const Arena *arena = memory.takeArena(bytes, *tag);
  if (!arena)
    return context.fail(PLR_OUT_OF_MEMORY, std::string("plr_arena: out of ") + getSpaceName(space) + " memory for " +
                                               describe(*tag) + ": " + memory.describeShortage(bytes) +
                                               ". Raise the limit, or plan the step for less memory");
  if (context.config.poison) {
    context.drain(); // Tasks enqueued earlier may still use the bytes.
    std::memset(arena->getBegin(), 0xFF, static_cast<size_t>(bytes));
  }
  pointer = arena->getBegin();
  return PLR_OK;
}

extern "C" void *plr_arena(plr_context *context, plr_space space, int64_t bytes, const plr_tag *tag) {
  void *pointer = nullptr;
  guard(context, "plr_arena", [&] { return takeArena(*context, space, bytes, tag, pointer); });
  // After a failure too: the host goes through the rest of a step, and may look into a table that lies there.
  if (!pointer && context && space >= 0 && space < PLR_SPACES)
    if (Arena *arena = context->spaces[space]->getArena(); arena && arena->getBytes() == bytes)
      return arena->getBegin();
  return pointer;
}

extern "C" plr_status plr_measure(plr_context *context, int32_t seed) {
  return guard(context, "plr_measure", [&] {
    context->drain();
    context->measureSeed = seed;
    for (std::unique_ptr<Space> &space : context->spaces)
      if (Arena *arena = space->getArena(); arena && seed != 0)
        arena->watch(Patterns(seed));
    return context->error.getStatus();
  });
}

extern "C" int64_t plr_observed_bytes(plr_context *context, plr_space space) {
  if (!context || space < 0 || space >= PLR_SPACES || context->measureSeed == 0)
    return -1;
  context->drain();
  const Arena *arena = context->spaces[space]->getArena();
  return arena ? arena->getObserved(Patterns(context->measureSeed)) : -1;
}

//===----------------------------------------------------------------------===//
// Declared ranges
//===----------------------------------------------------------------------===//

static plr_status checkRange(plr_lane &lane, const char *call, const void *pointer, int64_t bytes) {
  auto refuse = [&](const std::string &text) {
    return lane.context.fail(PLR_INVALID_ARGUMENT, lane.locate({call}) + ": " + text);
  };
  if (bytes < 0)
    return refuse("bytes is " + std::to_string(bytes) + ", but must be at least 0");
  if (bytes > 0 && !pointer)
    return refuse("the range is null");
  for (plr_space space = 0; space < PLR_SPACES; ++space)
    if (const Arena *arena = lane.context.spaces[space]->getArena(); arena && arena->contains(pointer))
      if (int64_t left = arena->getBytesFrom(pointer); bytes > left)
        return refuse("the range of " + std::to_string(bytes) + " bytes begins " + std::to_string(left) +
                      " bytes before the end of the " + getSpaceName(space) + " arena");
  return PLR_OK;
}

/// Enqueues the fill of a range that nobody declared as read.
static void enqueueFill(plr_lane &lane, char *begin, char *end) {
  Arena *arena = nullptr;
  for (std::unique_ptr<Space> &space : lane.context.spaces)
    if (Arena *one = space->getArena(); one && one->contains(begin))
      arena = one;
  lane.enqueue({"plr_writes"}, [=, pattern = Patterns(lane.context.measureSeed).handedOut](const Running &) -> Outcome {
    std::memset(begin, pattern, static_cast<size_t>(end - begin));
    if (arena)
      arena->noteWritten(end);
    return {};
  });
}

extern "C" plr_status plr_reads(plr_lane *lane, const void *pointer, int64_t bytes) {
  if (lane && !lane->context.isDeclaring())
    return lane->context.error.getStatus();
  return guard(lane ? &lane->context : nullptr, "plr_reads", [&]() -> plr_status {
    if (plr_status status = checkRange(*lane, "plr_reads", pointer, bytes))
      return status;
    if (bytes > 0)
      lane->declaredReads.push_back({static_cast<const char *>(pointer), static_cast<const char *>(pointer) + bytes});
    return PLR_OK;
  });
}

extern "C" plr_status plr_writes(plr_lane *lane, void *pointer, int64_t bytes) {
  if (lane && !lane->context.isDeclaring())
    return lane->context.error.getStatus();
  return guard(lane ? &lane->context : nullptr, "plr_writes", [&]() -> plr_status {
    if (plr_status status = checkRange(*lane, "plr_writes", pointer, bytes))
      return status;
    // What the call reads as well keeps its data; the rest lies between those ranges, taken in ascending order.
    auto &reads = lane->declaredReads;
    std::sort(reads.begin(), reads.end());
    char *next = static_cast<char *>(pointer), *const end = next + bytes;
    for (auto [readBegin, readEnd] : reads) {
      if (readBegin >= end || readEnd <= next)
        continue;
      char *until = next + std::max<int64_t>(readBegin - next, 0);
      if (next < until)
        enqueueFill(*lane, next, until);
      next += std::min(readEnd, static_cast<const char *>(end)) - next;
    }
    if (next < end)
      enqueueFill(*lane, next, end);
    return lane->context.error.getStatus();
  });
}
