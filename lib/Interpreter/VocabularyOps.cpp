//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The vocabulary loss, with all its logits at once, and the ops of its standard form. Exact mode gives one value for
// both: moe.vocab_loss takes row by row the steps of the standard form. Columns that do not exist have no part in it,
// so the number of ranks and the padding of their shards do not change a bit.
//===----------------------------------------------------------------------===//

#include "Cell.h"
#include "Groups.h"
#include "Hash.h"
#include "Vocabulary.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

LogicalResult interpreter::checkLabels(RankCall &call, ArrayRef<int64_t> labels, const VocabularyOptions &options) {
  for (auto [row, label] : llvm::enumerate(labels))
    if (label != options.ignored && (label < 0 || label >= options.size))
      return call.fail("row " + Twine(row) + " has label " + Twine(label) + ", which is neither " +
                       Twine(options.ignored) + " (ignored) nor one of the " + Twine(options.size) + " columns");
  return success();
}

/// Row `i` of a matrix.
template <typename Elements>
static auto getRow(Elements matrix, int64_t i, int64_t columns) {
  return matrix.slice(i * columns, columns);
}

// --- One row: log probabilities ---
// Each function exists for doubles and, as a hash or in the field, for exact mode. `bias` may be empty.

static double takeLogSoftmax(ArrayRef<double> logits, ArrayRef<double> bias, const VocabularyOptions &options,
                             MutableArrayRef<double> result) {
  double largest = -HUGE_VAL, sum = 0;
  for (int64_t v = 0; v < options.size; ++v) {
    result[v] = options.cap(bias.empty() ? logits[v] : logits[v] + bias[v]);
    largest = std::max(largest, result[v]);
  }
  for (double &element : result.drop_front(options.size))
    element = -HUGE_VAL;
  if (largest == -HUGE_VAL) // nothing to normalise
    return largest;
  for (int64_t v = 0; v < options.size; ++v)
    sum += std::exp(result[v] - largest);
  double logSum = std::log(sum);
  for (int64_t v = 0; v < options.size; ++v)
    result[v] = result[v] - largest - logSum;
  return largest + logSum;
}

static Field takeLogSoftmax(ArrayRef<Field> logits, ArrayRef<Field> bias, const VocabularyOptions &options,
                            MutableArrayRef<Field> result) {
  Hash row = Hash("log_softmax").add(logits.take_front(options.size)).add(options.softcap);
  if (!bias.empty())
    row.add(bias.take_front(options.size));
  for (int64_t v = 0; v < options.size; ++v)
    result[v] = row.at(v);
  for (Field &element : result.drop_front(options.size))
    element = Field::fromDouble(-HUGE_VAL);
  return row.at(-1);
}

static void takeLogSoftmaxGrad(ArrayRef<double> cotangent, ArrayRef<double> output, double lse, double lseCotangent,
                               const VocabularyOptions &options, MutableArrayRef<double> result) {
  double sum = 0;
  for (double element : cotangent)
    sum += element;
  for (size_t v = 0; v < output.size(); ++v)
    result[v] = output[v] == -HUGE_VAL ? 0
                                       : (cotangent[v] - std::exp(output[v]) * (sum - lseCotangent)) *
                                             options.getCapSlope(output[v] + lse);
}

static void takeLogSoftmaxGrad(ArrayRef<Field> cotangent, ArrayRef<Field> output, Field lse, Field lseCotangent,
                               const VocabularyOptions &options, MutableArrayRef<Field> result) {
  llvm::fill(result, Field());
  if (isZero(cotangent) && lseCotangent == Field())
    return;
  // Of cotangents of columns that do not exist, only their sum matters.
  Field padding{};
  for (Field element : cotangent.drop_front(options.size))
    padding += element;
  Hash row = Hash("log_softmax_grad")
                 .add(cotangent.take_front(options.size))
                 .add(padding)
                 .add(output.take_front(options.size))
                 .add(lse)
                 .add(lseCotangent)
                 .add(options.softcap);
  for (int64_t v = 0; v < options.size; ++v)
    result[v] = row.at(v);
}

// --- One row: the loss ---
// Linear in the log probabilities, so the same in both modes.

