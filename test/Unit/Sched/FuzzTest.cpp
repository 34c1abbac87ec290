//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The checkers' verdict on random programs, against all runs of them; and on prefixes of loops, against whole loops.
//===----------------------------------------------------------------------===//

#include "RandomSchedule.h"
#include "RuntimeRuns.h"
#include "SchedTest.h"
#include "Simulator.h"
#include "plateau/Dialect/Sched/Verify/Checkers.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
Habits getHabits(std::mt19937 &random) {
  Habits habits;
  habits.isSerial = random() % 4 == 0;
  habits.apart = random() % 3 != 0;
  habits.wait = (random() % 10) / 10.0;
  habits.recent = 0.5 + (random() % 5) / 10.0;
  habits.lanes = 1 + random() % 3;
  habits.nest = 0.1;
  return habits;
}

class FuzzTest : public SchedTest {
protected:
  /// Calls `judge(program, timeline)` for `wanted` programs of so few calls that all their orders can be looked at.
  template <typename Judge>
  void forEachSmallProgram(unsigned seed, int wanted, Judge judge, double update = 0) {
    std::mt19937 random(seed);
    for (int number = 0, judged = 0; judged < wanted && !HasFatalFailure(); ++number) {
      ASSERT_LT(number, 20 * wanted);
      Habits habits = getHabits(random);
      habits.update = update;
      RandomSchedule program = getRandomSchedule(random, habits);
      if (program.calls.size() > 16)
        continue;
      ProgramOp op = parseQuietly(program);
      if (!op)
        continue;
      FailureOr<Timeline> timeline = Timeline::get(op);
      ASSERT_TRUE(succeeded(timeline));
      judge(program, *timeline);
      ++judged;
    }
  }

  /// None when the dialect's own verifiers refuse the text.
  ProgramOp parseQuietly(const RandomSchedule &program) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) { message = diag.str(); });
    std::string text =
        "#t = #sched.tag<\"op\", dense, forward>\nsched.program @p ranks(2) {\nsched.lane compute\nsched.lane "
        "comm\nsched.lane h2d\nsched.lane d2h\n" +
        program.text + "\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module || message.find("C3: ") != std::string::npos) << message << "\n" << text;
    return module ? *module->getOps<ProgramOp>().begin() : ProgramOp();
  }

  static std::map<std::string, bool> getVerdict(const Timeline &timeline) {
    Order order(timeline);
    std::map<std::string, bool> found;
    FaultList hazards = findHazards(timeline, order), values = findWrongValues(timeline),
              tables = findUnfencedTables(timeline, order);
    found["HZ"] = !hazards.empty();
    found["VA"] = !values.empty();
    found["FE"] = !tables.empty();
    for (const FaultList *list : {&hazards, &values, &tables})
      for (const Fault &fault : list->get())
        found[fault.code.str()] = true;
    return found;
  }
};

TEST_F(FuzzTest, VerdictIsThatOfAllRuns) {
  constexpr int wanted = 3000;
  constexpr size_t mostStates = 4000;
  std::map<std::string, int> counts;
  forEachSmallProgram(20240, wanted, [&](const RandomSchedule &program, const Timeline &timeline) {
    ASSERT_EQ(timeline.nodes.size(), program.calls.size()) << program.text;
    std::map<std::string, bool> verdict = getVerdict(timeline);
    Runs runs = simulate(program, mostStates);
    ASSERT_EQ(verdict["HZ3"], runs.hasRaceInside) << program.text;
    ASSERT_EQ(verdict["HZ1"], runs.hasRace) << program.text;
    ASSERT_EQ(verdict["HZ2"], runs.hasEarlyHostRead) << program.text;
    ASSERT_EQ(verdict["FE"], runs.hasUnfencedTable) << program.text;
    ASSERT_EQ(verdict["VA"], runs.hasWrongReadInOrder) << program.text;
    bool isAccepted = !verdict["HZ"] && !verdict["VA"] && !verdict["FE"];
    if (isAccepted)
      ASSERT_FALSE(runs.hasWrongRead) << program.text;
    ++counts["programs"];
    ++counts[isAccepted ? "accepted" : "refused"];
    counts["all orders seen"] += runs.isComplete;
    for (auto [code, isFound] : verdict)
      counts[code] += isFound;
  });
  for (auto [name, count] : counts) {
    RecordProperty(name, count);
    std::printf("%s %d\n", name.c_str(), count);
  }
  for (const char *name : {"accepted", "refused", "HZ1", "HZ2", "HZ3", "VA1", "VA2", "FE1"})
    EXPECT_GE(counts[name], wanted / 50) << name;
}

