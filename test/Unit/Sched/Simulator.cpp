//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Simulator.h"
#include <set>

using namespace mlir::plateau::sched;

namespace {
/// How far host and lanes have come. A call that runs is started, and not done.
struct State {
  int issued = 0;
  std::vector<int> started, done; ///< Calls of each lane.
  bool operator<(const State &other) const {
    return std::tie(issued, started, done) < std::tie(other.issued, other.started, other.done);
  }
};

class Simulator {
public:
  Simulator(const RandomSchedule &program, size_t mostStates)
      : calls(program.calls), mostStates(mostStates), queues(4), position(calls.size()) {
    for (size_t call = 0; call < calls.size(); ++call)
      if (calls[call].lane >= 0) {
        position[call] = queues[calls[call].lane].size();
        queues[calls[call].lane].push_back(call);
      }
    for (const ModelCall &call : calls)
      for (const ModelUse &use : call.uses)
        memories = std::max(memories, use.memory + 1);
    units = program.units;
  }

  Runs run() {
    for (const ModelCall &call : calls)
      for (size_t i = 0; i < call.uses.size(); ++i)
        for (size_t j = 0; j < call.uses.size(); ++j) {
          const ModelUse &a = call.uses[i], &b = call.uses[j];
          bool isInPlace = !b.isWrite && a.root == b.root && a.begin == b.begin && a.end == b.end;
          runs.hasRaceInside |= i != j && a.isWrite && a.meets(b) && !isInPlace;
        }
    std::vector<int> memory(memories * units, ModelUse::initial);
    for (const ModelCall &call : calls)
      runs.hasWrongReadInOrder |= execute(call, memory);
    exploreConcurrent();
    exploreOrders();
    return runs;
  }

private:
  bool isDone(const State &state, int call) const { return position[call] < state.done[calls[call].lane]; }
  bool mayIssue(const State &state) const {
    if (state.issued == int(calls.size()))
      return false;
    const ModelCall &call = calls[state.issued];
    if (call.lane == ModelCall::ret) {
      for (int other = 0; other < state.issued; ++other)
        if (calls[other].lane >= 0 && !isDone(state, other))
          return false;
      return true;
    }
    return call.lane >= 0 || areDone(state, call.waits);
  }
  bool areDone(const State &state, const std::vector<int> &waits) const {
    for (int wait : waits)
      if (!isDone(state, wait))
        return false;
    return true;
  }
  /// The call that the lane may start; -1 without one.
  int getStartable(const State &state, int lane) const {
    if (state.started[lane] != state.done[lane] || state.started[lane] == int(queues[lane].size()))
      return -1;
    int call = queues[lane][state.started[lane]];
    return call < state.issued && areDone(state, calls[call].waits) ? call : -1;
  }

  static bool clash(const ModelCall &a, const ModelCall &b) {
    for (const ModelUse &x : a.uses)
      for (const ModelUse &y : b.uses)
        if ((x.isWrite || y.isWrite) && x.meets(y))
          return true;
    return false;
  }

  /// Calls run for a while: which of them run at a time, and what the host meets.
  void exploreConcurrent() {
    std::set<State> seen;
    std::vector<State> work = {getStart()};
    auto push = [&](State state) {
      if (seen.insert(state).second)
        work.push_back(std::move(state));
    };
    while (!work.empty()) {
      State state = work.back();
      work.pop_back();
      std::vector<int> running;
      for (int lane = 0; lane < 4; ++lane)
        if (state.started[lane] > state.done[lane])
          running.push_back(queues[lane][state.done[lane]]);
      for (size_t i = 0; i < running.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          runs.hasRace |= clash(calls[running[i]], calls[running[j]]);
      if (mayIssue(state)) {
        for (const ModelUse &use : calls[state.issued].uses)
          if (use.isTable)
            meetTable(state, use);
        State after = state;
        ++after.issued;
        push(std::move(after));
      }
      for (int lane = 0; lane < 4; ++lane) {
        State after = state;
        if (state.started[lane] > state.done[lane])
          ++after.done[lane];
        else if (getStartable(state, lane) >= 0)
          ++after.started[lane];
        else
          continue;
        push(std::move(after));
      }
    }
  }

  void meetTable(const State &state, const ModelUse &use) {
    for (int other = 0; other < state.issued; ++other)
      if (calls[other].lane >= 0 && !isDone(state, other))
        for (const ModelUse &write : calls[other].uses)
          runs.hasEarlyHostRead |= write.isWrite && write.meets(use);
    for (int writer : use.named)
      runs.hasUnfencedTable |= writer >= 0 && !isDone(state, writer);
  }

  /// Whether the call reads something wrong; then it writes.
  bool execute(const ModelCall &call, std::vector<int> &memory) const {
    bool isWrong = false;
    for (const ModelUse &use : call.uses)
      for (int unit = use.begin; unit < use.end && !use.isWrite; ++unit) {
        int named = use.named[unit - use.begin];
        isWrong |= named != ModelUse::anything && memory[use.memory * units + unit] != named;
      }
    for (const ModelUse &use : call.uses)
      for (int unit = use.begin; unit < use.end && use.isWrite; ++unit)
        memory[use.memory * units + unit] = &call - calls.data();
    return isWrong;
  }

  /// Calls run one at a time, in every order.
  void exploreOrders() {
    using Snapshot = std::pair<State, std::vector<int>>;
    std::set<Snapshot> seen;
    std::vector<Snapshot> work = {{getStart(), std::vector<int>(memories * units, ModelUse::initial)}};
    auto push = [&](Snapshot snapshot) {
      auto [known, isNew] = seen.insert(std::move(snapshot));
      if (isNew)
        work.push_back(*known);
    };
    while (!work.empty() && !runs.hasWrongRead) {
      if (seen.size() > mostStates) {
        runs.isComplete = false;
        return;
      }
      Snapshot snapshot = work.back();
      work.pop_back();
      if (mayIssue(snapshot.first)) {
        Snapshot after = snapshot;
        const ModelCall &call = calls[after.first.issued++];
        if (call.lane == ModelCall::ret)
          runs.hasWrongRead |= execute(call, after.second);
        push(std::move(after));
      }
      for (int lane = 0; lane < 4; ++lane)
        if (int call = getStartable(snapshot.first, lane); call >= 0) {
          Snapshot after = snapshot;
          ++after.first.started[lane];
          ++after.first.done[lane];
          runs.hasWrongRead |= execute(calls[call], after.second);
          push(std::move(after));
        }
    }
  }

  State getStart() const { return {0, std::vector<int>(4), std::vector<int>(4)}; }

  const std::vector<ModelCall> &calls;
  size_t mostStates;
  std::vector<std::vector<int>> queues;
  std::vector<int> position; ///< Of each call in its lane.
  int memories = 0, units;
  Runs runs;
};
} // namespace

Runs mlir::plateau::sched::simulate(const RandomSchedule &program, size_t mostStates) {
  return Simulator(program, mostStates).run();
}
