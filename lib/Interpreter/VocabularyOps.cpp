//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Cell.h"
#include "Hash.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

// --- moe.log_softmax ---

static LogicalResult evaluateLogSoftmax(LogSoftmaxOp op, RankCall &call) {
  auto input = call.read<double>(op.getInput());
  auto result = call.write<double>(op.getResult());
  int64_t rows = op.getInput().getType().getDimSize(0), columns = op.getInput().getType().getDimSize(1);
  for (int64_t i = 0; i < rows; ++i) {
    auto x = input.slice(i * columns, columns);
    double largest = *llvm::max_element(x), sum = 0;
    for (double element : x)
      sum += std::exp(element - largest);
    double logSum = std::log(sum);
    for (int64_t v = 0; v < columns; ++v)
      result[i * columns + v] = x[v] - largest - logSum;
  }
  return success();
}

static LogicalResult evaluateLogSoftmaxExactly(LogSoftmaxOp op, RankCall &call) {
  auto input = call.read<Field>(op.getInput());
  auto result = call.write<Field>(op.getResult());
  int64_t rows = op.getInput().getType().getDimSize(0), columns = op.getInput().getType().getDimSize(1);
  for (int64_t i = 0; i < rows; ++i) {
    Hash row = Hash("log_softmax").add(input.slice(i * columns, columns));
    for (int64_t v = 0; v < columns; ++v)
      result[i * columns + v] = row.at(v);
  }
  return success();
}

static LogicalResult evaluateLogSoftmaxGrad(LogSoftmaxGradOp op, RankCall &call) {
  auto cotangent = call.read<double>(op.getCotangent()), output = call.read<double>(op.getOutput());
  auto result = call.write<double>(op.getResult());
  int64_t rows = op.getOutput().getType().getDimSize(0), columns = op.getOutput().getType().getDimSize(1);
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (double element : cotangent.slice(i * columns, columns))
      sum += element;
    for (int64_t v = i * columns; v < (i + 1) * columns; ++v)
      result[v] = cotangent[v] - std::exp(output[v]) * sum;
  }
  return success();
}

static LogicalResult evaluateLogSoftmaxGradExactly(LogSoftmaxGradOp op, RankCall &call) {
  auto cotangent = call.read<Field>(op.getCotangent()), output = call.read<Field>(op.getOutput());
  auto result = call.write<Field>(op.getResult());
  int64_t rows = op.getOutput().getType().getDimSize(0), columns = op.getOutput().getType().getDimSize(1);
  for (int64_t i = 0; i < rows; ++i) {
    if (isZero(cotangent.slice(i * columns, columns)))
      continue;
    Hash row =
        Hash("log_softmax_grad").add(cotangent.slice(i * columns, columns)).add(output.slice(i * columns, columns));
    for (int64_t v = 0; v < columns; ++v)
      result[i * columns + v] = row.at(v);
  }
  return success();
}

// --- The loss: linear in the log probabilities, so the same in both modes ---

/// Every label is a column, or the one that is ignored.
static LogicalResult checkLabels(RankCall &call, ArrayRef<int64_t> labels, int64_t ignored, int64_t columns) {
  for (auto [row, label] : llvm::enumerate(labels))
    if (label != ignored && (label < 0 || label >= columns))
      return call.fail("row " + Twine(row) + " has label " + Twine(label) + ", which is neither " + Twine(ignored) +
                       " (ignored) nor one of the " + Twine(columns) + " columns");
  return success();
}

template <typename Scalar>
static LogicalResult evaluateCountLabels(CountLabelsOp op, RankCall &call) {
  int64_t ignored = static_cast<int32_t>(op.getIgnoreIndex());
  int64_t count = llvm::count_if(call.read<int64_t>(op.getLabels()), [&](int64_t label) { return label != ignored; });
  call.write<Scalar>(op.getResult())[0] = fromDouble<Scalar>(static_cast<double>(count));
  return success();
}

/// −Σ log_probs[i, labels[i]] / count
template <typename Scalar>
static LogicalResult evaluateNLL(NLLOp op, RankCall &call) {
  auto logProbs = call.read<Scalar>(op.getLogProbs());
  auto labels = call.read<int64_t>(op.getLabels());
  Scalar count = call.read<Scalar>(op.getCount())[0];
  int64_t columns = op.getLogProbs().getType().getDimSize(1), ignored = static_cast<int32_t>(op.getIgnoreIndex());
  if (failed(checkLabels(call, labels, ignored, columns)))
    return failure();
  Scalar sum = Scalar();
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != ignored)
      sum += logProbs[i * columns + labels[i]];
  call.write<Scalar>(op.getResult())[0] = count == Scalar() ? Scalar() : -sum / count;
  return success();
}

/// −cotangent / count at the label of each row that counts
template <typename Scalar>
static LogicalResult evaluateNLLGrad(NLLGradOp op, RankCall &call) {
  Scalar cotangent = call.read<Scalar>(op.getCotangent())[0], count = call.read<Scalar>(op.getCount())[0];
  auto labels = call.read<int64_t>(op.getLabels());
  int64_t columns = op.getResult().getType().getDimSize(1), ignored = static_cast<int32_t>(op.getIgnoreIndex());
  if (failed(checkLabels(call, labels, ignored, columns)))
    return failure();
  auto result = call.write<Scalar>(op.getResult());
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != ignored && count != Scalar())
      result[i * columns + labels[i]] = -cotangent / count;
  return success();
}

void interpreter::addVocabularyOps(OpTable &table) {
  table.add<LogSoftmaxOp>(evaluateLogSoftmax, evaluateLogSoftmaxExactly);
  table.add<LogSoftmaxGradOp>(evaluateLogSoftmaxGrad, evaluateLogSoftmaxGradExactly);
  table.add<CountLabelsOp>(evaluateCountLabels<double>, evaluateCountLabels<Field>);
  table.add<NLLOp>(evaluateNLL<double>, evaluateNLL<Field>);
  table.add<NLLGradOp>(evaluateNLLGrad<double>, evaluateNLLGrad<Field>);
}