template <typename Scalar>
static Scalar takeNLL(ArrayRef<Scalar> logProbs, Scalar lse, int64_t label, const VocabularyOptions &options) {
  if (label == options.ignored)
    return Scalar();
  Scalar loss = -(fromDouble<Scalar>(1 - options.smoothing) * logProbs[label]);
  if (options.smoothing != 0) { // without it a −inf may stand anywhere but at the label
    Scalar sum{};
    for (Scalar element : logProbs.take_front(options.size))
      sum += element;
    loss = loss - fromDouble<Scalar>(options.smoothing) / fromDouble<Scalar>(options.size) * sum;
  }
  if (options.zLoss != 0)
    loss += fromDouble<Scalar>(options.zLoss) * lse * lse;
  return loss;
}

/// Fills in the cotangents of the log probabilities, and returns that of lse.
template <typename Scalar>
static Scalar takeNLLGrad(Scalar cotangent, Scalar lse, int64_t label, const VocabularyOptions &options,
                          MutableArrayRef<Scalar> logProbsGrad) {
  llvm::fill(logProbsGrad, Scalar());
  if (label == options.ignored)
    return Scalar();
  if (options.smoothing != 0)
    for (Scalar &element : logProbsGrad.take_front(options.size))
      element = -(cotangent * (fromDouble<Scalar>(options.smoothing) / fromDouble<Scalar>(options.size)));
  logProbsGrad[label] = logProbsGrad[label] - cotangent * fromDouble<Scalar>(1 - options.smoothing);
  return fromDouble<Scalar>(2 * options.zLoss) * lse * cotangent;
}

// --- moe.log_softmax ---

template <typename Scalar>
static LogicalResult evaluateLogSoftmax(LogSoftmaxOp op, RankCall &call) {
  VocabularyOptions options(op.getVocabulary());
  auto input = call.read<Scalar>(op.getInput());
  auto bias = op.getBias() ? call.read<Scalar>(op.getBias()) : ArrayRef<Scalar>();
  auto result = call.write<Scalar>(op.getResult()), lse = call.write<Scalar>(op.getLse());
  int64_t columns = op.getInput().getType().getDimSize(1);
  for (size_t i = 0; i < lse.size(); ++i)
    lse[i] = takeLogSoftmax(getRow(input, i, columns), bias, options, getRow(result, i, columns));
  return success();
}

template <typename Scalar>
static LogicalResult evaluateLogSoftmaxGrad(LogSoftmaxGradOp op, RankCall &call) {
  VocabularyOptions options(op.getVocabulary());
  auto cotangent = call.read<Scalar>(op.getCotangent()), output = call.read<Scalar>(op.getOutput());
  auto lse = call.read<Scalar>(op.getLse());
  auto lseCotangent = op.getLseCotangent() ? call.read<Scalar>(op.getLseCotangent()) : ArrayRef<Scalar>();
  auto result = call.write<Scalar>(op.getResult());
  auto biasGrad = op.getBiasGrad() ? call.write<Scalar>(op.getBiasGrad()) : MutableArrayRef<Scalar>();
  int64_t columns = op.getOutput().getType().getDimSize(1);
  for (size_t i = 0; i < lse.size(); ++i) {
    takeLogSoftmaxGrad(getRow(cotangent, i, columns), getRow(output, i, columns), lse[i],
                       lseCotangent.empty() ? Scalar() : lseCotangent[i], options, getRow(result, i, columns));
    for (auto [sum, element] : llvm::zip(biasGrad, getRow(result, i, columns)))
      sum += element;
  }
  return success();
}

// --- moe.nll ---

template <typename Scalar>
static LogicalResult evaluateCountLabels(CountLabelsOp op, RankCall &call) {
  int64_t ignored = static_cast<int32_t>(op.getIgnoreIndex());
  int64_t count = llvm::count_if(call.read<int64_t>(op.getLabels()), [&](int64_t label) { return label != ignored; });
  call.write<Scalar>(op.getResult())[0] = fromDouble<Scalar>(static_cast<double>(count));
  return success();
}

template <typename Scalar>
static LogicalResult evaluateNLL(NLLOp op, RankCall &call) {
  VocabularyOptions options(op.getVocabulary());
  auto logProbs = call.read<Scalar>(op.getLogProbs()), lse = call.read<Scalar>(op.getLse());
  auto labels = call.read<int64_t>(op.getLabels());
  if (failed(checkLabels(call, labels, options)))
    return failure();
  auto losses = call.write<Scalar>(op.getLosses());
  for (size_t i = 0; i < labels.size(); ++i)
    losses[i] = takeNLL(getRow(logProbs, i, op.getLogProbs().getType().getDimSize(1)), lse[i], labels[i], options);
  return success();
}

