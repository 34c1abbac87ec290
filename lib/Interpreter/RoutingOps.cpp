//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "Hash.h"
#include "Plan.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

// --- Selection ---

/// Whether `a` is less than `b`, with NaN less than every number.
static bool isBelow(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a < b; }
static bool isBelow(uint64_t a, uint64_t b) { return a < b; }

/// Indices of the `count` greatest values, in descending order; among equals the lower index first.
template <typename Number>
static std::vector<int64_t> selectGreatest(ArrayRef<Number> values, int64_t count) {
  std::vector<int64_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::sort(indices.begin(), indices.end(), [&](int64_t i, int64_t j) {
    return isBelow(values[j], values[i]) || (!isBelow(values[i], values[j]) && i < j);
  });
  indices.resize(count);
  return indices;
}

/// Masks all but the best groups with −inf; a group is worth the sum of its two best values, or its only one.
static void maskGroups(std::vector<double> &values, RoutingAttr routing) {
  auto size = static_cast<int64_t>(values.size()) / routing.getGroups();
  std::vector<double> worths;
  for (int64_t group = 0; group < routing.getGroups(); ++group) {
    ArrayRef<double> members = ArrayRef(values).slice(group * size, size);
    std::vector<int64_t> best = selectGreatest(members, std::min<int64_t>(2, size));
    worths.push_back(best.size() == 2 ? members[best[0]] + members[best[1]] : members[best[0]]);
  }
  std::vector<int64_t> kept = selectGreatest<double>(worths, routing.getKeptGroups());
  for (size_t expert = 0; expert < values.size(); ++expert)
    if (!llvm::is_contained(kept, static_cast<int64_t>(expert) / size))
      values[expert] = -std::numeric_limits<double>::infinity();
}

// --- Scores ---

static std::vector<double> getSoftmax(ArrayRef<double> logits) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (double logit : logits)
    largest = std::max(largest, logit);
  std::vector<double> scores;
  for (double logit : logits)
    sum += scores.emplace_back(std::exp(logit - largest));
  for (double &score : scores)
    score /= sum;
  return scores;
}

/// The score of each expert, which for top_k_softmax is defined for the chosen ones only: 0 for the others. `ids` are
/// legal or −1.
static std::vector<double> getScores(ArrayRef<double> logits, ArrayRef<int64_t> ids, Score kind) {
  switch (kind) {
  case Score::Softmax:
    return getSoftmax(logits);
  case Score::Sigmoid: {
    std::vector<double> scores;
    for (double logit : logits)
      scores.push_back(1 / (1 + std::exp(-logit)));
    return scores;
  }
  case Score::TopKSoftmax: {
    std::vector<double> chosen, scores(logits.size());
    for (int64_t id : ids)
      if (id >= 0)
        chosen.push_back(logits[id]);
    std::vector<double> chosenScores = getSoftmax(chosen);
    size_t next = 0;
    for (int64_t id : ids)
      if (id >= 0)
        scores[id] = chosenScores[next++];
    return scores;
  }
  }
  llvm_unreachable("a score");
}

/// What the chosen scores are divided by.
static double getDivisor(ArrayRef<double> scores, ArrayRef<int64_t> ids, RoutingAttr routing) {
  if (!routing.getNormalize())
    return 1;
  double sum = 0;
  for (int64_t id : ids)
    if (id >= 0)
      sum += scores[id];
  return routing.getScore() == Score::Sigmoid ? sum + 1e-20 : sum;
}

// --- moe.route ---

static std::vector<int64_t> selectExperts(ArrayRef<double> logits, ArrayRef<double> bias, RoutingAttr routing) {
  std::vector<double> values =
      routing.getScore() == Score::TopKSoftmax ? logits.vec() : getScores(logits, {}, routing.getScore());
  for (auto [value, addend] : llvm::zip(values, bias))
    value += addend;
  if (routing.getGroups() > 1)
    maskGroups(values, routing);
  return selectGreatest<double>(values, routing.getTopK());
}

/// The rows that are tokens. The others are padding, which chooses no expert.
static FailureOr<int64_t> countTokens(RouteOp op, RankCall &call, MutableArrayRef<int64_t> ids) {
  int64_t rows = op.getLogits().getType().getDimSize(0);
  if (!op.getTokenCount())
    return rows;
  int64_t tokens = call.read<int64_t>(op.getTokenCount())[0];
  if (tokens < 0 || tokens > rows)
    return call.fail("the number of tokens is " + Twine(tokens) + ", which is not in 0 ... " + Twine(rows));
  llvm::fill(ids.drop_front(tokens * op.getRouting().getTopK()), -1);
  return tokens;
}

static LogicalResult evaluateRoute(RouteOp op, RankCall &call) {
  auto logits = call.read<double>(op.getLogits());
  auto bias = op.getBias() ? call.read<double>(op.getBias()) : ArrayRef<double>();
  auto ids = call.write<int64_t>(op.getIds()), counts = call.write<int64_t>(op.getCounts());
  auto weights = call.write<double>(op.getWeights());
  RoutingAttr routing = op.getRouting();
  FailureOr<int64_t> tokens = countTokens(op, call, ids);
  if (failed(tokens))
    return failure();
  int64_t experts = counts.size(), topK = routing.getTopK();
  double scale = routing.getScale().getValueAsDouble();
  for (int64_t t = 0; t < *tokens; ++t) {
    ArrayRef<double> row = logits.slice(t * experts, experts);
    std::vector<int64_t> chosen = selectExperts(row, bias, routing);
    std::vector<double> scores = getScores(row, chosen, routing.getScore());
    double divisor = getDivisor(scores, chosen, routing);
    for (int64_t j = 0; j < topK; ++j) {
      ids[t * topK + j] = chosen[j];
      weights[t * topK + j] = scores[chosen[j]] / divisor * scale;
      ++counts[chosen[j]];
    }
  }
  return success();
}

