//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Planning/LowerBound.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir::plateau::planning;

namespace {
using Calls = llvm::ArrayRef<int32_t>;

/// States between two, both included.
struct Box {
  Clock low, high;
  int64_t bytes = 0;
  int32_t buffer = 0;
};

class Search {
public:
  Search(const ArenaProblem &problem, int64_t workLimit)
      : problem(problem), numLanes(problem.getNumLanes()), workLimit(workLimit) {}

  LowerBound run();

private:
  void makeBoxes();
  void findLiveBytes();
  void visit(Box cell, int64_t covered, llvm::ArrayRef<const Box *> boxes);
  bool shrink(Box &cell) const;
  int64_t getDepth(const Clock &state, llvm::ArrayRef<const Box *> boxes) const;
  /// The most that intervals of a lane reach together, and where.
  int64_t getDepth(unsigned lane, const Box &cell, llvm::ArrayRef<const Box *> boxes, int32_t &where);
  void found(int64_t bytes, const Clock &state) {
    if (bytes > best.bytes) {
      best.bytes = bytes;
      bestState = state;
    }
  }

  const ArenaProblem &problem;
  unsigned numLanes;
  int64_t workLimit;
  std::vector<Box> boxes;
  std::vector<std::pair<int32_t, int64_t>> events;
  LowerBound best;
  Clock bestState = {};
};
} // namespace

void Search::makeBoxes() {
  for (const ArenaProblem::Life &life : problem.getLives()) {
    if (problem.getBytes(life.buffer) == 0)
      continue;
    Box box;
    box.bytes = problem.getBytes(life.buffer);
    box.buffer = life.buffer;
    box.high = life.until;
    best.isExact &= life.starts.size() == 1;
    // The states in which the first, or not the first but the second of the starts has begun, and so on: no two of
    // these boxes meet.
    for (int32_t start : life.starts) {
      const ArenaProblem::Call &call = problem.getCalls()[start];
      box.low = call.done;
      box.low[call.lane] = call.position + 1;
      boxes.push_back(box);
      box.high[call.lane] = std::min(box.high[call.lane], call.position);
    }
  }
}

void Search::findLiveBytes() {
  std::vector<int64_t> change(problem.getCalls().size() + 1, 0);
  for (const ArenaProblem::Life &life : problem.getLives()) {
    change[life.first] += problem.getExactBytes(life.buffer);
    change[life.last + 1] -= problem.getExactBytes(life.buffer);
  }
  int64_t live = 0;
  int32_t peak = -1;
  for (size_t i = 0; i + 1 < change.size(); ++i) {
    live += change[i];
    if (live > best.liveBytes) {
      best.liveBytes = live;
      peak = i;
    }
  }
  Clock state = {};
  for (int32_t i = 0; i <= peak; ++i)
    ++state[problem.getCalls()[i].lane];
  std::vector<const Box *> all;
  for (const Box &box : boxes)
    all.push_back(&box);
  found(getDepth(state, all), state);
}

int64_t Search::getDepth(const Clock &state, llvm::ArrayRef<const Box *> boxes) const {
  int64_t sum = 0;
  for (const Box *box : boxes)
    if (isAtMost(box->low, state) && isAtMost(state, box->high))
      sum += box->bytes;
  return sum;
}

/// What has begun has waited: only such states are left in the cell. False when there is none.
bool Search::shrink(Box &cell) const {
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned lane = 0; lane < numLanes; ++lane) {
      if (cell.low[lane] > cell.high[lane])
        return false;
      Calls calls = problem.getLane(lane);
      if (cell.low[lane] > 0) {
        const Clock &done = problem.getCalls()[calls[cell.low[lane] - 1]].done;
        for (unsigned other = 0; other < numLanes; ++other)
          if (other != lane && done[other] > cell.low[other]) {
            cell.low[other] = done[other];
            changed = true;
          }
      }
      auto mayBegin = [&](int32_t call) {
        const Clock &done = problem.getCalls()[call].done;
        for (unsigned other = 0; other < numLanes; ++other)
          if (other != lane && done[other] > cell.high[other])
            return false;
        return true;
      };
      auto begin = calls.begin() + cell.low[lane], end = calls.begin() + cell.high[lane];
      if (cell.low[lane] > 0 && !mayBegin(*std::prev(begin)))
        return false;
      int32_t high = std::partition_point(begin, end, mayBegin) - calls.begin();
      changed |= high != cell.high[lane];
      cell.high[lane] = high;
    }
  }
  return true;
}

