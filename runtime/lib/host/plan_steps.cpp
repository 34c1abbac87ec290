//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/plan_steps.h"
#include "common/context.h"
#include "host/rank_sums.h"
#include <algorithm>
#include <numeric>

using namespace plateau::rt;
using namespace plateau::rt::host;

static bool isBalanced(const plr_plan &plan) { return plan.shape.alpha_numerator > 0; }

/// Assigns the experts' rows to ranks. counts[experts] are this rank's; they become the positions where its rows begin.
static Outcome assign(plr_plan &plan, const Caller &caller, int64_t *counts) {
  const int64_t experts = plan.shape.experts, place = plan.group->place;
  if (!isBalanced(plan)) {
    assignToOwners(plan.ranks, plan.shape, plan.assignment);
    std::fill(counts, counts + experts, 0);
    return {};
  }
  int32_t *mine = plan.loads + place * experts;
  std::transform(counts, counts + experts, mine, [](int64_t count) { return static_cast<int32_t>(count); });
  if (Outcome outcome = plan.group->allGather(caller, PLR_I32, experts, mine, plan.loads); outcome.status != PLR_OK)
    return outcome;
  std::fill(plan.scratch.loads, plan.scratch.loads + experts, 0);
  for (int64_t rank = 0; rank < plan.ranks; ++rank)
    for (int64_t expert = 0; expert < experts; ++expert) {
      if (rank == place)
        counts[expert] = plan.scratch.loads[expert];
      plan.scratch.loads[expert] += plan.loads[rank * experts + expert];
    }
  assignLeastLoaded(plan.ranks, plan.shape, plan.assignment, plan.scratch);
  return {};
}

/// Over the chunks the largest ratio of the rows that this rank sends to one rank to the mean over ranks. leafRows are
/// this rank's alone.
static double getSendRatio(const plr_plan &plan) {
  double result = 0;
  for (int64_t chunk = 0; chunk < plan.shape.chunks; ++chunk) {
    std::fill(plan.rankSums, plan.rankSums + plan.ranks, 0);
    for (int64_t leaf = chunk; leaf < plan.getMostIterations(); leaf += plan.shape.chunks)
      for (int64_t rank = 0; rank < plan.ranks; ++rank)
        plan.rankSums[rank] += plan.leafRows[leaf * plan.ranks + rank];
    int64_t total = std::accumulate(plan.rankSums, plan.rankSums + plan.ranks, int64_t(0));
    int64_t most = *std::max_element(plan.rankSums, plan.rankSums + plan.ranks);
    if (total > 0)
      result =
          std::max(result, static_cast<double>(most) * static_cast<double>(plan.ranks) / static_cast<double>(total));
  }
  return result;
}

/// The most rows that a rank receives of leaves with the same number(leaf), and which rank that is.
template <typename Number>
static std::pair<int64_t, int64_t> findMost(const plr_plan &plan, int64_t numbers, const Number &number) {
  std::pair<int64_t, int64_t> most = {0, 0};
  for (int64_t i = 0; i < numbers; ++i)
    for (int64_t rank = 0; rank < plan.ranks; ++rank) {
      int64_t rows = 0;
      for (auto [leaf, step, count] = number(i); count > 0; leaf += step, --count)
        rows += plan.leafRows[leaf * plan.ranks + rank];
      if (rows > most.first)
        most = {rows, rank};
    }
  return most;
}

namespace {
/// Leaves `first`, first + step, …
struct Leaves {
  int64_t first, step, count;
};
} // namespace

/// Cuts the leaves into iterations, for which all ranks have the same numbers.
static Outcome cutLeaves(plr_plan &plan) {
  const plr_plan_shape &shape = plan.shape;
  if (FullestLeaf fullest = findFullestLeaf(plan.ranks, shape, plan.leafRows);
      shape.capacity > 0 && fullest.rows > shape.capacity)
    return {PLR_INVALID_ARGUMENT,
            "leaf " + std::to_string(fullest.leaf) + " of " + std::to_string(plan.getMostIterations()) + " sends " +
                std::to_string(fullest.rows) + " rows to rank " + std::to_string(plan.group->members[fullest.rank]) +
                ", but the capacity is " + std::to_string(shape.capacity) +
                ". The smallest capacity that holds every leaf of this routing is " + std::to_string(fullest.rows) +
                ". Raise it, or cut the tokens into more leaves"};
  plan.iterations = cutIntoIterations(plan.ranks, shape, plan.leafRows, plan.cut, plan.rankSums);
  return {};
}

Outcome plateau::rt::host::summarize(const plr_plan &plan, plr_plan_record &record) {
  const int64_t most = plan.getMostIterations(), chunks = plan.shape.chunks;
  record.iterations = plan.iterations;
  record.chunks = chunks;
  record.capacity = plan.shape.capacity;
  record.total_load = std::accumulate(plan.leafRows, plan.leafRows + most * plan.ranks, int64_t(0));
  record.max_load = findMost(plan, 1, [&](int64_t) { return Leaves{0, 1, most}; }).first;
  record.max_chunk_received =
      findMost(plan, chunks, [&](int64_t chunk) { return Leaves{chunk, chunks, plan.shape.leaves}; }).first;
  auto [rows, rank] = findMost(plan, plan.iterations,
                               [&](int64_t i) { return Leaves{plan.cut.firstLeaf[i], chunks, plan.cut.leafCount[i]}; });
  record.max_received = rows;
  const int32_t *helped = plan.assignment.helped;
  record.moves =
      std::count_if(helped, helped + plan.ranks * plan.shape.helper_slots, [](int32_t expert) { return expert >= 0; });
  record.native_max_load = record.max_load;
  if (isBalanced(plan)) {
    std::fill(plan.rankSums, plan.rankSums + plan.ranks, 0);
    for (int64_t expert = 0; expert < plan.shape.experts; ++expert)
      plan.rankSums[expert / plan.localExperts] += plan.scratch.loads[expert];
    record.native_max_load = *std::max_element(plan.rankSums, plan.rankSums + plan.ranks);
  }
  if (rows > INT32_MAX)
    return {PLR_INVALID_ARGUMENT, "rank " + std::to_string(plan.group->members[rank]) + " would receive " +
                                      std::to_string(rows) +
                                      " rows in one iteration, but their number must fit 32 bits"};
  return {};
}