// Values that are written part by part. (An earlier writer is not named beside one that races with it, so only the
// kinds of faults are compared.)
TEST_F(FuzzTest, VerdictOnUpdatesIsThatOfAllRuns) {
  constexpr int wanted = 3000;
  constexpr size_t mostStates = 4000;
  int accepted = 0, wrong = 0, updates = 0;
  auto judge = [&](const RandomSchedule &program, const Timeline &timeline) {
    if (program.text.find("sched.update") == std::string::npos)
      return;
    ++updates;
    std::map<std::string, bool> verdict = getVerdict(timeline);
    Runs runs = simulate(program, mostStates);
    ASSERT_EQ(verdict["HZ"], runs.hasRace || runs.hasRaceInside || runs.hasEarlyHostRead) << program.text;
    ASSERT_EQ(verdict["FE"], runs.hasUnfencedTable) << program.text;
    ASSERT_EQ(verdict["VA"], runs.hasWrongReadInOrder) << program.text;
    bool isAccepted = !verdict["HZ"] && !verdict["VA"] && !verdict["FE"];
    if (isAccepted)
      ASSERT_FALSE(runs.hasWrongRead) << program.text;
    accepted += isAccepted;
    wrong += verdict["VA"];
  };
  forEachSmallProgram(77, wanted, judge, /*update=*/0.9);
  std::printf("with updates %d, accepted %d, wrong values %d\n", updates, accepted, wrong);
  EXPECT_GE(updates, wanted / 20);
  EXPECT_GE(accepted, updates / 20);
  EXPECT_GE(wrong, updates / 20);
}

// The runtime itself, with lanes in drawn orders, against the checkers and against all orders that there are: what is
// accepted never reads a wrong byte, and what can read one does so for some seed.
TEST_F(FuzzTest, VerdictIsThatOfTheRuntime) {
  constexpr int wanted = 1000;
  constexpr uint64_t seedsOfAccepted = 10, seedsOfRefused = 300;
  std::map<std::string, int> counts;
  forEachSmallProgram(4711, wanted, [&](const RandomSchedule &program, const Timeline &timeline) {
    std::map<std::string, bool> verdict = getVerdict(timeline);
    bool isAccepted = !verdict["HZ"] && !verdict["VA"] && !verdict["FE"];
    Runs runs = simulate(program, /*mostStates=*/4000);
    uint64_t seed = 1, last = isAccepted ? seedsOfAccepted : runs.hasWrongRead ? seedsOfRefused : 1;
    while (seed <= last && !readsWrongOnRuntime(program, seed))
      ++seed;
    bool isWrong = seed <= last;
    ++counts["programs"];
    ++counts[isAccepted ? "accepted" : "refused"];
    counts["runs"] += std::min(seed, last);
    if (isAccepted)
      ASSERT_FALSE(isWrong) << "seed " << seed << "\n" << program.text;
    if (runs.isComplete)
      ASSERT_TRUE(!isWrong || runs.hasWrongRead) << program.text;
    counts["wrong in some order"] += runs.hasWrongRead;
    counts["of them seen"] += runs.hasWrongRead && isWrong;
    if (runs.hasWrongRead)
      EXPECT_TRUE(isWrong) << "no seed of " << last << "\n" << program.text;
  });
  for (auto [name, count] : counts) {
    RecordProperty(name, count);
    std::printf("%s %d\n", name.c_str(), count);
  }
  EXPECT_GE(counts["accepted"], wanted / 20);
  EXPECT_GE(counts["of them seen"], wanted / 20);
}

TEST_F(FuzzTest, PrefixHasTheVerdictOfTheLoop) {
  constexpr int wanted = 3000;
  std::map<std::string, int> counts;
  std::mt19937 random(71);
  for (int number = 0; counts["programs"] < wanted; ++number) {
    ASSERT_LT(number, 20 * wanted);
    Habits habits = getHabits(random);
    habits.isOneLoop = true;
    habits.nest = 0.25;
    habits.trips = random() % 4 == 0 ? 12 : 40;
    habits.maxDepth = 4;
    RandomSchedule program = getRandomSchedule(random, habits);
    ProgramOp op = parseQuietly(program);
    if (!op)
      continue;
    Timeline::Options options;
    FailureOr<Timeline> whole = Timeline::get(op, options);
    options.prefix = true;
    FailureOr<Timeline> prefix = Timeline::get(op, options);
    ASSERT_TRUE(succeeded(whole) && succeeded(prefix));
    ASSERT_EQ(whole->nodes.size(), program.calls.size()) << program.text;
    std::map<std::string, bool> verdict = getVerdict(*whole), short_ = getVerdict(*prefix);
    for (const char *name : {"HZ", "HZ1", "HZ2", "HZ3", "VA", "FE"})
      ASSERT_EQ(verdict[name], short_[name])
          << name << " of " << prefix->nodes.size() << " and " << whole->nodes.size() << "\n"
          << program.text;
    ++counts["programs"];
    counts["shorter"] += prefix->nodes.size() < whole->nodes.size();
    counts["HZ"] += verdict["HZ"];
    counts["VA"] += verdict["VA"];
    counts["accepted"] += !verdict["HZ"] && !verdict["VA"] && !verdict["FE"];
  }
  for (auto [name, count] : counts) {
    RecordProperty(name, count);
    std::printf("%s %d\n", name.c_str(), count);
  }
  EXPECT_GE(counts["shorter"], wanted / 4);
  EXPECT_GE(counts["accepted"], wanted / 50);
}
} // namespace
