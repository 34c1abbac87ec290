//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the vocabulary loss by tiles consists of. A running sum that is rescaled whenever a larger logit comes has no
// counterpart in exact mode, where an exponential is a hash: ops on states exist in float64 alone.
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "Vocabulary.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

// --- Round the ranks ---

/// The place of the rank `hops` places before `place`, in a group of `ranks`.
static int64_t goBack(int64_t place, int64_t hops, int64_t ranks) {
  int64_t back = (place - hops % ranks) % ranks;
  return back < 0 ? back + ranks : back;
}

static LogicalResult evaluateShift(ShiftOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<SmallVector<Group>> groups = getGroups(op, calls);
  if (failed(groups))
    return failure();
  for (const Group &group : *groups)
    for (auto [place, rank] : llvm::enumerate(group))
      calls[rank].set(op.getResult(), calls[group[goBack(place, op.getHops(), group.size())]].get(op.getInput()));
  return success();
}

static LogicalResult evaluateShardStart(ShardStartOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<SmallVector<Group>> groups = getShardGroups(op, op.getGridAttr(), calls);
  if (failed(groups))
    return failure();
  for (const Group &group : *groups)
    for (auto [place, rank] : llvm::enumerate(group))
      calls[rank].write<int64_t>(op.getResult())[0] =
          goBack(place, op.getHops(), group.size()) * static_cast<int64_t>(op.getRows());
  return success();
}

// --- States ---

namespace {
/// What is known of a row from the columns seen: the largest logit, Σ exp(logit − largest), the label's logit (0 when
/// it was not among them), and the sum of the logits.
struct State {
  static State load(ArrayRef<double> numbers) {
    return {numbers[0], numbers[1], numbers[2], numbers.size() > 3 ? numbers[3] : 0};
  }
  void store(MutableArrayRef<double> numbers) const {
    numbers[0] = largest;
    numbers[1] = scaledSum;
    numbers[2] = label;
    if (numbers.size() > 3)
      numbers[3] = sum;
  }

  /// Takes in columns of which `otherSum` is Σ exp(logit − otherLargest), and 0 when there was none above −inf.
  void addExponentials(double otherLargest, double otherSum) {
    if (otherSum == 0)
      return;
    double both = scaledSum == 0 ? otherLargest : std::max(largest, otherLargest);
    scaledSum = (scaledSum == 0 ? 0 : std::exp(largest - both) * scaledSum) + std::exp(otherLargest - both) * otherSum;
    largest = both;
  }

  double largest, scaledSum, label, sum;
};
} // namespace

/// Where a tile lies in the vocabulary.
template <typename OpTy>
static int64_t getFirstColumn(OpTy op, RankCall &call) {
  return call.read<int64_t>(op.getFirst())[0] + call.read<int64_t>(op.getColumn())[0];
}

/// The columns of a tile from `first` on that exist.
static int64_t countColumns(int64_t columns, int64_t first, const VocabularyOptions &options) {
  return std::clamp<int64_t>(options.size - first, 0, columns);
}

static LogicalResult evaluateFoldLogits(FoldLogitsOp op, RankCall &call) {
  VocabularyOptions options(op.getVocabulary());
  auto logits = call.read<double>(op.getLogits()), states = call.read<double>(op.getState());
  auto bias = op.getBias() ? call.read<double>(op.getBias()) : ArrayRef<double>();
  auto labels = call.read<int64_t>(op.getLabels());
  auto result = call.write<double>(op.getResult());
  int64_t columns = op.getLogits().getType().getDimSize(1), numbers = op.getState().getType().getDimSize(1);
  int64_t first = getFirstColumn(op, call), end = countColumns(columns, first, options);
  for (size_t i = 0; i < labels.size(); ++i) {
    State state = State::load(states.slice(i * numbers, numbers));
    std::vector<double> y(end);
    double largest = -HUGE_VAL, scaledSum = 0;
    for (int64_t v = 0; v < end; ++v) {
      y[v] = options.cap(logits[i * columns + v] + (bias.empty() ? 0 : bias[v]));
      largest = std::max(largest, y[v]);
      state.sum += y[v];
      if (first + v == labels[i])
        state.label = y[v];
    }
    for (double element : y)
      scaledSum += element == -HUGE_VAL ? 0 : std::exp(element - largest);
    state.addExponentials(largest, scaledSum);
    state.store(result.slice(i * numbers, numbers));
  }
  return success();
}

