//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// An order of the tasks of all lanes of a context, one after the other, drawn from a seed.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_INTERLEAVER_H
#define PLATEAU_RUNTIME_HOST_INTERLEAVER_H

#include "plateau/runtime.h"
#include <array>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <random>

namespace plateau::rt::host {

/// The thread that enqueues decides when the lanes' threads run what: after each task it enqueues, and while it waits.
/// So nothing hangs on time. A task that waits for other ranks is left to itself until it is done, and its lane stands
/// still: two ranks may stand in the collectives of different lanes, and neither keeps the other from coming.
class Interleaver {
public:
  Interleaver(plr_context &context, uint64_t seed);

  /// A task was enqueued: some may run now.
  void afterPush();
  /// Runs tasks until `holds`, a function without arguments, is true.
  template <typename Condition>
  void runUntil(const Condition &holds) {
    while (true) {
      uint64_t known = getReturns(); // Before the question: a return after it is not missed.
      if (holds())
        return;
      if (!runOne())
        waitForReturn(known);
    }
  }
  /// A task that was left to itself is done. Any thread.
  void noteReturn();

private:
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

  /// A number below `count`.
  uint64_t draw(uint64_t count) { return generator() % count; }
  void drawPriorities();
  void drawBacklog();
  /// Tasks that are enqueued and not done.
  int64_t countBacklog() const;
  /// Lets a lane run its next task; false when none can.
  bool runOne();
  uint64_t getReturns();
  void waitForReturn(uint64_t known);

  plr_context &context;
  std::mt19937_64 generator;
  std::array<uint64_t, PLR_LANES> priorities = {};
  int64_t mostBacklog = 0;      ///< More than that is run at once.
  uint64_t pushesUntilDraw = 0; ///< Of the backlog.
  std::mutex mutex;
  std::condition_variable returned;
  uint64_t returns = 0;
};

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_INTERLEAVER_H
