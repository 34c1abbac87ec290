//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/group.h"
#include "host/call.h"
#include <numeric>

using namespace plateau::rt;
using namespace plateau::rt::host;

static void checkGroup(Call &call, const plr_group *group) {
  call.require(group, "the group is null");
  if (group && &group->context != &call.getContext())
    call.refuse("the group is another context's");
}

/// What the sums and copies of a collective are made of: `count` elements of each of `ranks` ranks.
static void checkData(Call &call, const plr_group *group, plr_type type, int64_t count, const void *input,
                      void *result) {
  checkGroup(call, group);
  if (type < PLR_F32 || type > PLR_F64)
    call.refuse("type is " + std::to_string(type) + ", but must be 0 (f32), 1 (bf16), 2 (i32) or 3 (f64)");
  call.size("count", count);
  int64_t bytes;
  if (call.isRefused())
    return;
  if (__builtin_mul_overflow(count, getTypeBytes(type) * group->getSize(), &bytes))
    call.refuse("count is " + std::to_string(count) + ": " + std::to_string(group->getSize()) +
                " ranks have more bytes of it than 64 bits can count");
  call.require(count == 0 || input, "input is null");
  call.require(count == 0 || result, "result is null");
}

static bool overlap(const void *a, int64_t aBytes, const void *b, int64_t bBytes) {
  uintptr_t first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return aBytes > 0 && bBytes > 0 && first < second + static_cast<uintptr_t>(bBytes) &&
         second < first + static_cast<uintptr_t>(aBytes);
}

/// Other ranks read the input while this one writes the result. `part` and `whole` may only lie apart, or the part at
/// this rank's place in the whole.
static void checkOverlap(Call &call, const plr_group *group, const void *part, int64_t bytes, const void *whole) {
  if (call.isRefused())
    return;
  const char *place = static_cast<const char *>(whole) + group->place * bytes;
  if (part != place && overlap(part, bytes, whole, group->getSize() * bytes))
    call.refuse("input and result overlap, and not at this rank's place");
}

extern "C" plr_status plr_all_reduce(plr_lane *lane, const plr_tag *tag, plr_group *group, plr_type type, int64_t count,
                                     const void *input, void *result) {
  return enter(lane, "plr_all_reduce", tag, [&](Call &call) {
    checkData(call, group, type, count, input, result);
    if (!call.isRefused() && input != result)
      call.require(!overlap(input, count * getTypeBytes(type), result, count * getTypeBytes(type)),
                   "input and result overlap, but are not the same");
    call.enqueue([=, caller = Caller{lane->kind, "plr_all_reduce", tag}](const Running &) {
      return group->allReduce(caller, type, count, input, result);
    });
  });
}

extern "C" plr_status plr_all_gather(plr_lane *lane, const plr_tag *tag, plr_group *group, plr_type type, int64_t count,
                                     const void *input, void *result) {
  return enter(lane, "plr_all_gather", tag, [&](Call &call) {
    checkData(call, group, type, count, input, result);
    if (!call.isRefused())
      checkOverlap(call, group, input, count * getTypeBytes(type), result);
    call.enqueue([=, caller = Caller{lane->kind, "plr_all_gather", tag}](const Running &) {
      return group->allGather(caller, type, count, input, result);
    });
  });
}

extern "C" plr_status plr_reduce_scatter(plr_lane *lane, const plr_tag *tag, plr_group *group, plr_type type,
                                         int64_t count, const void *input, void *result) {
  return enter(lane, "plr_reduce_scatter", tag, [&](Call &call) {
    checkData(call, group, type, count, input, result);
    if (!call.isRefused())
      checkOverlap(call, group, result, count * getTypeBytes(type), input);
    call.enqueue([=, caller = Caller{lane->kind, "plr_reduce_scatter", tag}](const Running &) {
      return group->reduceScatter(caller, type, count, input, result);
    });
  });
}

extern "C" plr_status plr_shift(plr_lane *lane, const plr_tag *tag, plr_group *group, plr_type type, int64_t hops,
                                int64_t count, const void *input, void *result) {
  return enter(lane, "plr_shift", tag, [&](Call &call) {
    checkData(call, group, type, count, input, result);
    if (!call.isRefused())
      call.require(!overlap(input, count * getTypeBytes(type), result, count * getTypeBytes(type)),
                   "input and result overlap");
    call.enqueue([=, caller = Caller{lane->kind, "plr_shift", tag}](const Running &) {
      return group->shift(caller, type, hops, count, input, result);
    });
  });
}

/// The sum of the sizes; refuses those that are negative or more than 64 bits can count.
static int64_t checkBytes(Call &call, const char *what, const int64_t *bytes, const plr_group *group) {
  int64_t sum = 0;
  call.require(bytes, (std::string(what) + " is null").c_str());
  for (int32_t i = 0; !call.isRefused() && i < group->getSize(); ++i)
    if (bytes[i] < 0 || __builtin_add_overflow(sum, bytes[i], &sum))
      call.refuse(std::string(what) + "[" + std::to_string(i) + "] is " + std::to_string(bytes[i]) +
                  (bytes[i] < 0 ? ", but must not be negative" : ": the sum is more than 64 bits can count"));
  return sum;
}

extern "C" plr_status plr_all_to_all(plr_lane *lane, const plr_tag *tag, plr_group *group, const int64_t *send_bytes,
                                     const int64_t *receive_bytes, const void *input, void *result) {
  return enter(lane, "plr_all_to_all", tag, [&](Call &call) {
    checkGroup(call, group);
    if (call.isRefused())
      return;
    const int64_t size = group->getSize();
    int64_t sent = checkBytes(call, "send_bytes", send_bytes, group),
            received = checkBytes(call, "receive_bytes", receive_bytes, group);
    call.require(sent == 0 || input, "input is null");
    call.require(received == 0 || result, "result is null");
    call.require(!overlap(input, sent, result, received), "input and result overlap");
    constexpr int64_t most = plr_lane::maxExtraBytes / (2 * sizeof(int64_t));
    if (size > most)
      call.refuse("the group has " + std::to_string(size) + " ranks, but at most " + std::to_string(most) +
                  " can exchange data");
    if (call.isRefused())
      return;
    std::vector<int64_t> ends(2 * size);
    std::partial_sum(send_bytes, send_bytes + size, ends.begin());
    std::partial_sum(receive_bytes, receive_bytes + size, ends.begin() + size);
    call.enqueue(
        [=, caller = Caller{lane->kind, "plr_all_to_all", tag}](const Running &running) {
          const int64_t *ends = static_cast<const int64_t *>(running.extra);
          Exchange exchange = {{{nullptr, ends}}, {{nullptr, ends + size}}, 1, input, result};
          return group->allToAll(caller, 0, "", &exchange, 1);
        },
        ends.data(), ends.size() * sizeof(int64_t));
  });
}
