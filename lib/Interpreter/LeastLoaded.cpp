//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "LeastLoaded.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>
#include <tuple>

using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using llvm::ArrayRef;

namespace {
/// The plan while it is being made: experts are taken one by one.
class Assigner {
public:
  Assigner(ArrayRef<int64_t> loads, int64_t ranks, int64_t helperSlots, const LeastLoadedRule &rule)
      : loads(loads), ranks(ranks), rule(rule), assigned(ranks), pending(ranks) {
    int64_t total = std::accumulate(loads.begin(), loads.end(), int64_t(0));
    cap = rule.alphaNumerator * total / (rule.alphaDenominator * ranks);
    for (size_t expert = 0; expert < loads.size(); ++expert)
      pending[getOwner(expert)] += loads[expert];
    result.pieces.resize(loads.size());
    result.helped.assign(ranks, std::vector<int64_t>(helperSlots, -1));
  }

  /// Whether the fullest rank has so little above the mean that nothing is to be moved.
  bool isEven() const {
    int64_t total = std::accumulate(pending.begin(), pending.end(), int64_t(0));
    int64_t fullest = *std::max_element(pending.begin(), pending.end());
    // fullest / (total / ranks) < threshold
    return fullest * ranks * rule.thresholdDenominator < rule.thresholdNumerator * total;
  }

  void assignAll() {
    std::vector<int64_t> order(loads.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int64_t a, int64_t b) { return std::tuple(-loads[a], a) < std::tuple(-loads[b], b); });
    for (int64_t expert : order)
      assign(expert);
  }

  Assignment result;

private:
  int64_t getOwner(int64_t expert) const { return expert / (static_cast<int64_t>(loads.size()) / ranks); }
  int64_t getLoad(int64_t rank) const { return assigned[rank] + pending[rank]; }

  void give(int64_t expert, int64_t rank, int64_t begin, int64_t end) {
    assigned[rank] += end - begin;
    result.pieces[expert].push_back({rank, begin, end});
  }

  void assign(int64_t expert) {
    int64_t owner = getOwner(expert), load = loads[expert];
    pending[owner] -= load;
    int64_t room = std::clamp<int64_t>(cap - getLoad(owner), 0, load);
    if (room > 0)
      give(expert, owner, 0, room);
    spill(expert, room);
  }

  /// Gives away the rows of `expert` from position `begin` on.
  void spill(int64_t expert, int64_t begin) {
    while (begin < loads[expert]) {
      int64_t rest = loads[expert] - begin;
      std::vector<int64_t> helpers = getHelpers(expert);
      if (helpers.empty()) // The owner always has the weights.
        return give(expert, getOwner(expert), begin, loads[expert]);
      int64_t rank = helpers.front(), rows = rest; // forced on the least loaded one, unless one has room
      for (int64_t helper : helpers) {
        int64_t fits = std::min(rest, cap - getLoad(helper));
        if (fits >= 1 && (fits >= rule.minRows || fits == rest)) {
          rank = helper;
          rows = fits;
          break;
        }
      }
      holdExpert(rank, expert);
      give(expert, rank, begin, begin + rows);
      begin += rows;
    }
  }

  /// The ranks that may take rows of `expert`, the least loaded first.
  std::vector<int64_t> getHelpers(int64_t expert) const {
    std::vector<int64_t> helpers;
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (rank != getOwner(expert) &&
          (llvm::is_contained(result.helped[rank], expert) || llvm::is_contained(result.helped[rank], -1)))
        helpers.push_back(rank);
    llvm::sort(helpers, [&](int64_t a, int64_t b) { return std::tuple(getLoad(a), a) < std::tuple(getLoad(b), b); });
    return helpers;
  }

  void holdExpert(int64_t rank, int64_t expert) {
    std::vector<int64_t> &slots = result.helped[rank];
    if (!llvm::is_contained(slots, expert))
      *std::find(slots.begin(), slots.end(), -1) = expert;
  }

  ArrayRef<int64_t> loads;
  int64_t ranks;
  LeastLoadedRule rule;
  int64_t cap;
  std::vector<int64_t> assigned; ///< Rows of each rank that are settled.
  std::vector<int64_t> pending;  ///< Rows of each rank's own experts that are not settled yet.
};
} // namespace

Assignment interpreter::assignToOwners(ArrayRef<int64_t> loads, int64_t ranks, int64_t helperSlots) {
  Assignment result;
  for (size_t expert = 0; expert < loads.size(); ++expert)
    result.pieces.push_back(
        {{static_cast<int64_t>(expert) / (static_cast<int64_t>(loads.size()) / ranks), 0, loads[expert]}});
  result.helped.assign(ranks, std::vector<int64_t>(helperSlots, -1));
  return result;
}

Assignment interpreter::assignLeastLoaded(ArrayRef<int64_t> loads, int64_t ranks, int64_t helperSlots,
                                          const LeastLoadedRule &rule) {
  Assigner assigner(loads, ranks, helperSlots, rule);
  if (assigner.isEven())
    return assignToOwners(loads, ranks, helperSlots);
  assigner.assignAll();
  return std::move(assigner.result);
}
