//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/group.h"
#include "common/context.h"
#include "host/rank_sums.h"
#include <algorithm>
#include <cstring>

using namespace plateau::rt;
using host::Outcome;

const char *plateau::rt::getTypeName(plr_type type) {
  static const char *const names[] = {"f32", "bf16", "i32", "f64", "counts"};
  return names[type];
}

int64_t plateau::rt::getTypeBytes(plr_type type) { return host::widthOf(type); }

plr_group::plr_group(plr_context &context, std::vector<int32_t> members)
    : context(context), members(std::move(members)),
      place(static_cast<int32_t>(std::find(this->members.begin(), this->members.end(), context.config.rank) -
                                 this->members.begin())) {
  if (getSize() > 1)
    for (plr_lane_kind lane = 0; lane < PLR_LANES; ++lane)
      meetings[lane] = &context.config.transport->getMeeting(this->members, lane);
}

/// What a rank brings that has no exchanges.
static Contribution makeContribution(const Caller &caller, plr_type type, int64_t count, const void *input,
                                     void *result) {
  Contribution mine = {caller.call, count, getTypeName(type), caller.tag, input, result};
  mine.shape = caller.shape;
  return mine;
}

template <typename Body>
Outcome plr_group::meet(plr_lane_kind lane, const Contribution &mine, const Body &body) {
  Meeting &meeting = *meetings[lane];
  if (context.interleaver)
    context.lanes[lane]->leaveToOtherRanks();
  Outcome outcome = meeting.arrive(place, mine);
  if (outcome.status != PLR_OK)
    return outcome;
  body(meeting);
  meeting.leave(place);
  return {};
}

static const char *at(const void *pointer, int64_t bytes) { return static_cast<const char *>(pointer) + bytes; }
static char *at(void *pointer, int64_t bytes) { return static_cast<char *>(pointer) + bytes; }

/// `source` may be `destination`.
static void copy(void *destination, const void *source, int64_t bytes) {
  if (bytes > 0 && destination != source)
    std::memcpy(destination, source, static_cast<size_t>(bytes));
}

/// Where part `index` of `count` elements in `parts` nearly equal parts begins.
static int64_t getPart(int64_t count, int32_t parts, int32_t index) {
  return count / parts * index + std::min<int64_t>(index, count % parts);
}

/// result[length] = the sum of length elements from `first` on of all ranks' inputs.
static void sumInputs(const Meeting &meeting, plr_type type, int64_t first, int64_t length, void *result) {
  auto input = [&](int32_t rank) { return at(meeting[rank].input, first * getTypeBytes(type)); };
  host::sumRanks(type, static_cast<int32_t>(meeting.members.size()), length, input, result);
}

// Rank r sums part r of all inputs; then each copies the other parts from the rank that has summed them.
Outcome plr_group::allReduce(const Caller &caller, plr_type type, int64_t count, const void *input, void *result) {
  const int64_t width = getTypeBytes(type);
  const int32_t size = getSize();
  if (size == 1) {
    copy(result, input, count * width);
    return {};
  }
  return meet(caller.lane, makeContribution(caller, type, count, input, result), [&](Meeting &meeting) {
    int64_t first = getPart(count, size, place), end = getPart(count, size, place + 1);
    sumInputs(meeting, type, first, end - first, at(result, first * width));
    meeting.pass();
    for (int32_t i = 1; i < size; ++i) {
      int32_t peer = (place + i) % size; // Not all ranks read the same one at once.
      int64_t begin = getPart(count, size, peer) * width, bytes = getPart(count, size, peer + 1) * width - begin;
      copy(at(result, begin), at(meeting[peer].result, begin), bytes);
    }
  });
}

Outcome plr_group::allGather(const Caller &caller, plr_type type, int64_t count, const void *input, void *result) {
  const int64_t bytes = count * getTypeBytes(type);
  const int32_t size = getSize();
  if (size == 1) {
    copy(result, input, bytes);
    return {};
  }
  return meet(caller.lane, makeContribution(caller, type, count, input, result), [&](Meeting &meeting) {
    for (int32_t i = 0; i < size; ++i) {
      int32_t peer = (place + i) % size;
      copy(at(result, peer * bytes), meeting[peer].input, bytes);
    }
  });
}

Outcome plr_group::reduceScatter(const Caller &caller, plr_type type, int64_t count, const void *input, void *result) {
  if (getSize() == 1) {
    copy(result, input, count * getTypeBytes(type));
    return {};
  }
  return meet(caller.lane, makeContribution(caller, type, count, input, result),
              [&](Meeting &meeting) { sumInputs(meeting, type, place * count, count, result); });
}

// Ranks meet even when nothing moves: that is how they learn whether they agree.
Outcome plr_group::shift(const Caller &caller, plr_type type, int64_t hops, int64_t count, const void *input,
                         void *result) {
  const int64_t bytes = count * getTypeBytes(type);
  const int32_t size = getSize();
  if (size == 1) {
    copy(result, input, bytes);
    return {};
  }
  const auto source = static_cast<int32_t>((place - hops % size + size) % size);
  Contribution mine = makeContribution(caller, type, count, input, result);
  mine.hops = hops;
  return meet(caller.lane, mine, [&](Meeting &meeting) { copy(result, meeting[source].input, bytes); });
}

