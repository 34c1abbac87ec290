//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Small random arenas, with an order worked out from reachability alone.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_PLANNING_RANDOMPROBLEM_H
#define PLATEAU_TEST_UNIT_PLANNING_RANDOMPROBLEM_H

#include "plateau/Planning/ArenaProblem.h"
#include <algorithm>
#include <random>

namespace mlir::plateau::planning {

struct RandomProblem {
  struct Life {
    int32_t buffer;
    std::vector<int32_t> accesses;
  };
  ArenaProblem problem;
  std::vector<Life> lives;
  std::vector<uint64_t> before; ///< For each call, those that happen before it.
  bool hasOneStart = true;      ///< In each life one access is before all others.

  explicit RandomProblem(unsigned lanes) : problem(lanes) {}

  bool isBefore(const Life &a, const Life &b) const {
    for (int32_t x : a.accesses)
      for (int32_t y : b.accesses)
        if (!(before[y] >> x & 1))
          return false;
    return true;
  }
  bool mayShare(int32_t a, int32_t b) const {
    for (const Life &x : lives)
      for (const Life &y : lives)
        if (x.buffer == a && y.buffer == b && !isBefore(x, y) && !isBefore(y, x))
          return false;
    return true;
  }
};

struct RandomOptions {
  int numBuffers = 8, numCalls = 12, mostLives = 1;
  bool oneStart = true; ///< The first access of a life is before its others.
};

inline RandomProblem makeRandomProblem(unsigned seed, RandomOptions options) {
  std::mt19937 random(seed);
  auto upTo = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  unsigned lanes = 1 + upTo(3);
  RandomProblem made(lanes);
  std::vector<int> laneOf;
  std::vector<int32_t> fence;
  for (int call = 0; call < options.numCalls; ++call) {
    unsigned lane = upTo(lanes - 1);
    uint64_t mask = 0;
    std::vector<int32_t> waits;
    for (int other = call - 1; other >= 0; --other) {
      bool isWait = upTo(9) == 0;
      if (isWait)
        waits.push_back(other);
      if (isWait || laneOf[other] == static_cast<int>(lane))
        mask |= made.before[other] | uint64_t(1) << other;
    }
    for (int32_t other : fence)
      mask |= made.before[other] | uint64_t(1) << other;
    laneOf.push_back(lane);
    made.before.push_back(mask);
    made.problem.addCall(lane, waits);
    if (upTo(15) == 0) {
      fence.push_back(upTo(call));
      made.problem.addFence(fence.back());
    }
  }
  for (int buffer = 0; buffer < options.numBuffers; ++buffer) {
    // A few sizes, one of them nothing.
    static const int sizes[] = {0, 1, 2, 3, 5, 8, 13};
    made.problem.addBuffer(64 * sizes[upTo(6)]);
    int32_t from = upTo(options.numCalls - 1);
    for (int life = 0, lives = 1 + upTo(options.mostLives - 1); life < lives; ++life) {
      std::vector<int32_t> accesses = {from};
      for (int more = upTo(3); more > 0; --more) {
        int32_t access = from + upTo(options.numCalls - 1 - from);
        if (access != from && (!options.oneStart || (made.before[access] >> from & 1)))
          accesses.push_back(access);
      }
      int starts = 0;
      std::sort(accesses.begin(), accesses.end());
      accesses.erase(std::unique(accesses.begin(), accesses.end()), accesses.end());
      for (int32_t x : accesses) {
        bool isStart = true;
        for (int32_t y : accesses)
          isStart &= !(made.before[x] >> y & 1);
        starts += isStart;
      }
      made.hasOneStart &= starts == 1;
      RandomProblem::Life next{buffer, accesses};
      // The lives of a buffer have an order.
      if (life > 0 && !made.isBefore(made.lives.back(), next))
        break;
      made.lives.push_back(next);
      made.problem.addLife(buffer, accesses);
      from = std::min(options.numCalls - 1, *std::max_element(accesses.begin(), accesses.end()) + 1);
    }
  }
  made.problem.finalize();
  return made;
}

} // namespace mlir::plateau::planning

#endif // PLATEAU_TEST_UNIT_PLANNING_RANDOMPROBLEM_H
