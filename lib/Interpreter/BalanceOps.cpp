//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Cell.h"
#include "Hash.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

// --- moe.balance_loss ---

namespace {
/// Tokens that one set of counts weighs: all of a rank, or those of a sequence.
struct TokenSet {
  int64_t begin, end;
  ArrayRef<int64_t> ids; ///< Of a sequence.
  std::vector<int64_t> counts;

  int64_t getRoutes() const { return std::accumulate(counts.begin(), counts.end(), int64_t(0)); }
};
} // namespace

/// The sets of an op; fails when an id is no expert or a count is negative.
template <typename OpTy>
static FailureOr<std::vector<TokenSet>> getTokenSets(OpTy op, RankCall &call) {
  int64_t tokens = op.getLogits().getType().getDimSize(0), experts = op.getLogits().getType().getDimSize(1);
  std::vector<TokenSet> sets;
  if (op.getCounts()) {
    auto counts = call.read<int64_t>(op.getCounts());
    for (auto [expert, count] : llvm::enumerate(counts))
      if (count < 0)
        return call.fail("expert " + Twine(expert) + " has count " + Twine(count) + ", which is negative");
    sets.push_back({0, tokens, {}, counts.vec()});
    return sets;
  }
  auto ids = call.read<int64_t>(op.getIds());
  int64_t topK = op.getRouting().getTopK(), sequence = *op.getSequence();
  for (auto [index, id] : llvm::enumerate(ids))
    if (id < -1 || id >= experts)
      return call.fail("token " + Twine(index / topK) + ", slot " + Twine(index % topK) + " has id " + Twine(id) +
                       ", which is neither -1 nor one of the " + Twine(experts) + " experts");
  for (int64_t begin = 0; begin < tokens; begin += sequence) {
    TokenSet set = {begin, begin + sequence, ids.slice(begin * topK, sequence * topK), std::vector<int64_t>(experts)};
    for (int64_t id : set.ids)
      if (id >= 0)
        ++set.counts[id];
    sets.push_back(std::move(set));
  }
  return sets;
}

/// coefficient · E · k / routes², over the number of sequences where there are some; 0 without routes.
template <typename OpTy>
static double getWeight(OpTy op, const TokenSet &set) {
  auto routes = static_cast<double>(set.getRoutes()), sequences = static_cast<double>(op.getSequences().value_or(1));
  if (routes == 0)
    return 0;
  double factor = op.getCoefficient().convertToDouble() * static_cast<double>(set.counts.size());
  return factor * static_cast<double>(op.getRouting().getTopK()) / (routes * routes) / sequences;
}

static double getSigmoid(double logit) { return 1 / (1 + std::exp(-logit)); }

/// The scores of a token: they add up to 1.
static std::vector<double> getScores(ArrayRef<double> logits, Score kind) {
  bool isSigmoid = kind == Score::Sigmoid;
  double largest = *llvm::max_element(logits), sum = isSigmoid ? 1e-20 : 0;
  std::vector<double> scores;
  for (double logit : logits)
    sum += scores.emplace_back(isSigmoid ? getSigmoid(logit) : std::exp(logit - largest));
  for (double &score : scores)
    score /= sum;
  return scores;
}

static double weigh(ArrayRef<int64_t> counts, ArrayRef<double> scores) {
  double sum = 0;
  for (auto [count, score] : llvm::zip_equal(counts, scores))
    sum += static_cast<double>(count) * score;
  return sum;
}

static LogicalResult evaluateBalanceLoss(BalanceLossOp op, RankCall &call) {
  auto logits = call.read<double>(op.getLogits());
  int64_t experts = op.getLogits().getType().getDimSize(1);
  FailureOr<std::vector<TokenSet>> sets = getTokenSets(op, call);
  if (failed(sets))
    return failure();
  double loss = 0;
  for (const TokenSet &set : *sets)
    for (int64_t t = set.begin; t < set.end; ++t) {
      std::vector<double> scores = getScores(logits.slice(t * experts, experts), op.getRouting().getScore());
      loss += getWeight(op, set) * weigh(set.counts, scores);
    }
  call.write<double>(op.getResult())[0] = loss;
  return success();
}