template <typename Scalar>
static LogicalResult evaluateNLLGrad(NLLGradOp op, RankCall &call) {
  VocabularyOptions options(op.getVocabulary());
  auto cotangents = call.read<Scalar>(op.getCotangents()), lse = call.read<Scalar>(op.getLse());
  auto labels = call.read<int64_t>(op.getLabels());
  if (failed(checkLabels(call, labels, options)))
    return failure();
  auto result = call.write<Scalar>(op.getLogProbsGrad()), lseGrad = call.write<Scalar>(op.getLseGrad());
  for (size_t i = 0; i < labels.size(); ++i)
    lseGrad[i] = takeNLLGrad(cotangents[i], lse[i], labels[i], options,
                             getRow(result, i, op.getLogProbsGrad().getType().getDimSize(1)));
  return success();
}

/// Σ weights[i] · losses[i] / count
template <typename Scalar>
static LogicalResult evaluateMeanLoss(MeanLossOp op, RankCall &call) {
  auto losses = call.read<Scalar>(op.getLosses());
  auto weights = op.getWeights() ? call.read<Scalar>(op.getWeights()) : ArrayRef<Scalar>();
  Scalar count = call.read<Scalar>(op.getCount())[0], sum{};
  for (size_t i = 0; i < losses.size(); ++i)
    sum += weights.empty() ? losses[i] : weights[i] * losses[i];
  call.write<Scalar>(op.getResult())[0] = count == Scalar() ? Scalar() : sum / count;
  return success();
}

template <typename Scalar>
static LogicalResult evaluateMeanLossGrad(MeanLossGradOp op, RankCall &call) {
  auto weights = op.getWeights() ? call.read<Scalar>(op.getWeights()) : ArrayRef<Scalar>();
  Scalar cotangent = call.read<Scalar>(op.getCotangent())[0], count = call.read<Scalar>(op.getCount())[0];
  auto result = call.write<Scalar>(op.getResult());
  if (count == Scalar())
    return success();
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = (weights.empty() ? cotangent : cotangent * weights[i]) / count;
  return success();
}

// --- moe.vocab_loss: each rank's tokens against the whole table ---

/// The shards of a group of ranks, one after the other.
template <typename Scalar>
static std::vector<Scalar> gather(Value shard, const Group &group, ArrayRef<RankCall> calls) {
  std::vector<Scalar> whole;
  if (shard)
    for (int rank : group)
      llvm::append_range(whole, calls[rank].read<Scalar>(shard));
  return whole;
}

/// The first `columns` rows of a table, as columns: what a row of x meets one after the other.
template <typename Scalar>
static std::vector<Scalar> transpose(ArrayRef<Scalar> table, int64_t columns, int64_t width) {
  std::vector<Scalar> transposed(columns * width);
  for (int64_t v = 0; v < columns; ++v)
    for (int64_t h = 0; h < width; ++h)
      transposed[h * columns + v] = table[v * width + h];
  return transposed;
}

/// logits[v] = Σ x[h] · transposed[h, v], in ascending order of h
template <typename Scalar>
static void takeLogits(ArrayRef<Scalar> x, ArrayRef<Scalar> transposed, MutableArrayRef<Scalar> logits) {
  llvm::fill(logits, Scalar());
  for (size_t h = 0; h < x.size(); ++h)
    for (size_t v = 0; v < logits.size(); ++v)
      logits[v] += x[h] * transposed[h * logits.size() + v];
}

template <typename Scalar>
static LogicalResult evaluateVocabLoss(VocabLossOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<SmallVector<Group>> groups = getShardGroups(op, op.getGridAttr(), calls);
  if (failed(groups))
    return failure();
  VocabularyOptions options(op.getVocabulary());
  int64_t width = op.getX().getType().getDimSize(1);
  for (const Group &group : *groups) {
    std::vector<Scalar> table = gather<Scalar>(op.getTable(), group, calls);
    std::vector<Scalar> transposed = transpose<Scalar>(table, options.size, width);
    std::vector<Scalar> bias = gather<Scalar>(op.getBias(), group, calls);
    std::vector<Scalar> logits(options.size), logProbs(options.size);
    for (int rank : group) {
      auto x = calls[rank].read<Scalar>(op.getX());
      auto labels = calls[rank].read<int64_t>(op.getLabels());
      if (failed(checkLabels(calls[rank], labels, options)))
        return failure();
      auto losses = calls[rank].write<Scalar>(op.getLosses()), lse = calls[rank].write<Scalar>(op.getLse());
      for (size_t i = 0; i < labels.size(); ++i) {
        takeLogits<Scalar>(getRow(x, i, width), transposed, logits);
        lse[i] = takeLogSoftmax(ArrayRef(logits), ArrayRef(bias), options, MutableArrayRef(logProbs));
        losses[i] = takeNLL(ArrayRef(logProbs), lse[i], labels[i], options);
      }
    }
  }
  return success();
}

