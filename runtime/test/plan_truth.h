//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What a plan must be, from its definition, the slow and obvious way.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_TEST_PLAN_TRUTH_H
#define PLATEAU_RUNTIME_TEST_PLAN_TRUTH_H

#include "plateau/runtime.h"
#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace plateau::rt::test {

/// The least-loaded plan as its definition reads: rank of each position of each expert, and the experts that each rank
/// helps with.
struct BalanceTruth {
  std::vector<std::vector<int64_t>> rankOf;
  std::vector<std::vector<int64_t>> helped;

  BalanceTruth(int64_t ranks, const plr_plan_shape &shape, const std::vector<int64_t> &loads)
      : rankOf(shape.experts), helped(ranks) {
    const int64_t local = shape.experts / ranks, total = std::accumulate(loads.begin(), loads.end(), int64_t(0));
    const int64_t cap = shape.alpha_numerator * total / (shape.alpha_denominator * ranks);
    std::vector<int64_t> assigned(ranks), pending(ranks);
    for (int64_t e = 0; e < shape.experts; ++e)
      pending[e / local] += loads[e];
    const int64_t most = *std::max_element(pending.begin(), pending.end());
    auto give = [&](int64_t e, int64_t rank, int64_t rows) {
      rankOf[e].insert(rankOf[e].end(), rows, rank);
      assigned[rank] += rows;
    };
    if (most * ranks * shape.threshold_denominator < shape.threshold_numerator * total) {
      for (int64_t e = 0; e < shape.experts; ++e)
        give(e, e / local, loads[e]);
      return;
    }
    std::vector<int64_t> experts(shape.experts);
    std::iota(experts.begin(), experts.end(), 0);
    std::sort(experts.begin(), experts.end(),
              [&](int64_t a, int64_t b) { return std::make_pair(-loads[a], a) < std::make_pair(-loads[b], b); });
    for (int64_t e : experts) {
      const int64_t n = e / local;
      pending[n] -= loads[e];
      const int64_t room = cap - assigned[n] - pending[n];
      int64_t r = loads[e];
      if (room >= r) {
        give(e, n, r);
        continue;
      }
      if (room > 0) {
        give(e, n, room);
        r -= room;
      }
      while (r > 0) {
        std::vector<int64_t> others;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          bool holds = std::count(helped[rank].begin(), helped[rank].end(), e) > 0;
          if (rank != n && (holds || static_cast<int64_t>(helped[rank].size()) < shape.helper_slots))
            others.push_back(rank);
        }
        std::sort(others.begin(), others.end(), [&](int64_t a, int64_t b) {
          return std::make_pair(assigned[a] + pending[a], a) < std::make_pair(assigned[b] + pending[b], b);
        });
        auto help = [&](int64_t rank, int64_t rows) {
          if (std::count(helped[rank].begin(), helped[rank].end(), e) == 0)
            helped[rank].push_back(e);
          give(e, rank, rows);
          r -= rows;
        };
        bool found = false;
        for (int64_t rank : others) {
          int64_t x = std::min(r, cap - assigned[rank] - pending[rank]);
          if (x <= 0 || (x < shape.min_rows && r > x))
            continue;
          help(rank, x);
          found = true;
          break;
        }
        if (!found && !others.empty())
          help(others[0], r);
        else if (!found) {
          give(e, n, r);
          r = 0;
        }
      }
    }
  }
};

/// A token's slot that has an expert, and where its row goes.
struct RouteTruth {
  int64_t expert, source, token, slot;
  int64_t rank, expertSlot, iteration;
};

/// The routes of all ranks, from their ids [tokens of the rank, top_k].
struct PlanTruth {
  std::vector<RouteTruth> routes; ///< By expert, source, token and slot: an expert's are its list.
  std::vector<std::vector<int64_t>> helped;
  int64_t iterations = 0;
  int64_t smallestCapacity = 0;               ///< Of the leaves, whatever the shape says.
  std::vector<std::vector<int64_t>> leavesOf; ///< Of each iteration.
  std::vector<int64_t> loads;

