//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/transport.h"
#include "common/context.h"
#include "common/meeting.h"
#include "common/names.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace plateau::rt;

plr_transport::plr_transport(int32_t ranks, std::chrono::duration<double> timeout) : timeout(timeout), ranks(ranks) {}

plr_transport::~plr_transport() = default;

std::string plr_transport::join(plr_context &context) {
  std::lock_guard<std::mutex> lock(mutex);
  RankRecord &record = ranks[context.config.rank];
  if (record.context)
    return "the transport has a context of this rank already; each rank has one";
  // What a group went through when a rank failed is not undone: the others would meet a stranger in the middle.
  if (record.destroyed && failures > 0)
    return "a rank of this transport has failed; ranks that start again need a new transport";
  record.context = &context;
  record.destroyed = false;
  return {};
}

void plr_transport::leave(plr_context &context) {
  std::lock_guard<std::mutex> lock(mutex);
  RankRecord &record = ranks[context.config.rank];
  if (record.context != &context)
    return;
  record.context = nullptr;
  record.destroyed = true;
  wake(context.config.rank);
}

void plr_transport::noteFailure(plr_context &context, const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  RankRecord &record = ranks[context.config.rank];
  if (record.context != &context || record.failure != 0)
    return;
  record.message = message;
  record.failure = ++failures;
  wake(context.config.rank);
}

void plr_transport::wake(int32_t rank) {
  for (std::unique_ptr<Meeting> &meeting : meetings)
    if (std::find(meeting->members.begin(), meeting->members.end(), rank) != meeting->members.end())
      meeting->wake();
}

Meeting &plr_transport::getMeeting(const std::vector<int32_t> &members, plr_lane_kind lane) {
  std::lock_guard<std::mutex> lock(mutex);
  for (std::unique_ptr<Meeting> &meeting : meetings)
    if (meeting->lane == lane && meeting->members == members)
      return *meeting;
  meetings.push_back(std::make_unique<Meeting>(*this, members, lane));
  return *meetings.back();
}

std::string plr_transport::findFailure(const std::vector<int32_t> &members) const {
  const RankRecord *first = nullptr, *gone = nullptr, *interrupted = nullptr;
  for (int32_t member : members) {
    const RankRecord &record = ranks[member];
    if (record.failure != 0 && (!first || record.failure < first->failure))
      first = &record;
    else if (record.context && record.context->error.isInterrupted() && !interrupted)
      interrupted = &record;
    else if (record.destroyed && !gone)
      gone = &record;
  }
  auto name = [&](const RankRecord *record) { return "rank " + std::to_string(record - ranks.data()); };
  if (first)
    return name(first) + " failed: " + first->message;
  if (interrupted)
    return name(interrupted) + " failed: it was interrupted";
  if (gone)
    return name(gone) + " does not come: its context was destroyed";
  return {};
}

static std::string describeLane(const LaneRecord &record) {
  const char *states[] = {"", "waits in ", "runs ", "has last done "};
  return states[record.state] + record.text + " on lane " + getLaneName(record.meeting->lane) + " (collective " +
         std::to_string(record.number) + " of " + record.meeting->describe() + ")";
}

std::string plr_transport::describeRank(int32_t rank) const {
  const RankRecord &record = ranks[rank];
  std::string text = "rank " + std::to_string(rank) + " ";
  if (record.failure != 0)
    return text + "failed: " + record.message;
  if (record.destroyed)
    return text + "was destroyed";
  if (!record.context)
    return text + "has no context yet";
  // Lanes that wait say most; of the others, the one that did something last.
  std::string waiting;
  const LaneRecord *last = nullptr;
  for (const LaneRecord &lane : record.lanes) {
    if (lane.state == LaneRecord::Waits)
      waiting += (waiting.empty() ? "" : " and ") + describeLane(lane);
    else if (lane.state != LaneRecord::Nothing && (!last || lane.order > last->order))
      last = &lane;
  }
  if (!waiting.empty())
    return text + waiting;
  return text + (last ? describeLane(*last) : "has come to no collective yet");
}

static plr_status createThreads(int32_t ranks, double timeout, plr_transport **transport, std::string &message) {
  if (!transport) {
    message = "there is no place for the transport: the pointer is null";
    return PLR_INVALID_ARGUMENT;
  }
  if (ranks < 1) {
    message = "ranks is " + std::to_string(ranks) + ", but must be at least 1";
    return PLR_INVALID_ARGUMENT;
  }
  constexpr double longest = 1e8; // Some years: clocks can count it.
  if (!(timeout > 0 && timeout <= longest)) {
    message = "timeout_seconds is " + std::to_string(timeout) + ", but must be positive and at most 100000000";
    return PLR_INVALID_ARGUMENT;
  }
  try {
    *transport = new plr_transport(ranks, std::chrono::duration<double>(timeout));
    return PLR_OK;
  } catch (const std::exception &exception) {
    message = exception.what();
    return PLR_INTERNAL;
  }
}

extern "C" plr_status plr_transport_create_threads(int32_t ranks, double timeout_seconds, plr_transport **transport,
                                                   char *message, size_t size) {
  if (transport)
    *transport = nullptr;
  std::string text;
  plr_status status = createThreads(ranks, timeout_seconds, transport, text);
  if (status != PLR_OK && message && size > 0)
    std::snprintf(message, size, "plr_transport_create_threads: %s", text.c_str());
  return status;
}

extern "C" void plr_transport_destroy(plr_transport *transport) { delete transport; }
