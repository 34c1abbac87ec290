//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The ranks of a run, as threads of this process: who is there, what each does, and who has failed.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_TRANSPORT_H
#define PLATEAU_RUNTIME_COMMON_TRANSPORT_H

#include "common/contribution.h"
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace plateau::rt {

class Meeting;

/// What a lane of a rank last did about collectives. The text is a copy: tags die with their program.
struct LaneRecord {
  enum { Nothing, Waits, Runs, Done } state = Nothing;
  Meeting *meeting = nullptr;
  int64_t number = 0; ///< Which collective of the group's on this lane, from 1.
  std::string text;
  uint64_t order = 0; ///< The later of two records has the larger one.
};

/// A rank as the others see it.
struct RankRecord {
  plr_context *context = nullptr; ///< Null before and after its life.
  bool destroyed = false;
  uint64_t failure = 0; ///< 0, or which failure of the run it was, from 1.
  std::string message;  ///< Of the failure.
  std::array<LaneRecord, PLR_LANES> lanes;
};

} // namespace plateau::rt

/// Everything but the two numbers is guarded by the mutex.
struct plr_transport {
  plr_transport(int32_t ranks, std::chrono::duration<double> timeout);
  ~plr_transport();
  plr_transport(const plr_transport &) = delete;
  plr_transport &operator=(const plr_transport &) = delete;

  int32_t getRanks() const { return static_cast<int32_t>(ranks.size()); }

  /// Enters a context under its rank; returns what is in the way, empty when nothing is.
  std::string join(plr_context &context);
  /// Its lanes have nothing left to run. Does nothing for a context that did not join.
  void leave(plr_context &context);
  /// The context has failed: all who wait for its rank, or will, learn of it. The first message counts.
  void noteFailure(plr_context &context, const std::string &message);

  /// Where these ranks meet on lanes of this kind. It stays as long as the transport.
  plateau::rt::Meeting &getMeeting(const std::vector<int32_t> &members, plr_lane_kind lane);

  // For meetings, which hold the mutex.

  /// Why a collective with these members cannot come about ("rank 2 failed: …"), if it cannot: the failure that came
  /// first. A pending interrupt counts as one.
  std::string findFailure(const std::vector<int32_t> &members) const;
  /// What a rank does, for those who wait for it.
  std::string describeRank(int32_t rank) const;

  const std::chrono::duration<double> timeout;
  std::mutex mutex;
  std::vector<plateau::rt::RankRecord> ranks;
  uint64_t failures = 0;
  uint64_t order = 0; ///< Of the last change of a lane's record.

private:
  void wake(int32_t rank);

  std::vector<std::unique_ptr<plateau::rt::Meeting>> meetings;
};

#endif // PLATEAU_RUNTIME_COMMON_TRANSPORT_H