  PlanTruth(int64_t ranks, const plr_plan_shape &shape, const std::vector<std::vector<int32_t>> &ids)
      : helped(ranks), loads(shape.experts) {
    for (int64_t source = 0; source < ranks; ++source)
      for (int64_t i = 0; i < static_cast<int64_t>(ids[source].size()); ++i)
        if (ids[source][i] != -1) {
          routes.push_back({ids[source][i], source, i / shape.top_k, i % shape.top_k, -1, -1, -1});
          ++loads[ids[source][i]];
        }
    std::sort(routes.begin(), routes.end(), [](const RouteTruth &a, const RouteTruth &b) {
      return std::tie(a.expert, a.source, a.token, a.slot) < std::tie(b.expert, b.source, b.token, b.slot);
    });
    assign(ranks, shape);
    cut(ranks, shape);
  }

  /// What a rank receives in an iteration, in order.
  std::vector<RouteTruth> getReceived(int64_t rank, int64_t iteration) const {
    std::vector<RouteTruth> result;
    for (const RouteTruth &route : routes)
      if (route.rank == rank && route.iteration == iteration)
        result.push_back(route);
    std::sort(result.begin(), result.end(), [](const RouteTruth &a, const RouteTruth &b) {
      return std::tie(a.expertSlot, a.source, a.token, a.slot) < std::tie(b.expertSlot, b.source, b.token, b.slot);
    });
    return result;
  }

  /// Routes of which `condition` holds.
  template <typename Condition>
  int64_t count(const Condition &condition) const {
    return std::count_if(routes.begin(), routes.end(), condition);
  }

private:
  void assign(int64_t ranks, const plr_plan_shape &shape) {
    const int64_t local = shape.experts / ranks;
    if (shape.alpha_numerator == 0) {
      for (RouteTruth &route : routes)
        route.rank = route.expert / local;
    } else {
      BalanceTruth balance(ranks, shape, loads);
      helped = balance.helped;
      std::vector<int64_t> position(shape.experts);
      for (RouteTruth &route : routes)
        route.rank = balance.rankOf[route.expert][position[route.expert]++];
    }
    for (RouteTruth &route : routes) {
      const std::vector<int64_t> &foreign = helped[route.rank];
      route.expertSlot = route.rank == route.expert / local
                             ? route.expert % local
                             : local + (std::find(foreign.begin(), foreign.end(), route.expert) - foreign.begin());
    }
  }

  int64_t getMostReceived(int64_t ranks, const std::vector<int64_t> &leaves, int64_t leafCount) const {
    int64_t most = 0;
    for (int64_t rank = 0; rank < ranks; ++rank)
      most =
          std::max(most, count([&](const RouteTruth &route) {
                     return route.rank == rank && std::count(leaves.begin(), leaves.end(), route.token % leafCount) > 0;
                   }));
    return most;
  }

  void cut(int64_t ranks, const plr_plan_shape &shape) {
    const int64_t leafCount = shape.chunks * shape.leaves;
    for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      leavesOf.push_back({chunk});
      for (int64_t i = 0; i < shape.leaves; ++i) {
        const int64_t leaf = chunk + i * shape.chunks;
        smallestCapacity = std::max(smallestCapacity, getMostReceived(ranks, {leaf}, leafCount));
        if (i == 0)
          continue;
        leavesOf.back().push_back(leaf);
        if (shape.capacity > 0 && getMostReceived(ranks, leavesOf.back(), leafCount) > shape.capacity) {
          leavesOf.back().pop_back();
          leavesOf.push_back({leaf});
        }
      }
    }
    iterations = static_cast<int64_t>(leavesOf.size());
    for (RouteTruth &route : routes)
      for (int64_t i = 0; i < iterations; ++i)
        if (std::count(leavesOf[i].begin(), leavesOf[i].end(), route.token % leafCount) > 0)
          route.iteration = i;
  }
};

} // namespace plateau::rt::test

#endif // PLATEAU_RUNTIME_TEST_PLAN_TRUTH_H
