//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RingVocabCost.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>

using namespace mlir::plateau::moe;

/// Tokens and columns below which a product wastes most of the machine.
static constexpr int64_t leastTile = 64;
static constexpr int64_t sumBytes = 4, labelBytes = 4, statisticBytes = 4;

/// A product that stops at the largest number instead of passing it.
static int64_t times(std::initializer_list<int64_t> factors) {
  uint64_t product = 1;
  for (int64_t factor : factors)
    product = llvm::SaturatingMultiply(product, static_cast<uint64_t>(factor));
  return static_cast<int64_t>(std::min<uint64_t>(product, std::numeric_limits<int64_t>::max() / 16));
}

llvm::StringRef mlir::plateau::moe::stringifyVocabMove(VocabMove move) {
  switch (move) {
  case VocabMove::Weights:
    return "weights";
  case VocabMove::Activations:
    return "activations";
  case VocabMove::None:
    return "none";
  }
  llvm_unreachable("unknown form");
}

int64_t mlir::plateau::moe::getEvenTile(int64_t rows, int64_t most) {
  if (rows <= most)
    return std::max<int64_t>(rows, 1);
  return static_cast<int64_t>(llvm::divideCeil(rows, llvm::divideCeil(rows, most)));
}

llvm::SmallVector<RowRange> mlir::plateau::moe::cutRows(int64_t rows, int64_t most) {
  int64_t size = getEvenTile(rows, most);
  llvm::SmallVector<RowRange> ranges;
  int64_t rest = rows % size;
  if (rest != 0)
    ranges.push_back({0, rest});
  for (int64_t first = rest; first < rows; first += size)
    ranges.push_back({first, size});
  if (ranges.empty())
    ranges.push_back({0, 0});
  return ranges;
}

llvm::SmallVector<RowRange> mlir::plateau::moe::cutMovingRows(const VocabProblem &problem, VocabMove move,
                                                              const VocabLimits &limits) {
  int64_t rows = move == VocabMove::Weights ? problem.columns : problem.tokens;
  int64_t rowBytes = times({problem.hidden, sumBytes});
  if (!limits.hopsByTile || problem.ranks == 1 || rowBytes == 0)
    return {{0, rows}};
  return cutRows(rows, std::max<int64_t>(limits.tileBytes / rowBytes, 1));
}

int64_t mlir::plateau::moe::getLogitBytes(const VocabProblem &problem) {
  return sumBytes + (problem.hasGrad && problem.elementBytes < sumBytes ? problem.elementBytes : 0);
}

LogitsTile mlir::plateau::moe::getLogitsTile(const VocabProblem &problem, int64_t tokens, int64_t columns,
                                             const VocabLimits &limits) {
  int64_t logits = std::max<int64_t>(limits.tileBytes / getLogitBytes(problem), 1);
  tokens = std::max<int64_t>(tokens, 1);
  LogitsTile tile = {std::min(tokens, logits / columns), columns};
  if (tile.tokens < std::min(tokens, leastTile)) {
    tile.tokens = std::min(tokens, leastTile);
    tile.columns = std::min(columns, logits / tile.tokens);
  }
  if (tile.columns < std::min(columns, leastTile)) {
    tile.columns = std::min({columns, leastTile, logits});
    tile.tokens = std::min(tokens, logits / tile.columns);
  }
  return {getEvenTile(tokens, tile.tokens), getEvenTile(columns, tile.columns)};
}

int64_t mlir::plateau::moe::getGatheredTokens(const VocabProblem &problem, const VocabLimits &limits) {
  int64_t row = std::max(times({problem.ranks, problem.columns, getLogitBytes(problem)}),
                         times({problem.ranks, problem.hidden, sumBytes}));
  int64_t most = std::min(problem.tokens, limits.tileBytes / row);
  return most == 0 ? 0 : getEvenTile(problem.tokens, most);
}

namespace {
/// The sums behind the costs, of one problem.
struct Model {
  const VocabProblem &p;
  VocabLimits limits;

  // Bytes of whole tensors: the table's shard with its bias, its gradient, x, its gradient, and states.
  int64_t bias() const { return p.hasBias ? times({p.columns, sumBytes}) : 0; }
  int64_t table() const { return times({p.columns, p.hidden, p.elementBytes}) + bias(); }
  int64_t tableGrad() const { return times({p.columns, p.hidden, sumBytes}) + bias(); }
  int64_t x() const { return times({p.tokens, p.hidden, p.elementBytes}); }
  int64_t xGrad() const { return times({p.tokens, p.hidden, sumBytes}); }
  int64_t labels() const { return times({p.tokens, labelBytes}); }
  int64_t statistics() const { return times({p.tokens, statisticBytes}); } // lse, or cotangents
  int64_t states() const { return times({p.tokens, p.stateNumbers, sumBytes}); }

  int64_t flops(VocabMove move) const {
    // Each rank multiplies N · P rows of x with its R rows of the table, or as many: once forward; backward once for
    // the logits again, unless they are still there, and once for each gradient.
    int64_t products = (p.hasLoss ? 1 : 0) + (p.hasGrad ? (move == VocabMove::None && p.hasLoss ? 2 : 3) : 0);
    return times({2 * products, p.tokens, p.hidden, p.columns, p.ranks});
  }

