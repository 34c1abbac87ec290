//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Several ranks of one run, each used from a thread of its own.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_TEST_RANKS_H
#define PLATEAU_RUNTIME_TEST_RANKS_H

#include "rank.h"

namespace plateau::rt::test {

class Ranks {
public:
  explicit Ranks(int32_t count, double timeoutSeconds = 60, plr_config config = makeConfig())
      : transport(count, timeoutSeconds) {
    config.ranks = count;
    config.transport = transport;
    for (config.rank = 0; config.rank < count; ++config.rank)
      ranks.push_back(std::make_unique<Rank>(config));
  }

  int32_t size() const { return static_cast<int32_t>(ranks.size()); }
  Rank &operator[](int32_t rank) { return *ranks[rank]; }

  /// `body` is a function of a rank and its number; returns when it has run for all of them.
  template <typename Body>
  void run(const Body &body) {
    std::vector<std::thread> threads;
    for (int32_t rank = 0; rank < size(); ++rank)
      threads.emplace_back([&, rank] { body(*ranks[rank], rank); });
    for (std::thread &thread : threads)
      thread.join();
  }
  /// Likewise, and then no rank has failed.
  template <typename Body>
  void runWell(const Body &body) {
    run([&](Rank &rank, int32_t number) {
      body(rank, number);
      EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    });
  }

private:
  Transport transport;
  std::vector<std::unique_ptr<Rank>> ranks;
};

/// All ranks of a run.
inline plr_group *getWorld(plr_context *context, int64_t ranks) { return plr_get_group(context, &ranks, 1, 1); }

} // namespace plateau::rt::test

#endif // PLATEAU_RUNTIME_TEST_RANKS_H