/// Turns counts of a leaf into counts of an iteration: result[iterations, bins] += those of its leaves.
static void mergeLeaves(const plr_plan &plan, const int32_t *counts, int32_t *result) {
  const int64_t bins = plan.getSendBins(), leaves = plan.getMostIterations();
  std::fill(result, result + leaves * bins, 0);
  for (int64_t leaf = 0; leaf < leaves; ++leaf)
    for (int64_t bin = 0; bin < bins; ++bin)
      result[plan.cut.iterationOf[leaf] * bins + bin] += counts[leaf * bins + bin];
}

/// Every rank tells every other what it sends to each of its slots in each iteration: from sendEnds to receiveEnds,
/// which hold counts here.
static Outcome exchangeCounts(plr_plan &plan, const Caller &caller) {
  const int64_t bins = plan.getSendBins(), most = plan.getMostIterations();
  Exchange exchange;
  exchange.sends.isBlockMajor = exchange.receives.isBlockMajor = true; // [iterations, ranks] of slots.
  exchange.bytes = plan.slots * static_cast<int64_t>(sizeof(int32_t));
  exchange.input = plan.sendEnds;
  exchange.result = plan.receiveEnds;
  exchange.blocks = most;
  if (Outcome outcome = plan.group->allToAll(caller, most * bins, "counts", &exchange, 1); outcome.status != PLR_OK)
    return outcome;
  for (int64_t iteration = 0; iteration < most; ++iteration) {
    int32_t *counts = plan.receiveEnds + iteration * bins;
    std::copy(counts, counts + bins, plan.turned);
    for (int64_t rank = 0; rank < plan.ranks; ++rank)
      for (int64_t slot = 0; slot < plan.slots; ++slot)
        counts[slot * plan.ranks + rank] = plan.turned[rank * plan.slots + slot];
  }
  return {};
}

/// Turns counts into ends, and knows where each slot's rows begin.
static void setOffsets(plr_plan &plan) {
  const int64_t bins = plan.getSendBins();
  for (int64_t iteration = 0; iteration < plan.getMostIterations(); ++iteration) {
    int32_t *ends = plan.receiveEnds + iteration * bins;
    std::partial_sum(ends, ends + bins, ends);
    int64_t *offsets = plan.slotOffsets + iteration * (plan.slots + 1);
    offsets[0] = 0;
    for (int64_t slot = 0; slot < plan.slots; ++slot)
      offsets[slot + 1] = ends[(slot + 1) * plan.ranks - 1];
    // Places are handed out from where a bin begins, and then stand where it ends.
    int32_t *next = plan.sendEnds + iteration * bins, sum = 0;
    for (int64_t bin = 0; bin < bins; ++bin) {
      int32_t count = next[bin];
      next[bin] = sum;
      sum += count;
    }
  }
}

Outcome plateau::rt::host::makePlan(plr_plan &plan, Caller caller, const int32_t *ids) {
  const plr_plan_shape &shape = plan.shape;
  caller.shape = &shape;
  std::string fault = countRoutes(shape.tokens, shape.top_k, shape.experts, ids, plan.positions);
  if (!fault.empty())
    return {PLR_BAD_DATA, std::move(fault)};
  if (Outcome outcome = assign(plan, caller, plan.positions); outcome.status != PLR_OK)
    return outcome;

  const int64_t bins = plan.getSendBins(), leaves = plan.getMostIterations();
  int32_t *ofLeaves = plan.receiveEnds; // Until the counts of the others come.
  chooseBins(shape, plan.ranks, ids, plan.assignment, plan.positions, plan.sendPlaces, ofLeaves);
  for (int64_t i = 0; i < leaves * plan.ranks; ++i)
    plan.leafRows[i] = std::accumulate(ofLeaves + i * plan.slots, ofLeaves + (i + 1) * plan.slots, int64_t(0));
  plr_plan_record record = {};
  record.tag = caller.tag;
  record.send_ratio = getSendRatio(plan);
  if (Outcome outcome = plan.group->allReduce(caller, countType, leaves * plan.ranks, plan.leafRows, plan.leafRows);
      outcome.status != PLR_OK)
    return outcome;

  if (Outcome outcome = cutLeaves(plan); outcome.status != PLR_OK)
    return outcome;
  if (Outcome outcome = summarize(plan, record); outcome.status != PLR_OK)
    return outcome;
  mergeLeaves(plan, ofLeaves, plan.sendEnds);
  if (Outcome outcome = exchangeCounts(plan, caller); outcome.status != PLR_OK)
    return outcome;
  setOffsets(plan);
  placeRoutes(shape, bins, plan.cut.iterationOf, plan.sendEnds, plan.sendPlaces);
  plan.complete = plr_plan::mark;
  plan.context->planRecords.add(record);
  return {};
}