  /// An input moves P − 1 times, an accumulator P times, until it is home.
  int64_t sent(VocabMove move) const {
    if (p.ranks == 1)
      return 0;
    int64_t bytes = 0, input = p.ranks - 1, home = p.ranks;
    switch (move) {
    case VocabMove::Weights:
      if (p.hasLoss)
        bytes += times({input, table()});
      if (p.hasGrad)
        bytes += times({input, table()}) + times({home, tableGrad()});
      break;
    case VocabMove::Activations:
      if (p.hasLoss)
        bytes += times({input, x() + labels()}) + times({home, states()});
      if (p.hasGrad)
        bytes += times({input, x() + labels() + 2 * statistics()}) + times({home, xGrad()});
      break;
    case VocabMove::None:
      // Each rank tells all others the states of their rows, and of those that they have gathered too.
      bytes += times({input, x() + labels()}) + times({input, home, states()});
      if (p.hasGrad)
        bytes += times({input, statistics() + xGrad()});
      break;
    }
    return bytes;
  }

  /// The largest tile of a cut of `rows`, and the smaller one beside it, as a part of `bytes`: the places that are kept
  /// free for what moves, since tiles of two sizes have a free place each.
  static int64_t spare(int64_t bytes, llvm::ArrayRef<RowRange> cut, int64_t rows) {
    if (rows == 0)
      return 0;
    int64_t perRow = bytes / rows, free = perRow * cut.back().count;
    return cut.front().count == cut.back().count ? free : free + perRow * cut.front().count;
  }

  /// What received inputs take: nothing on one rank, then as much as comes, and a spare place from the third rank on.
  int64_t received(int64_t bytes, llvm::ArrayRef<RowRange> cut, int64_t rows) const {
    return p.ranks == 1 ? 0 : p.ranks == 2 ? bytes : bytes + spare(bytes, cut, rows);
  }
  int64_t accumulated(int64_t bytes, llvm::ArrayRef<RowRange> cut, int64_t rows) const {
    return p.ranks == 1 ? bytes : bytes + spare(bytes, cut, rows);
  }

  /// Gradients beside their bf16 copies, when all else is gone.
  int64_t narrowed() const {
    return xGrad() + tableGrad() + (p.narrowsXGrad ? xGrad() / 2 : 0) + (p.narrowsTableGrad ? tableGrad() / 2 : 0);
  }

  int64_t logits(VocabMove move) const {
    if (move == VocabMove::None)
      return times({getGatheredTokens(p, limits), p.ranks, p.columns, getLogitBytes(p)});
    llvm::SmallVector<RowRange> cut = cutMovingRows(p, move, limits);
    bool movesTokens = move == VocabMove::Activations;
    int64_t most = 0;
    for (RowRange range : {cut.front(), cut.back()}) {
      LogitsTile tile =
          getLogitsTile(p, movesTokens ? range.count : p.tokens, movesTokens ? p.columns : range.count, limits);
      most = std::max(most, times({tile.tokens, tile.columns, getLogitBytes(p)}));
    }
    return p.tokens == 0 ? 0 : most;
  }

  int64_t live(VocabMove move) const {
    llvm::SmallVector<RowRange> cut = cutMovingRows(p, move, limits);
    int64_t forward = 0, backward = 0, tile = logits(move);
    switch (move) {
    case VocabMove::Weights:
      forward = states() + received(table(), cut, p.columns) + tile;
      backward = xGrad() + received(table(), cut, p.columns) + accumulated(tableGrad(), cut, p.columns) + tile;
      break;
    case VocabMove::Activations:
      forward = received(x() + labels(), cut, p.tokens) + accumulated(states(), cut, p.tokens) + tile;
      backward = received(x() + labels() + 2 * statistics(), cut, p.tokens) + accumulated(xGrad(), cut, p.tokens) +
                 tableGrad() + tile;
      break;
    case VocabMove::None: {
      // Two tiles are under way at a time: what is gathered for the next, and the parts of dX of the one before.
      int64_t rows = times({getGatheredTokens(p, limits), p.ranks});
      bool gathers = p.ranks > 1;
      forward = states() + tile + times({rows, p.stateNumbers, sumBytes, p.ranks + 2}) +
                (gathers ? 2 * times({rows, p.hidden, p.elementBytes}) + 2 * times({rows, labelBytes}) : 0);
      backward = forward + xGrad() + tableGrad() +
                 (gathers ? 2 * times({rows, p.hidden, sumBytes}) + 2 * times({rows, statisticBytes}) : 0);
      break;
    }
    }
    return std::max({p.hasLoss ? forward : 0, p.hasGrad ? backward : 0, p.hasGrad ? narrowed() : 0});
  }
};
} // namespace

VocabCost mlir::plateau::moe::getVocabCost(const VocabProblem &problem, VocabMove move, const VocabLimits &limits) {
  Model model = {problem, limits};
  VocabCost cost;
  cost.flops = model.flops(move);
  cost.sentBytes = model.sent(move);
  cost.logitsBytes = model.logits(move);
  cost.liveBytes = model.live(move);
  cost.seconds = static_cast<double>(cost.flops) / limits.flopsPerSecond +
                 static_cast<double>(cost.sentBytes) / limits.linkBytesPerSecond;
  return cost;
}
