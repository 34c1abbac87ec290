//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/call.h"
#include "common/names.h"

using namespace plateau::rt;
using namespace plateau::rt::host;

Call::Call(plr_lane &lane, const char *name, const plr_tag *tag) : lane(lane), name(name), tag(tag) {
  if (isPreparing())
    lane.start();
  if (lane.context.measureSeed != 0)
    lane.declaredReads.clear();
  if (std::string fault = checkTag(tag); !fault.empty()) {
    refused = true;
    lane.context.fail(PLR_INVALID_ARGUMENT, lane.locate({name}) + ": " + fault);
  }
}

void Call::fail(plr_status status, const std::string &text) {
  refused = true;
  lane.context.fail(status, lane.locate({name, tag}) + ": " + text);
}

void Call::refuse(const std::string &text) { fail(PLR_INVALID_ARGUMENT, text); }

void Call::refuseSize(const char *what, int64_t value, int64_t least) {
  refuse(std::string(what) + " is " + std::to_string(value) + ", but must be at least " + std::to_string(least));
}

void Call::flag(const char *what, int32_t value) {
  if (value != 0 && value != 1)
    refuse(std::string(what) + " is " + std::to_string(value) + ", but must be 0 or 1");
}

void Call::type(const char *what, plr_type value) {
  if (value != PLR_F32 && value != PLR_BF16)
    refuse(std::string(what) + " is " + std::to_string(value) + ", but must be 0 (f32) or 1 (bf16)");
}

void Call::tensor(const char *what, const void *pointer, std::initializer_list<int64_t> sizes) {
  if (refused)
    return;
  constexpr int64_t bytesOfElement = 4; // Of the widest element.
  int64_t bytes = bytesOfElement;
  bool overflow = false;
  for (int64_t size : sizes) {
    if (size == 0)
      return;
    overflow |= __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (overflow) {
    std::string text = std::string(what) + " has more bytes than 64 bits can count:";
    for (const int64_t &size : sizes)
      text += (&size == sizes.begin() ? " " : " x ") + std::to_string(size);
    refuse(text + " elements");
  } else if (!pointer) {
    refuse(std::string(what) + " is null");
  }
}

void Call::aligned(const char *what, const void *pointer) {
  constexpr uintptr_t line = Blocks::granularity;
  if (uintptr_t rest = reinterpret_cast<uintptr_t>(pointer) % line)
    refuse(std::string(what) + " lies " + std::to_string(rest) + " bytes behind a multiple of " + std::to_string(line) +
           ", but must be aligned to it");
}

void Call::workspace(const void *pointer, int64_t bytes, int64_t needed, const char *who) {
  if (refused)
    return;
  if (bytes < needed)
    refuse("the workspace has " + std::to_string(bytes) + " bytes, but " + std::to_string(needed) + " are needed" +
           who);
  else if (needed > 0 && !pointer)
    refuse("the workspace is null");
}
