//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PipelineDispatchCost.h"
#include "plateau/runtime_footprint.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir::plateau::moe;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t ExchangeShape::getRowsOfToken() const {
  return isDistinct ? std::min(topK, experts / ranks + helperSlots) : topK;
}

int64_t ExchangeShape::getChunkTokens(int64_t chunks) const { return std::max<int64_t>(ceilDiv(tokens, chunks), 1); }

DispatchCut mlir::plateau::moe::cutTokens(const ExchangeShape &shape, int64_t chunks, int64_t capacity) {
  int64_t most = shape.getMostRows(chunks);
  if (capacity >= most)
    return {chunks, /*leaves=*/1, most};
  int64_t leafTokens = capacity / shape.getSmallestCapacity();
  return {chunks, ceilDiv(shape.getChunkTokens(chunks), leafTokens), capacity};
}

/// The largest sum of rows' bytes that are there at once, what ops make and what they read counted both.
static int64_t getPeak(const DispatchLoopShape &loop,
                       llvm::function_ref<bool(const DispatchLoopShape::Rows &)> counts) {
  int64_t peak = 0;
  for (int64_t op = 0; op < loop.ops; ++op) {
    int64_t bytes = 0;
    for (const DispatchLoopShape::Rows &rows : loop.rows)
      if (counts(rows) && rows.made <= op && op <= rows.last)
        bytes += rows.rowBytes;
    peak = std::max(peak, bytes);
  }
  return peak;
}

int64_t mlir::plateau::moe::getLoopBytes(const ExchangeShape &shape, const DispatchCut &cut, int64_t inFlight,
                                         const DispatchLoopShape &loop) {
  // Of the three stages the second begins ceil((D - 1) / 2) times behind the first, and the third D - 1: what one makes
  // for the next has a place for each of these times and one more.
  int64_t behind = ceilDiv(inFlight - 1, 2), sentPlaces = behind + 1, returnedPlaces = inFlight - 1 - behind + 1;
  int64_t sent = 0, returned = 0;
  for (const DispatchLoopShape::Rows &rows : loop.rows) {
    sent += rows.isSent ? rows.rowBytes : 0;
    returned += rows.isReturned ? rows.rowBytes : 0;
  }
  int64_t perRow = sentPlaces * sent;
  if (sentPlaces == 1)
    perRow = getPeak(loop, [](const auto &) { return true; });
  else if (returnedPlaces == 1)
    perRow += getPeak(loop, [](const auto &rows) { return !rows.isSent; });
  else
    perRow +=
        returnedPlaces * returned + getPeak(loop, [](const auto &rows) { return !rows.isSent && !rows.isReturned; });
  int64_t staged = shape.ranks == 1 ? 0 : shape.getChunkTokens(cut.chunks) * shape.topK * loop.stagedBytes;
  int64_t tables = plr_footprint_plan_host(shape.ranks, shape.experts, shape.helperSlots, cut.chunks, cut.leaves) +
                   plr_footprint_plan_device(shape.tokens, shape.topK);
  return cut.capacity * perRow + staged + shape.helperSlots * loop.helperSlotBytes + tables;
}

int64_t mlir::plateau::moe::getLoopBytes(const ExchangeShape &shape, const DispatchCut &cut, int64_t inFlight,
                                         llvm::ArrayRef<DispatchLoopShape> loops) {
  int64_t most = 0;
  for (const DispatchLoopShape &loop : loops)
    most = std::max(most, getLoopBytes(shape, cut, inFlight, loop));
  return most;
}

DispatchCut mlir::plateau::moe::chooseCut(const ExchangeShape &shape, const DispatchWish &wish,
                                          llvm::ArrayRef<DispatchLoopShape> loops, int64_t &bytes) {
  auto measure = [&](const DispatchCut &cut) { return getLoopBytes(shape, cut, wish.inFlight, loops); };
  // A quarter above the mean of the ranks.
  auto getLeast = [&](int64_t chunks) {
    int64_t rows = ceilDiv(5 * shape.topK * shape.getChunkTokens(chunks), 4);
    return cutTokens(shape, chunks, wish.capacity ? wish.capacity : std::max(rows, shape.getSmallestCapacity()));
  };
  DispatchCut cut;
  if (wish.inFlightBytes == 0) {
    int64_t chunks = std::max<int64_t>(wish.chunks, 1);
    cut = cutTokens(shape, chunks, wish.capacity ? wish.capacity : shape.getMostRows(chunks));
    bytes = measure(cut);
    return cut;
  }
  if (wish.chunks > 0) {
    cut = getLeast(wish.chunks);
    bytes = measure(cut);
  } else {
    cut = getLeast(1);
    bytes = measure(cut);
    for (int64_t chunks = 2; chunks <= shape.tokens && bytes > wish.inFlightBytes; ++chunks) {
      DispatchCut next = getLeast(chunks);
      if (int64_t nextBytes = measure(next); nextBytes < bytes) {
        cut = next;
        bytes = nextBytes;
      }
    }
  }
  if (wish.capacity != 0 || bytes > wish.inFlightBytes)
    return cut;
  int64_t low = cut.capacity, high = shape.getMostRows(cut.chunks); // `low` fits.
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    if (measure(cutTokens(shape, cut.chunks, middle)) <= wish.inFlightBytes)
      low = middle;
    else
      high = middle - 1;
  }
  cut = cutTokens(shape, cut.chunks, low);
  bytes = measure(cut);
  return cut;
}
