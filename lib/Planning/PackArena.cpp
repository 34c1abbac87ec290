//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Planning/PackArena.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>

using namespace mlir::plateau::planning;

namespace {
using Order = std::vector<int32_t>;
enum class Fit { First, Best };

class Packer {
public:
  Packer(const ArenaProblem &problem, const LowerBound &bound, const PackingOptions &options)
      : problem(problem), bound(bound), options(options), offsets(problem.getNumBuffers()) {}

  Packing run();

private:
  int64_t place(int32_t buffer, Fit fit);
  int64_t pack(const Order &order, Fit fit, llvm::StringRef solver);
  void improve(Order order, Fit fit, int64_t workLimit, int64_t patience);
  static constexpr int64_t numSpanClasses = 24;

  bool isDone() const { return best.bytes <= bound.bytes; }

  const ArenaProblem &problem;
  const LowerBound &bound;
  const PackingOptions &options;
  std::vector<int64_t> offsets; ///< Of the packing in progress; -1 for what is not placed.
  std::vector<std::pair<int64_t, int64_t>> taken;
  int64_t work = 0;
  Packing best;
};
} // namespace

/// The offset that conflicts placed before leave.
int64_t Packer::place(int32_t buffer, Fit fit) {
  taken.clear();
  problem.forEachConflict(buffer, [&](int32_t other) {
    ++work;
    if (offsets[other] >= 0)
      taken.push_back({offsets[other], offsets[other] + problem.getBytes(other)});
  });
  llvm::sort(taken);
  int64_t bytes = problem.getBytes(buffer), top = 0, where = -1, least = 0;
  for (auto [begin, end] : taken) {
    int64_t gap = begin - top;
    if (gap >= bytes && (where < 0 || gap < least)) {
      where = top;
      least = gap;
      if (fit == Fit::First)
        return where;
    }
    top = std::max(top, end);
  }
  return where < 0 ? top : where;
}

int64_t Packer::pack(const Order &order, Fit fit, llvm::StringRef solver) {
  std::fill(offsets.begin(), offsets.end(), -1);
  int64_t bytes = 0;
  for (int32_t buffer : order) {
    offsets[buffer] = problem.getBytes(buffer) == 0 ? 0 : place(buffer, fit);
    bytes = std::max(bytes, offsets[buffer] + problem.getExactBytes(buffer));
  }
  ++best.passes;
  if (best.solver.empty() || bytes < best.bytes) {
    best.offsets = offsets;
    best.bytes = bytes;
    best.solver = solver.str();
  }
  return bytes;
}

/// In which of classes that grow by `percent` a span is, the first one ending at 1 + phase / 4.
static int64_t getSpanClass(int64_t span, int64_t percent, int64_t phase) {
  constexpr int64_t one = 1024;
  int64_t number = 0;
  for (int64_t end = one + phase * one / 4; end < span * one; end = end * percent / 100)
    ++number;
  return number;
}

/// What does not fit below the bound was placed too late.
void Packer::improve(Order order, Fit fit, int64_t workLimit, int64_t patience) {
  int64_t numBuffers = order.size();
  std::vector<double> keys(numBuffers);
  for (int64_t i = 0; i < numBuffers; ++i)
    keys[order[i]] = i + 1;
  int64_t stuck = 0, least = std::numeric_limits<int64_t>::max();
  for (int64_t end = work + workLimit; work < end && !isDone() && stuck < patience; ++stuck) {
    int64_t bytes = pack(order, fit, "repair");
    if (bytes < least) {
      least = bytes;
      stuck = 0;
    }
    for (int32_t buffer = 0; buffer < numBuffers; ++buffer)
      if (offsets[buffer] + problem.getExactBytes(buffer) > bound.bytes)
        keys[buffer] *= 0.5;
    llvm::sort(order, [&](int32_t a, int32_t b) { return std::pair(keys[a], a) < std::pair(keys[b], b); });
    for (int64_t i = 0; i < numBuffers; ++i)
      keys[order[i]] = i + 1;
  }
}