Outcome plr_group::allToAll(const Caller &caller, int64_t count, const char *unit, const Exchange *exchanges,
                            int32_t exchangeCount) {
  const int32_t size = getSize();
  Contribution mine = {caller.call, count, unit, caller.tag, nullptr, nullptr, exchanges, exchangeCount};
  mine.shape = caller.shape;
  if (size == 1) {
    const Contribution *alone = &mine;
    if (std::string text = findMismatch(&alone, members.data(), 1); !text.empty())
      return {PLR_COMMUNICATION, text};
    for (const Exchange *one = exchanges; one != exchanges + exchangeCount; ++one)
      copy(one->result, one->input, one->sends.ends[one->blocks - 1] * one->bytes);
    return {};
  }
  return meet(caller.lane, mine, [&](Meeting &meeting) {
    for (int32_t part = 0; part < exchangeCount; ++part)
      for (int32_t i = 0; i < size; ++i) {
        const int32_t peer = (place + i) % size;
        const Exchange &from = meeting[peer].exchanges[part], &to = exchanges[part];
        for (int64_t block = 0; to.bytes > 0 && block < to.blocks; ++block) {
          ByteRange sent = getPiece(from.sends, from.sends.getNumber(place, size, block, to.blocks), from.bytes),
                    received = getPiece(to.receives, to.receives.getNumber(peer, size, block, to.blocks), to.bytes);
          copy(at(to.result, received.begin), at(from.input, sent.begin), received.bytes);
        }
      }
  });
}

// A rank that is alone is not called for.
Outcome plr_group::fetchRows(const Caller &caller, plr_type type, int64_t count, int64_t local, const void *input,
                             int64_t rows, const int32_t *numbers, void *result) {
  const int64_t bytes = count * getTypeBytes(type);
  return meet(caller.lane, makeContribution(caller, type, count, input, result), [&](Meeting &meeting) {
    for (int64_t i = 0; i < rows; ++i)
      if (numbers[i] >= 0) {
        auto owner = static_cast<int32_t>(numbers[i] / local);
        copy(at(result, i * bytes), at(meeting[owner].input, numbers[i] % local * bytes), bytes);
      }
  });
}

Outcome plr_group::addRows(const Caller &caller, int64_t count, int64_t local, const float *input, int64_t rows,
                           const int32_t *numbers, float *staging, float *result) {
  return meet(caller.lane, makeContribution(caller, PLR_F32, count, input, result), [&](Meeting &meeting) {
    for (int32_t rank = 0; rank < getSize(); ++rank)
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t number = numbers[rank * rows + i];
        if (number < 0 || number / local != place)
          continue;
        copy(staging, at(meeting[rank].input, i * count * 4), count * 4);
        float *sums = result + number % local * count;
        for (int64_t j = 0; j < count; ++j)
          sums[j] += staging[j];
      }
  });
}

/// The ranks with this rank's coordinates on the axes that are not in `axes`; or what is wrong with the grid.
static std::string findMembers(const plr_config &config, const int64_t *shape, int64_t dimensions, int64_t axes,
                               std::vector<int32_t> &members) {
  constexpr int64_t most = 62;
  if (dimensions < 0 || dimensions > most)
    return "dimensions is " + std::to_string(dimensions) + ", but must be 0 ... " + std::to_string(most);
  if (dimensions > 0 && !shape)
    return "shape is null";
  if (axes < 0 || axes >> dimensions != 0)
    return "axes is " + std::to_string(axes) + ", a bit set, but the grid has " + std::to_string(dimensions) +
           " dimensions";
  std::string text;
  int64_t product = 1;
  bool fits = true;
  for (int64_t i = 0; i < dimensions; ++i) {
    text += (i == 0 ? "" : "x") + std::to_string(shape[i]);
    fits = fits && shape[i] >= 1 && !__builtin_mul_overflow(product, shape[i], &product);
  }
  if (!fits || product != config.ranks)
    return "the grid's shape is [" + text + "], but its sizes must multiply to the number of ranks, " +
           std::to_string(config.ranks);
  members = {config.rank};
  int64_t stride = 1;
  for (int64_t i = dimensions - 1; i >= 0; stride *= shape[i--]) {
    if (!(axes >> i & 1))
      continue;
    std::vector<int32_t> wider;
    int64_t coordinate = config.rank / stride % shape[i];
    for (int32_t member : members)
      for (int64_t j = 0; j < shape[i]; ++j)
        wider.push_back(static_cast<int32_t>(member + (j - coordinate) * stride));
    members = std::move(wider);
  }
  std::sort(members.begin(), members.end());
  return {};
}

extern "C" plr_group *plr_get_group(plr_context *context, const int64_t *shape, int64_t dimensions, int64_t axes) {
  plr_group *group = nullptr;
  guard(context, "plr_get_group", [&]() -> plr_status {
    std::vector<int32_t> members;
    if (std::string fault = findMembers(context->config, shape, dimensions, axes, members); !fault.empty())
      return context->fail(PLR_INVALID_ARGUMENT, "plr_get_group: " + fault);
    for (const std::unique_ptr<plr_group> &known : context->groups)
      if (known->members == members) {
        group = known.get();
        return PLR_OK;
      }
    context->groups.push_back(std::make_unique<plr_group>(*context, std::move(members)));
    group = context->groups.back().get();
    return PLR_OK;
  });
  return group;
}

extern "C" int32_t plr_group_size(const plr_group *group) { return group ? group->getSize() : 0; }

extern "C" int32_t plr_group_rank(const plr_group *group) { return group ? group->place : -1; }
