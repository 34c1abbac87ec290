//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/meeting.h"
#include "common/context.h"
#include <algorithm>
#include <cstdio>

using namespace plateau::rt;
using host::Outcome;

/// How often those who wait look for an interrupt, which may come from a signal handler and so cannot wake them.
static constexpr std::chrono::milliseconds pollInterval(40);

Meeting::Meeting(plr_transport &transport, std::vector<int32_t> members, plr_lane_kind lane)
    : members(std::move(members)), lane(lane), transport(transport), contributions(this->members.size()) {}

std::string Meeting::describe() const {
  std::string text = "group [";
  for (const int32_t &member : members)
    text += (&member == members.data() ? "" : ", ") + std::to_string(member);
  return text + "]";
}

void Meeting::setState(int32_t place, decltype(LaneRecord::state) state) {
  LaneRecord &record = getRecord(place);
  record.state = state;
  record.order = ++transport.order;
}

void Meeting::fail(std::string text) {
  if (failure.empty())
    failure = std::move(text);
  changed.notify_all();
}

void Meeting::nextTurn() {
  ++turns;
  changed.notify_all();
}

void Meeting::waitForTurn(Lock &lock, uint64_t turn) {
  changed.wait(lock, [&] { return turns != turn; });
}

Outcome Meeting::arrive(int32_t place, const Contribution &mine) {
  Lock lock(transport.mutex);
  // Nobody may find this contribution once the rank has gone without the others.
  struct Presence {
    Meeting &meeting;
    int32_t place;
    bool stays = false;
    ~Presence() {
      if (stays)
        return;
      meeting.contributions[place] = nullptr;
      --meeting.present;
      meeting.setState(place, LaneRecord::Nothing);
    }
  } presence{*this, place};
  if (present == 0)
    deadline = std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(transport.timeout);
  contributions[place] = &mine;
  ++present;
  LaneRecord &record = getRecord(place);
  record.meeting = this;
  record.number = number;
  record.text = rt::describe(mine);
  setState(place, LaneRecord::Waits);

  uint64_t turn = turns;
  check();
  if (failure.empty() && present == getSize())
    nextTurn();
  else if (failure.empty())
    checkForCircle(place);
  while (turns == turn && failure.empty()) {
    changed.wait_until(lock, std::min(std::chrono::steady_clock::now() + pollInterval, deadline));
    if (turns == turn && failure.empty())
      check();
  }
  if (turns != turn) {
    presence.stays = true;
    setState(place, LaneRecord::Runs);
    return {};
  }
  const RankRecord &rank = transport.ranks[members[place]];
  if (rank.failure == 0 && rank.context->error.isInterrupted())
    return {PLR_INTERRUPTED, "interrupted while it waited; " + describeMissing()};
  return {PLR_COMMUNICATION, failure};
}

void Meeting::pass() {
  Lock lock(transport.mutex);
  uint64_t turn = turns;
  if (++passed == getSize()) {
    passed = 0;
    nextTurn();
  } else {
    waitForTurn(lock, turn);
  }
}

void Meeting::leave(int32_t place) {
  Lock lock(transport.mutex);
  setState(place, LaneRecord::Done);
  uint64_t turn = turns;
  if (++passed < getSize()) {
    waitForTurn(lock, turn);
    return;
  }
  passed = present = 0;
  std::fill(contributions.begin(), contributions.end(), nullptr);
  ++number;
  nextTurn();
}

void Meeting::check() {
  if (!failure.empty())
    return;
  if (std::string text = transport.findFailure(members); !text.empty())
    return fail(std::move(text));
  if (present == getSize()) {
    std::string text = findMismatch(contributions.data(), members.data(), getSize());
    if (!text.empty())
      fail("the ranks of " + describe() + " disagree about their collective " + std::to_string(number) + ": " + text +
           ": " + describeArrived());
    return;
  }
  if (std::chrono::steady_clock::now() < deadline)
    return;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", transport.timeout.count());
  fail("not all ranks of " + describe() + " have come to their collective " + std::to_string(number) + " within " +
       seconds + " seconds: " + describeMissing() + "; there came " + describeArrived() +
       ". All ranks must make the same collectives in the same order; where one is only slow, the transport needs a "
       "longer timeout");
}

std::string Meeting::describeArrived() const {
  std::string text;
  for (int32_t place = 0; place < getSize(); ++place)
    if (contributions[place])
      text += (text.empty() ? "rank " : "; rank ") + std::to_string(members[place]) + " with " +
              rt::describe(*contributions[place]);
  return text;
}

std::string Meeting::describeMissing() const {
  std::string text;
  for (int32_t place = 0; place < getSize(); ++place)
    if (!contributions[place])
      text += (text.empty() ? "" : "; ") + transport.describeRank(members[place]);
  return text;
}

bool Meeting::findCircle(int32_t rank, int32_t sought, std::vector<int32_t> &path, std::vector<bool> &seen) const {
  const LaneRecord &record = transport.ranks[rank].lanes[lane];
  if (record.state != LaneRecord::Waits || seen[rank])
    return false;
  seen[rank] = true;
  path.push_back(rank);
  const Meeting &here = *record.meeting;
  for (int32_t place = 0; place < here.getSize() && here.failure.empty(); ++place)
    if (!here.contributions[place] &&
        (here.members[place] == sought || findCircle(here.members[place], sought, path, seen)))
      return true;
  path.pop_back();
  return false;
}

void Meeting::checkForCircle(int32_t place) {
  std::vector<int32_t> path;
  std::vector<bool> seen(transport.ranks.size());
  if (!findCircle(members[place], members[place], path, seen))
    return;
  std::string text = "the ranks wait for each other in different groups:";
  for (size_t i = 0; i < path.size(); ++i)
    text += (i == 0 ? " " : "; ") + transport.describeRank(path[i]);
  text += ". All ranks must make the collectives of a lane in the same order, whichever groups they concern";
  for (int32_t rank : path)
    transport.ranks[rank].lanes[lane].meeting->fail(text);
}