static LogicalResult evaluateBalanceLossGrad(BalanceLossGradOp op, RankCall &call) {
  auto logits = call.read<double>(op.getLogits());
  double cotangent = call.read<double>(op.getCotangent())[0];
  int64_t experts = op.getLogits().getType().getDimSize(1);
  FailureOr<std::vector<TokenSet>> sets = getTokenSets(op, call);
  if (failed(sets))
    return failure();
  auto result = call.write<double>(op.getResult());
  for (const TokenSet &set : *sets)
    for (int64_t t = set.begin; t < set.end; ++t) {
      ArrayRef<double> row = logits.slice(t * experts, experts);
      std::vector<double> scores = getScores(row, op.getRouting().getScore());
      double mean = weigh(set.counts, scores), factor = cotangent * getWeight(op, set);
      for (int64_t e = 0; e < experts; ++e) {
        double slope = op.getRouting().getScore() == Score::Sigmoid ? 1 - getSigmoid(row[e]) : 1;
        result[t * experts + e] = factor * scores[e] * slope * (static_cast<double>(set.counts[e]) - mean);
      }
    }
  return success();
}

/// What all tokens of a set depend on.
template <typename OpTy>
static Hash startHash(StringRef name, OpTy op, const TokenSet &set) {
  Hash hash(name);
  hash.add(op.getCoefficient().convertToDouble()).add(static_cast<uint64_t>(op.getRouting().getScore()));
  hash.add(op.getRouting().getTopK());
  if (op.getCounts())
    return hash.add(ArrayRef(set.counts));
  return hash.add(static_cast<int64_t>(*op.getSequences())).add(set.ids);
}

/// A token adds a hash of its row and the counts, so that the shares of ranks add up however tokens are divided; a
/// sequence, which is on one rank, a hash of all its rows.
static LogicalResult evaluateBalanceLossExactly(BalanceLossOp op, RankCall &call) {
  auto logits = call.read<Field>(op.getLogits());
  int64_t experts = op.getLogits().getType().getDimSize(1);
  FailureOr<std::vector<TokenSet>> sets = getTokenSets(op, call);
  if (failed(sets))
    return failure();
  Field loss = Field();
  for (const TokenSet &set : *sets) {
    Hash hash = startHash("balance_loss", op, set);
    int64_t rows = op.getCounts() ? 1 : set.end - set.begin;
    for (int64_t t = set.begin; t < set.end; t += rows)
      loss += Hash(hash).add(logits.slice(t * experts, rows * experts)).toField();
  }
  call.write<Field>(op.getResult())[0] = loss;
  return success();
}

static LogicalResult evaluateBalanceLossGradExactly(BalanceLossGradOp op, RankCall &call) {
  auto logits = call.read<Field>(op.getLogits());
  int64_t experts = op.getLogits().getType().getDimSize(1);
  FailureOr<std::vector<TokenSet>> sets = getTokenSets(op, call);
  if (failed(sets))
    return failure();
  auto result = call.write<Field>(op.getResult());
  for (const TokenSet &set : *sets) {
    Hash hash = startHash("balance_loss_grad", op, set).add(call.read<Field>(op.getCotangent())[0]);
    int64_t rows = op.getCounts() ? 1 : set.end - set.begin;
    for (int64_t t = set.begin; t < set.end; t += rows) {
      Hash part = Hash(hash).add(logits.slice(t * experts, rows * experts));
      for (int64_t i = 0; i < rows * experts; ++i)
        result[t * experts + i] = part.at(i);
    }
  }
  return success();
}

// --- moe.z_loss ---

