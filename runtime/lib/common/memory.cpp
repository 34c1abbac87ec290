//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// The calls that hand out and take back memory.
#include "common/context.h"
#include "common/names.h"
#include <cstdio>
#include <cstring>

using namespace plateau::rt;

/// Of plateau_alloc_count, where a program has it; null elsewhere.
extern "C" __attribute__((weak)) void plateau_alloc_count_note(int64_t bytes);

/// Fills a block with NaN. Tasks enqueued earlier may still use its bytes, so they run first.
static void poison(plr_context &context, void *pointer, int64_t bytes) {
  context.drain();
  std::memset(pointer, 0xFF, static_cast<size_t>(bytes));
}

void *plateau::rt::allocate(plr_context &context, plr_space space, int64_t bytes, const plr_tag &tag,
                            const char *call) {
  Space &memory = *context.spaces[space];
  if (const Arena *arena = memory.getArena()) {
    context.fail(PLR_INVALID_ARGUMENT, std::string(call) + ": " + describe(tag) + " asks for " + std::to_string(bytes) +
                                           " bytes, but the " + getSpaceName(space) +
                                           " memory is fixed since the arena of " + std::to_string(arena->getBytes()) +
                                           " bytes was taken for " + describe(arena->getOwner()) +
                                           ". Allocate before plr_arena, or make it part of the plan");
    return nullptr;
  }
  if (plateau_alloc_count_note)
    plateau_alloc_count_note(bytes);
  void *pointer = memory.allocate(bytes, tag);
  if (!pointer) {
    context.fail(PLR_OUT_OF_MEMORY, std::string(call) + ": out of " + getSpaceName(space) + " memory for " +
                                        describe(tag) + ": " + memory.describeShortage(bytes) +
                                        ". Raise the limit, give each step fewer tokens, or checkpoint its layers");
    return nullptr;
  }
  if (context.config.poison && bytes > 0)
    poison(context, pointer, memory.getBytes(pointer));
  return pointer;
}

void plateau::rt::release(plr_context &context, plr_space space, void *pointer, const char *call) {
  Space &memory = *context.spaces[space];
  if (memory.isArena(pointer)) {
    context.fail(PLR_INVALID_ARGUMENT, std::string(call) + ": this is the arena of the " + getSpaceName(space) +
                                           " space, which lives as long as the context");
    return;
  }
  if (context.config.poison)
    if (int64_t bytes = memory.getBytes(pointer))
      poison(context, pointer, bytes);
  if (memory.release(pointer))
    return;
  char address[32];
  std::snprintf(address, sizeof address, "%p", pointer);
  std::string text = std::string(call) + ": " + address + " is not the start of a live buffer of the " +
                     getSpaceName(space) + " space: it was released before, or never allocated";
  for (plr_space other = 0; other < PLR_SPACES; ++other)
    if (other != space && context.spaces[other]->contains(pointer))
      text += std::string(" (it lies in the ") + getSpaceName(other) + " space)";
  context.fail(PLR_INVALID_ARGUMENT, text);
}

static plr_status checkSpace(plr_context &context, const char *call, plr_space space) {
  if (space >= 0 && space < PLR_SPACES)
    return PLR_OK;
  return context.fail(PLR_INVALID_ARGUMENT, std::string(call) + ": there is no space " + std::to_string(space) +
                                                "; 0 is the device's, 1 the host's");
}

extern "C" void *plr_allocate(plr_context *context, plr_space space, int64_t bytes, const plr_tag *tag) {
  void *pointer = nullptr;
  guard(context, "plr_allocate", [&]() -> plr_status {
    if (plr_status status = checkSpace(*context, "plr_allocate", space))
      return status;
    if (std::string fault = checkTag(tag); !fault.empty())
      return context->fail(PLR_INVALID_ARGUMENT, "plr_allocate: " + fault);
    if (bytes < 0)
      return context->fail(PLR_INVALID_ARGUMENT,
                           "plr_allocate: " + describe(*tag) + " asks for " + std::to_string(bytes) + " bytes");
    pointer = allocate(*context, space, bytes, *tag, "plr_allocate");
    return context->error.getStatus();
  });
  return pointer;
}

extern "C" void plr_release(plr_context *context, plr_space space, void *pointer) {
  guard(context, "plr_release", [&]() -> plr_status {
    if (plr_status status = checkSpace(*context, "plr_release", space))
      return status;
    release(*context, space, pointer, "plr_release");
    return context->error.getStatus();
  });
}

extern "C" plr_status plr_memory_report(plr_context *context, plr_space space, plr_space_report *report) {
  if (!context)
    return PLR_INVALID_ARGUMENT;
  // Reading is no call that a failure stops: what was live when memory ran out is what one wants to know then.
  if (report && space >= 0 && space < PLR_SPACES)
    *report = context->spaces[space]->getReport();
  return guard(context, "plr_memory_report", [&]() -> plr_status {
    if (plr_status status = checkSpace(*context, "plr_memory_report", space))
      return status;
    return report ? PLR_OK : context->fail(PLR_INVALID_ARGUMENT, "plr_memory_report: the report is null");
  });
}

extern "C" void plr_reset_peak(plr_context *context) {
  guard(context, "plr_reset_peak", [&] {
    for (std::unique_ptr<Space> &space : context->spaces)
      space->resetPeak();
    context->fences = 0;
    context->planRecords.clear();
    return PLR_OK;
  });
}
