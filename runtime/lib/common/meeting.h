//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Where the ranks of a group come together for each of their collectives.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_MEETING_H
#define PLATEAU_RUNTIME_COMMON_MEETING_H

#include "common/transport.h"
#include "host/lane.h"
#include <condition_variable>

namespace plateau::rt {

/// For each collective every rank calls arrive(), pass() where the ranks' work has steps, and leave(). Until arrive()
/// has succeeded a collective may fail, on all ranks and before any of them touches another's memory. From then on
/// nothing can fail, and nobody goes before all call leave(): what was contributed stays valid for all.
///
/// A failure stays: whoever arrives later gets it too. One thread at a time stands for a rank, since lanes run in
/// order.
class Meeting {
public:
  Meeting(plr_transport &transport, std::vector<int32_t> members, plr_lane_kind lane);

  /// Waits for all ranks of the group. `place` is the caller's in the group.
  host::Outcome arrive(int32_t place, const Contribution &mine);
  /// Waits until all ranks of the group call it.
  void pass();
  /// The last pass().
  void leave(int32_t place);

  /// What the rank of this place brought; between arrive() and leave().
  const Contribution &operator[](int32_t place) const { return *contributions[place]; }

  // With the transport's mutex held:

  /// Lets those who wait look at the ranks again.
  void wake() { changed.notify_all(); }
  /// "group [0, 2]".
  std::string describe() const;

  const std::vector<int32_t> members;
  const plr_lane_kind lane;

private:
  using Lock = std::unique_lock<std::mutex>;

  int32_t getSize() const { return static_cast<int32_t>(members.size()); }
  LaneRecord &getRecord(int32_t place) { return transport.ranks[members[place]].lanes[lane]; }
  void setState(int32_t place, decltype(LaneRecord::state) state);
  void fail(std::string text);
  void nextTurn();
  void waitForTurn(Lock &lock, uint64_t turn);

  /// Looks for what keeps the collective from coming about, and fails when there is something.
  void check();
  /// Fails all meetings of a circle of ranks each of which waits for the next one here and can therefore not go there.
  void checkForCircle(int32_t place);
  bool findCircle(int32_t rank, int32_t sought, std::vector<int32_t> &path, std::vector<bool> &seen) const;
  std::string describeArrived() const;
  std::string describeMissing() const;

  plr_transport &transport;
  std::condition_variable changed;
  std::vector<const Contribution *> contributions; ///< By place; null where the rank has not come.
  int32_t present = 0, passed = 0;
  uint64_t turns = 0; ///< How often all ranks have been let go on.
  int64_t number = 1; ///< Of the collective, for messages.
  std::chrono::steady_clock::time_point deadline;
  std::string failure;
};

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_MEETING_H