static LogicalResult evaluateMergeStates(MergeStatesOp op, RankCall &call) {
  auto states = call.read<double>(op.getStates());
  auto result = call.write<double>(op.getResult());
  int64_t rows = op.getResult().getType().getDimSize(0), numbers = op.getResult().getType().getDimSize(1);
  int64_t all = op.getStates().getType().getDimSize(0);
  for (int64_t i = 0; i < rows; ++i) {
    State merged = State::load(states.slice(i * numbers, numbers));
    for (int64_t other = i + rows; other < all; other += rows) {
      State part = State::load(states.slice(other * numbers, numbers));
      merged.addExponentials(part.largest, part.scaledSum);
      merged.label += part.label; // one part has seen the label, the others have 0
      merged.sum += part.sum;
    }
    merged.store(result.slice(i * numbers, numbers));
  }
  return success();
}

static LogicalResult evaluateFinishLosses(FinishLossesOp op, RankCall &call) {
  VocabularyOptions options(op.getVocabulary());
  auto states = call.read<double>(op.getState());
  auto labels = call.read<int64_t>(op.getLabels());
  if (failed(checkLabels(call, labels, options)))
    return failure();
  auto losses = call.write<double>(op.getLosses()), lse = call.write<double>(op.getLse());
  int64_t numbers = op.getState().getType().getDimSize(1);
  for (size_t i = 0; i < labels.size(); ++i) {
    State state = State::load(states.slice(i * numbers, numbers));
    lse[i] = state.largest + std::log(state.scaledSum);
    if (labels[i] == options.ignored)
      continue;
    losses[i] = (1 - options.smoothing) * (lse[i] - state.label) + options.zLoss * lse[i] * lse[i];
    if (options.smoothing != 0)
      losses[i] += options.smoothing * (lse[i] - state.sum / static_cast<double>(options.size));
  }
  return success();
}

static LogicalResult evaluateLogitsGrad(LogitsGradOp op, RankCall &call) {
  VocabularyOptions options(op.getVocabulary());
  auto logits = call.read<double>(op.getLogits()), lse = call.read<double>(op.getLse());
  auto cotangents = call.read<double>(op.getCotangents());
  auto bias = op.getBias() ? call.read<double>(op.getBias()) : ArrayRef<double>();
  auto labels = call.read<int64_t>(op.getLabels());
  auto result = call.write<double>(op.getResult());
  int64_t columns = op.getLogits().getType().getDimSize(1);
  int64_t first = getFirstColumn(op, call), end = countColumns(columns, first, options);
  for (size_t i = 0; i < labels.size(); ++i)
    for (int64_t v = 0; v < end && labels[i] != options.ignored; ++v) {
      double y = options.cap(logits[i * columns + v] + (bias.empty() ? 0 : bias[v]));
      if (y == -HUGE_VAL)
        continue;
      double byLogit = std::exp(y - lse[i]) * (1 + 2 * options.zLoss * lse[i]) -
                       options.smoothing / static_cast<double>(options.size);
      if (first + v == labels[i])
        byLogit -= 1 - options.smoothing;
      result[i * columns + v] = cotangents[i] * byLogit * options.getCapSlope(y);
    }
  return success();
}

template <typename OpTy>
static LogicalResult failExactly(OpTy, RankCall &call) {
  return call.fail("has no exact value: it rescales a running sum of exponentials; compare in float64");
}

// --- Sums ---

/// result[v] = sums[v] + Σ input[i, v]
template <typename Scalar>
static LogicalResult evaluateColumnSums(ColumnSumsOp op, RankCall &call) {
  auto input = call.read<Scalar>(op.getInput());
  Tensor result = call.get(op.getSums()).copy();
  auto sums = result.getMutable<Scalar>();
  for (size_t index = 0; index < input.size(); ++index)
    sums[index % sums.size()] += input[index];
  call.set(op.getResult(), std::move(result));
  return success();
}

void interpreter::addVocabularyTileOps(OpTable &table) {
  table.add<ShiftOp>(evaluateShift, evaluateShift, Access::Moves);
  table.add<ShardStartOp>(evaluateShardStart, evaluateShardStart);
  table.add<FoldLogitsOp>(evaluateFoldLogits, failExactly<FoldLogitsOp>);
  table.add<MergeStatesOp>(evaluateMergeStates, failExactly<MergeStatesOp>);
  table.add<FinishLossesOp>(evaluateFinishLosses, failExactly<FinishLossesOp>);
  table.add<LogitsGradOp>(evaluateLogitsGrad, failExactly<LogitsGradOp>);
  table.add<ColumnSumsOp>(evaluateColumnSums<double>, evaluateColumnSums<Field>);
}