template <typename Scalar>
static LogicalResult evaluateVocabLossGrad(VocabLossGradOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<SmallVector<Group>> groups = getShardGroups(op, op.getGridAttr(), calls);
  if (failed(groups))
    return failure();
  VocabularyOptions options(op.getVocabulary());
  int64_t width = op.getX().getType().getDimSize(1);
  for (const Group &group : *groups) {
    std::vector<Scalar> table = gather<Scalar>(op.getTable(), group, calls);
    std::vector<Scalar> transposed = transpose<Scalar>(table, options.size, width);
    std::vector<Scalar> bias = gather<Scalar>(op.getBias(), group, calls);
    std::vector<Scalar> tableGrad(table.size()), biasGrad(group.size() * op.getTable().getType().getDimSize(0));
    std::vector<Scalar> logits(options.size), logProbs(options.size), cotangent(options.size), grad(options.size);
    for (int rank : group) {
      auto x = calls[rank].read<Scalar>(op.getX()), cotangents = calls[rank].read<Scalar>(op.getCotangents());
      auto lse = calls[rank].read<Scalar>(op.getLse());
      auto labels = calls[rank].read<int64_t>(op.getLabels());
      if (failed(checkLabels(calls[rank], labels, options)))
        return failure();
      auto xGrad = calls[rank].write<Scalar>(op.getXGrad());
      for (size_t i = 0; i < labels.size(); ++i) {
        takeLogits<Scalar>(getRow(x, i, width), transposed, logits);
        takeLogSoftmax(ArrayRef(logits), ArrayRef(bias), options, MutableArrayRef(logProbs));
        Scalar lseCotangent = takeNLLGrad(cotangents[i], lse[i], labels[i], options, MutableArrayRef(cotangent));
        takeLogSoftmaxGrad(ArrayRef(cotangent), ArrayRef(logProbs), lse[i], lseCotangent, options,
                           MutableArrayRef(grad));
        for (int64_t v = 0; v < options.size; ++v) {
          for (int64_t h = 0; h < width; ++h) {
            xGrad[i * width + h] += grad[v] * table[v * width + h];
            tableGrad[v * width + h] += grad[v] * x[i * width + h];
          }
          biasGrad[v] += grad[v];
        }
      }
    }
    for (auto [place, rank] : llvm::enumerate(group)) {
      auto shard = calls[rank].write<Scalar>(op.getTableGrad());
      llvm::copy(ArrayRef(tableGrad).slice(place * shard.size(), shard.size()), shard.begin());
      if (!op.getBiasGrad())
        continue;
      auto biasShard = calls[rank].write<Scalar>(op.getBiasGrad());
      llvm::copy(ArrayRef(biasGrad).slice(place * biasShard.size(), biasShard.size()), biasShard.begin());
    }
  }
  return success();
}

void interpreter::addVocabularyOps(OpTable &table) {
  table.add<VocabLossOp>(evaluateVocabLoss<double>, evaluateVocabLoss<Field>);
  table.add<VocabLossGradOp>(evaluateVocabLossGrad<double>, evaluateVocabLossGrad<Field>);
  table.add<LogSoftmaxOp>(evaluateLogSoftmax<double>, evaluateLogSoftmax<Field>);
  table.add<LogSoftmaxGradOp>(evaluateLogSoftmaxGrad<double>, evaluateLogSoftmaxGrad<Field>);
  table.add<CountLabelsOp>(evaluateCountLabels<double>, evaluateCountLabels<Field>);
  table.add<NLLOp>(evaluateNLL<double>, evaluateNLL<Field>);
  table.add<NLLGradOp>(evaluateNLLGrad<double>, evaluateNLLGrad<Field>);
  table.add<MeanLossOp>(evaluateMeanLoss<double>, evaluateMeanLoss<Field>);
  table.add<MeanLossGradOp>(evaluateMeanLossGrad<double>, evaluateMeanLossGrad<Field>);
}