int64_t Search::getDepth(unsigned lane, const Box &cell, llvm::ArrayRef<const Box *> boxes, int32_t &where) {
  events.clear();
  for (const Box *box : boxes) {
    events.push_back({std::max(box->low[lane], cell.low[lane]), box->bytes});
    if (box->high[lane] < cell.high[lane])
      events.push_back({box->high[lane] + 1, -box->bytes});
  }
  llvm::sort(events); // At one place ends come before starts.
  int64_t depth = 0, most = 0;
  where = cell.low[lane];
  for (auto [place, bytes] : events) {
    depth += bytes;
    if (depth > most) {
      most = depth;
      where = place;
    }
  }
  return most;
}

void Search::visit(Box cell, int64_t covered, llvm::ArrayRef<const Box *> boxes) {
  if (!shrink(cell))
    return;
  best.work += boxes.size();
  if (best.work > workLimit) {
    best.isExact = false;
    return;
  }
  // Each box that is there but not everywhere, by the lane it is a condition on: of several the one it leaves least of.
  llvm::SmallVector<const Box *, 0> parts;
  std::array<llvm::SmallVector<const Box *, 0>, maxLanes> byLane;
  std::array<int32_t, maxLanes> mixed = {};
  int64_t sum = covered;
  for (const Box *box : boxes) {
    unsigned conditions = 0, tightest = 0;
    double least = 2;
    bool isThere = true;
    for (unsigned lane = 0; lane < numLanes; ++lane) {
      int32_t low = std::max(box->low[lane], cell.low[lane]), high = std::min(box->high[lane], cell.high[lane]);
      isThere &= low <= high;
      if (low == cell.low[lane] && high == cell.high[lane])
        continue;
      ++conditions;
      double share = (high - low + 1.0) / (cell.high[lane] - cell.low[lane] + 1.0);
      if (share < least) {
        least = share;
        tightest = lane;
      }
    }
    if (!isThere)
      continue;
    sum += box->bytes;
    if (conditions == 0) {
      covered += box->bytes;
      continue;
    }
    parts.push_back(box);
    byLane[tightest].push_back(box);
    if (conditions > 1)
      ++mixed[tightest];
  }
  if (sum <= best.bytes)
    return;
  int64_t most = covered;
  Clock state = {};
  for (unsigned lane = 0; lane < numLanes; ++lane)
    most += getDepth(lane, cell, byLane[lane], state[lane]);
  if (most <= best.bytes)
    return;
  int64_t depth = covered + getDepth(state, parts);
  found(depth, state);
  if (depth == most)
    return;
  // Between two halves of the ends of the boxes that are conditions on several lanes.
  unsigned lane = std::max_element(mixed.begin(), mixed.end()) - mixed.begin();
  std::vector<int32_t> cuts; // The last place of the lower half.
  for (const Box *box : byLane[lane]) {
    if (box->low[lane] > cell.low[lane])
      cuts.push_back(box->low[lane] - 1);
    if (box->high[lane] < cell.high[lane])
      cuts.push_back(box->high[lane]);
  }
  std::nth_element(cuts.begin(), cuts.begin() + cuts.size() / 2, cuts.end());
  Box lower = cell, upper = cell;
  lower.high[lane] = cuts[cuts.size() / 2];
  upper.low[lane] = lower.high[lane] + 1;
  bool isUpper = state[lane] >= upper.low[lane]; // The more promising half first.
  visit(isUpper ? upper : lower, covered, parts);
  visit(isUpper ? lower : upper, covered, parts);
}

LowerBound Search::run() {
  best.isExact = true;
  makeBoxes();
  findLiveBytes();
  Box all;
  all.low.fill(0);
  all.high.fill(0);
  for (unsigned lane = 0; lane < numLanes; ++lane)
    all.high[lane] = problem.getLane(lane).size();
  std::vector<const Box *> pointers;
  for (const Box &box : boxes)
    pointers.push_back(&box);
  visit(all, 0, pointers);
  for (const Box &box : boxes)
    if (isAtMost(box.low, bestState) && isAtMost(bestState, box.high))
      best.buffers.push_back(box.buffer);
  int64_t rounding = 0;
  for (int32_t buffer : best.buffers)
    rounding = std::max(rounding, problem.getBytes(buffer) - problem.getExactBytes(buffer));
  best.bytes -= rounding;
  for (unsigned lane = 0; lane < numLanes; ++lane)
    if (bestState[lane] > 0)
      best.peak = std::max(best.peak, problem.getLane(lane)[bestState[lane] - 1]);
  return best;
}

LowerBound mlir::plateau::planning::computeLowerBound(const ArenaProblem &problem, int64_t workLimit) {
  return Search(problem, workLimit).run();
}