static double getLogSumExp(ArrayRef<double> logits) {
  double largest = *llvm::max_element(logits), sum = 0;
  for (double logit : logits)
    sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

static LogicalResult evaluateZLoss(ZLossOp op, RankCall &call) {
  auto logits = call.read<double>(op.getLogits());
  int64_t rows = op.getLogits().getType().getDimSize(0), experts = op.getLogits().getType().getDimSize(1);
  double sum = 0;
  for (int64_t t = 0; t < rows; ++t) {
    double z = getLogSumExp(logits.slice(t * experts, experts));
    sum += z * z;
  }
  call.write<double>(op.getResult())[0] =
      op.getCoefficient().convertToDouble() / static_cast<double>(op.getTokens()) * sum;
  return success();
}

static LogicalResult evaluateZLossGrad(ZLossGradOp op, RankCall &call) {
  auto logits = call.read<double>(op.getLogits());
  int64_t rows = op.getLogits().getType().getDimSize(0), experts = op.getLogits().getType().getDimSize(1);
  double factor = 2 * op.getCoefficient().convertToDouble() / static_cast<double>(op.getTokens());
  factor *= call.read<double>(op.getCotangent())[0];
  auto result = call.write<double>(op.getResult());
  for (int64_t t = 0; t < rows; ++t) {
    ArrayRef<double> row = logits.slice(t * experts, experts);
    double z = getLogSumExp(row);
    for (int64_t e = 0; e < experts; ++e)
      result[t * experts + e] = factor * z * std::exp(row[e] - z);
  }
  return success();
}

template <typename OpTy>
static Hash startHash(StringRef name, OpTy op) {
  return Hash(name).add(op.getCoefficient().convertToDouble()).add(static_cast<int64_t>(op.getTokens()));
}

static LogicalResult evaluateZLossExactly(ZLossOp op, RankCall &call) {
  auto logits = call.read<Field>(op.getLogits());
  int64_t rows = op.getLogits().getType().getDimSize(0), experts = op.getLogits().getType().getDimSize(1);
  Hash hash = startHash("z_loss", op);
  Field loss = Field();
  for (int64_t t = 0; t < rows; ++t)
    loss += Hash(hash).add(logits.slice(t * experts, experts)).toField();
  call.write<Field>(op.getResult())[0] = loss;
  return success();
}

static LogicalResult evaluateZLossGradExactly(ZLossGradOp op, RankCall &call) {
  auto logits = call.read<Field>(op.getLogits());
  int64_t rows = op.getLogits().getType().getDimSize(0), experts = op.getLogits().getType().getDimSize(1);
  Hash hash = startHash("z_loss_grad", op).add(call.read<Field>(op.getCotangent())[0]);
  auto result = call.write<Field>(op.getResult());
  for (int64_t t = 0; t < rows; ++t) {
    Hash row = Hash(hash).add(logits.slice(t * experts, experts));
    for (int64_t e = 0; e < experts; ++e)
      result[t * experts + e] = row.at(e);
  }
  return success();
}

// --- moe.update_bias ---

/// Whether the update happens. A field element is always a number.
static bool isFinite(double factor) { return std::isfinite(factor); }
static bool isFinite(Field) { return true; }

/// Linear in the bias, and the sign is one of whole numbers: the same in both modes.
template <typename Scalar>
static LogicalResult evaluateUpdateBias(UpdateBiasOp op, RankCall &call) {
  auto bias = call.read<Scalar>(op.getBias());
  auto counts = call.read<int64_t>(op.getCounts());
  auto experts = static_cast<int64_t>(counts.size());
  int64_t routes = std::accumulate(counts.begin(), counts.end(), int64_t(0));
  auto rate = fromDouble<Scalar>(isFinite(call.read<Scalar>(op.getFactor())[0]) ? op.getRate().convertToDouble() : 0);
  auto result = call.write<Scalar>(op.getResult());
  for (int64_t e = 0; e < experts; ++e) {
    int64_t missing = routes - experts * counts[e];
    result[e] = bias[e] + rate * fromDouble<Scalar>(missing > 0 ? 1 : missing < 0 ? -1 : 0);
  }
  return success();
}

void interpreter::addBalanceOps(OpTable &table) {
  table.add<BalanceLossOp>(evaluateBalanceLoss, evaluateBalanceLossExactly);
  table.add<BalanceLossGradOp>(evaluateBalanceLossGrad, evaluateBalanceLossGradExactly);
  table.add<ZLossOp>(evaluateZLoss, evaluateZLossExactly);
  table.add<ZLossGradOp>(evaluateZLossGrad, evaluateZLossGradExactly);
  table.add<UpdateBiasOp>(evaluateUpdateBias<double>, evaluateUpdateBias<Field>);
}