/// The part of a routing on which the weights of chosen experts depend.
static void addScoring(Hash &hash, RoutingAttr routing) {
  hash.add(static_cast<uint64_t>(routing.getScore())).add(uint64_t(routing.getNormalize()));
  hash.add(routing.getScale().getValueAsDouble());
}

/// Field elements have no order: a hash of the row gives each expert a number of its own, and the greatest are chosen.
/// A weight is a hash of the row, its choice and the slot's expert.
static LogicalResult evaluateRouteExactly(RouteOp op, RankCall &call) {
  auto logits = call.read<Field>(op.getLogits());
  auto bias = op.getBias() ? call.read<Field>(op.getBias()) : ArrayRef<Field>();
  auto ids = call.write<int64_t>(op.getIds()), counts = call.write<int64_t>(op.getCounts());
  auto weights = call.write<Field>(op.getWeights());
  RoutingAttr routing = op.getRouting();
  FailureOr<int64_t> tokens = countTokens(op, call, ids);
  if (failed(tokens))
    return failure();
  int64_t experts = counts.size(), topK = routing.getTopK();
  for (int64_t t = 0; t < *tokens; ++t) {
    ArrayRef<Field> row = logits.slice(t * experts, experts);
    Hash selection = Hash("route ids").add(row).add(bias).add(static_cast<uint64_t>(routing.getScore()));
    selection.add(routing.getGroups()).add(routing.getKeptGroups());
    std::vector<uint64_t> values;
    for (int64_t expert = 0; expert < experts; ++expert)
      values.push_back(selection.at(expert).getValue());
    std::vector<int64_t> chosen = selectGreatest<uint64_t>(values, topK);
    Hash weight = Hash("route weights").add(row).add(ArrayRef<int64_t>(chosen));
    addScoring(weight, routing);
    for (int64_t j = 0; j < topK; ++j) {
      ids[t * topK + j] = chosen[j];
      weights[t * topK + j] = weight.at(chosen[j]);
      ++counts[chosen[j]];
    }
  }
  return success();
}

// --- moe.route_grad ---

static LogicalResult evaluateRouteGrad(RouteGradOp op, RankCall &call) {
  auto cotangent = call.read<double>(op.getCotangent()), logits = call.read<double>(op.getLogits());
  auto ids = call.read<int64_t>(op.getIds());
  RoutingAttr routing = op.getRouting();
  int64_t tokens = op.getLogits().getType().getDimSize(0), experts = op.getLogits().getType().getDimSize(1);
  int64_t topK = routing.getTopK();
  if (failed(checkIds(call, ids, topK, experts)))
    return failure();
  double scale = routing.getScale().getValueAsDouble();
  auto result = call.write<double>(op.getResult());
  for (int64_t t = 0; t < tokens; ++t) {
    ArrayRef<int64_t> chosen = ids.slice(t * topK, topK);
    std::vector<double> scores = getScores(logits.slice(t * experts, experts), chosen, routing.getScore());
    double divisor = getDivisor(scores, chosen, routing);
    // weight = scale · score / divisor: the derivative by each chosen score.
    double inner = 0; // Σ cotangent · weight / scale
    for (int64_t j = 0; j < topK; ++j)
      if (chosen[j] >= 0)
        inner += cotangent[t * topK + j] * scores[chosen[j]] / divisor;
    std::vector<double> byScore(experts);
    for (int64_t j = 0; j < topK; ++j)
      if (chosen[j] >= 0)
        byScore[chosen[j]] += scale * (cotangent[t * topK + j] - (routing.getNormalize() ? inner : 0)) / divisor;
    // Through the scores to the logits; where a softmax leaves an expert out, its score is 0.
    double mean = 0;
    for (int64_t e = 0; e < experts; ++e)
      mean += byScore[e] * scores[e];
    for (int64_t e = 0; e < experts; ++e)
      result[t * experts + e] = routing.getScore() == Score::Sigmoid ? byScore[e] * scores[e] * (1 - scores[e])
                                                                     : scores[e] * (byScore[e] - mean);
  }
  return success();
}

static LogicalResult evaluateRouteGradExactly(RouteGradOp op, RankCall &call) {
  auto cotangent = call.read<Field>(op.getCotangent()), logits = call.read<Field>(op.getLogits());
  auto ids = call.read<int64_t>(op.getIds());
  int64_t tokens = op.getLogits().getType().getDimSize(0), experts = op.getLogits().getType().getDimSize(1);
  int64_t topK = op.getRouting().getTopK();
  if (failed(checkIds(call, ids, topK, experts)))
    return failure();
  auto result = call.write<Field>(op.getResult());
  for (int64_t t = 0; t < tokens; ++t) {
    Hash row = Hash("route_grad").add(cotangent.slice(t * topK, topK)).add(logits.slice(t * experts, experts));
    row.add(ids.slice(t * topK, topK));
    addScoring(row, op.getRouting());
    bool sendsNone = llvm::all_of(ids.slice(t * topK, topK), [](int64_t id) { return id < 0; });
    if (sendsNone || isZero(cotangent.slice(t * topK, topK)))
      continue;
    for (int64_t e = 0; e < experts; ++e)
      result[t * experts + e] = row.at(e);
  }
  return success();
}

void interpreter::addRoutingOps(OpTable &table) {
  table.add<RouteOp>(evaluateRoute, evaluateRouteExactly);
  table.add<RouteGradOp>(evaluateRouteGrad, evaluateRouteGradExactly);
}
