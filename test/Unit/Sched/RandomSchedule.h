//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Small programs at random, as text and as what they mean, worked out without the compiler.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_SCHED_RANDOMSCHEDULE_H
#define PLATEAU_TEST_UNIT_SCHED_RANDOMSCHEDULE_H

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace mlir::plateau::sched {

/// Memory is counted in units of 64 bytes.
struct ModelUse {
  int memory; ///< Arenas of device and host are 0 and 1.
  std::string root;
  int begin, end;         ///< Units of the memory.
  std::vector<int> named; ///< Of a read: for each unit the call that must have written it.
  bool isWrite = false, isTable = false;

  static constexpr int initial = -1, anything = -2, unwritten = -3;
  bool meets(const ModelUse &other) const { return memory == other.memory && begin < other.end && other.begin < end; }
};

struct ModelCall {
  static constexpr int fence = -1, ret = -2;
  int lane; ///< Or `fence`, `ret`.
  std::vector<int> waits;
  std::vector<ModelUse> uses;
};

/// How likely a program is right.
struct Habits {
  int trips = 3;    ///< At most, of a loop.
  int maxDepth = 3; ///< Of a ring.
  int lanes = 3;
  double wait = 0.6;     ///< That a call waits for a call that it follows.
  double recent = 0.7;   ///< That a read takes a value that was written a short time ago.
  bool apart = true;     ///< Slots share no bytes.
  bool isSerial = false; ///< Every call waits for the one before it.
  bool hasTables = true;
  bool isOneLoop = false; ///< One long loop with a few calls around it.
  double nest = 0;        ///< That a loop has a loop inside.
  double update = 0;      ///< That a part that is written updates a value of the whole.
};

struct RandomSchedule {
  std::string text; ///< Body of a program for SchedTest::parse.
  std::vector<ModelCall> calls;
  int units = 0; ///< Of each memory, at most.
};

RandomSchedule getRandomSchedule(std::mt19937 &random, const Habits &habits);

} // namespace mlir::plateau::sched

#endif // PLATEAU_TEST_UNIT_SCHED_RANDOMSCHEDULE_H