Packing Packer::run() {
  int64_t numBuffers = problem.getNumBuffers();
  best.offsets.assign(numBuffers, 0);
  if (numBuffers == 0)
    return best;
  auto span = [&](int32_t buffer) { return problem.getRelease(buffer) - problem.getFirst(buffer) + 1; };
  auto distance = [&](int32_t buffer) {
    return std::max({problem.getFirst(buffer) - bound.peak, bound.peak - problem.getRelease(buffer), 0});
  };
  auto orderBy = [&](auto key) { // Largest key first; equal ones in issue order.
    Order order(numBuffers);
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int32_t a, int32_t b) {
      return std::tuple(key(b), problem.getFirst(a), a) < std::tuple(key(a), problem.getFirst(b), b);
    });
    return order;
  };
  struct Solver {
    const char *name;
    Order order;
    Fit fit;
    int64_t bytes = 0;
  };
  auto bytes = [&](int32_t b) { return problem.getBytes(b); };
  std::vector<Solver> solvers;
  auto add = [&](const char *first, const char *bestFit, Order order) {
    solvers.push_back({first, order, Fit::First});
    solvers.push_back({bestFit, std::move(order), Fit::Best});
  };
  add("span, first fit", "span, best fit", orderBy([&](int32_t b) { return std::pair(span(b), bytes(b)); }));
  add("size, first fit", "size, best fit", orderBy([&](int32_t b) { return std::pair(bytes(b), span(b)); }));
  add("area, first fit", "area, best fit", orderBy([&](int32_t b) { return double(bytes(b)) * span(b); }));
  add("peak, first fit", "peak, best fit",
      orderBy([&](int32_t b) { return std::tuple(-distance(b), span(b), bytes(b)); }));
  add("issue order, first fit", "issue order, best fit",
      orderBy([&](int32_t b) { return std::pair(-problem.getFirst(b), bytes(b)); }));
  add("reverse order, first fit", "reverse order, best fit",
      orderBy([&](int32_t b) { return std::pair(problem.getRelease(b), bytes(b)); }));
  for (Solver &solver : solvers) {
    if (isDone() && best.passes > 0)
      return best;
    solver.bytes = pack(solver.order, solver.fit, solver.name);
  }
  if (!options.improve)
    return best;
  int64_t workLimit = options.workPerBuffer * numBuffers / 2;
  constexpr int64_t tries = 4, fewPasses = 10, manyPasses = 100;
  auto repair = [&](int64_t patience) { // From the best orders.
    std::vector<size_t> ranking(solvers.size());
    std::iota(ranking.begin(), ranking.end(), 0);
    llvm::sort(ranking,
               [&](size_t a, size_t b) { return std::pair(solvers[a].bytes, a) < std::pair(solvers[b].bytes, b); });
    for (int64_t i = 0; i < tries && !isDone(); ++i)
      improve(solvers[ranking[i]].order, solvers[ranking[i]].fit, workLimit / tries, patience);
  };
  repair(fewPasses);
  // Long spans first as before, but those of about one length by size: how coarse "about" should be differs.
  std::vector<int64_t> classes(numBuffers);
  for (int64_t end = work + workLimit, i = 0; i < numSpanClasses && work < end && !isDone(); ++i) {
    static constexpr int64_t percents[] = {119, 141, 126, 115, 112, 200};
    for (int32_t buffer = 0; buffer < numBuffers; ++buffer)
      classes[buffer] = getSpanClass(span(buffer), percents[i % std::size(percents)], i / std::size(percents));
    Order order = orderBy([&](int32_t b) { return std::pair(classes[b], bytes(b)); });
    solvers.push_back({"span classes, best fit", order, Fit::Best});
    solvers.back().bytes = pack(solvers.back().order, Fit::Best, solvers.back().name);
    solvers.push_back({"span classes, first fit", std::move(order), Fit::First});
    solvers.back().bytes = pack(solvers.back().order, Fit::First, solvers.back().name);
  }
  repair(manyPasses);
  return best;
}

Packing mlir::plateau::planning::packArena(const ArenaProblem &problem, const LowerBound &bound,
                                           const PackingOptions &options) {
  return Packer(problem, bound, options).run();
}
