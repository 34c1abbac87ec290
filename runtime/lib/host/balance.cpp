//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace plateau::rt::host {

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The highest logit, NaN left out.
static double findHighest(int64_t experts, const float *logits) {
  double highest = -std::numeric_limits<double>::infinity();
  for (int64_t e = 0; e < experts; ++e)
    highest = std::max(highest, static_cast<double>(logits[e]));
  return highest;
}

namespace {
/// Scores of one token after the other, and what the counts of routes make of them.
class Scores {
public:
  Scores(plr_score kind, int64_t experts)
      : isSigmoid(kind == PLR_SIGMOID), experts(experts), scores(experts), counts(experts) {}

  /// All tokens until the next call share these counts. Returns the weight of their part of the loss but for its
  /// coefficient: E · k / routes², 0 without routes.
  double setCounts(int64_t topK, const int32_t *given) {
    std::copy(given, given + experts, counts.begin());
    return getWeight(topK);
  }
  /// The same, from `slots` ids, of which −1 counts for nothing.
  double countIds(int64_t topK, int64_t slots, const int32_t *ids) {
    std::fill(counts.begin(), counts.end(), 0);
    for (int64_t i = 0; i < slots; ++i)
      if (ids[i] >= 0)
        ++counts[ids[i]];
    return getWeight(topK);
  }

  /// Σ counts[e] · scores[e] of a token.
  double weigh(const float *logits) {
    double highest = isSigmoid ? 0 : findHighest(experts, logits), sum = isSigmoid ? 1e-20 : 0, weighed = 0;
    for (int64_t e = 0; e < experts; ++e)
      sum += scores[e] = isSigmoid ? sigmoid(logits[e]) : std::exp(logits[e] - highest);
    for (int64_t e = 0; e < experts; ++e)
      weighed += static_cast<double>(counts[e]) * (scores[e] /= sum);
    return weighed;
  }
  /// Its derivative by the logits, times `factor`.
  void weighGrad(double factor, const float *logits, float *result) {
    double mean = weigh(logits);
    for (int64_t e = 0; e < experts; ++e) {
      double slope = isSigmoid ? scores[e] * sigmoid(-static_cast<double>(logits[e])) : scores[e];
      result[e] = static_cast<float>(factor * slope * (static_cast<double>(counts[e]) - mean));
    }
  }

private:
  double getWeight(int64_t topK) const {
    int64_t routes = 0;
    for (int64_t count : counts)
      routes += count;
    auto all = static_cast<double>(routes);
    return routes == 0 ? 0 : static_cast<double>(experts) * static_cast<double>(topK) / (all * all);
  }

  bool isSigmoid;
  int64_t experts;
  std::vector<double> scores;
  std::vector<int64_t> counts;
};
} // namespace

/// What is wrong with the integers of a balance loss.
static Fault checkIntegers(int64_t tokens, int64_t experts, int64_t topK, const int32_t *counts, const int32_t *ids) {
  for (int64_t e = 0; counts && e < experts; ++e)
    if (counts[e] < 0)
      return "expert " + std::to_string(e) + " has count " + std::to_string(counts[e]) + ", which is negative";
  for (int64_t i = 0; ids && i < tokens * topK; ++i)
    if (ids[i] < -1 || ids[i] >= experts)
      return "token " + std::to_string(i / topK) + " has expert " + std::to_string(ids[i]) + " in slot " +
             std::to_string(i % topK) + ", but there are " + std::to_string(experts) + " experts, and -1 for none";
  return Fault();
}

/// Calls `function` with the weight and the first token of each run of tokens that share their counts, and one past
/// their last.
template <typename Function>
static void forEachRun(Scores &scores, const plr_balance &balance, int64_t tokens, const int32_t *counts,
                       const int32_t *ids, const Function &function) {
  double coefficient = balance.coefficient;
  if (counts)
    return function(coefficient * scores.setCounts(balance.top_k, counts), int64_t(0), tokens);
  for (int64_t begin = 0; begin < tokens; begin += balance.sequence) {
    double weight = scores.countIds(balance.top_k, balance.sequence * balance.top_k, ids + begin * balance.top_k);
    function(coefficient * weight / static_cast<double>(balance.sequences), begin, begin + balance.sequence);
  }
}

Fault balanceLoss(const plr_balance &balance, int64_t tokens, const float *logits, const int32_t *counts,
                  const int32_t *ids, float *result) {
  Fault fault = checkIntegers(tokens, balance.experts, balance.top_k, counts, ids);
  if (!fault.empty())
    return fault;
  Scores scores(balance.score, balance.experts);
  double loss = 0;
  forEachRun(scores, balance, tokens, counts, ids, [&](double weight, int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t token = begin; token < end; ++token)
      sum += scores.weigh(logits + token * balance.experts);
    loss += weight * sum;
  });
  *result = static_cast<float>(loss);
  return Fault();
}

Fault balanceLossGrad(const plr_balance &balance, int64_t tokens, const float *cotangent, const float *logits,
                      const int32_t *counts, const int32_t *ids, float *logitsGrad) {
  Fault fault = checkIntegers(tokens, balance.experts, balance.top_k, counts, ids);
  if (!fault.empty())
    return fault;
  Scores scores(balance.score, balance.experts);
  forEachRun(scores, balance, tokens, counts, ids, [&](double weight, int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token)
      scores.weighGrad(*cotangent * weight, logits + token * balance.experts, logitsGrad + token * balance.experts);
  });
  return Fault();
}

/// log Σ exp(logits)
static double logSumExp(int64_t experts, const float *logits) {
  double highest = findHighest(experts, logits), sum = 0;
  for (int64_t e = 0; e < experts; ++e)
    sum += std::exp(logits[e] - highest);
  return highest + std::log(sum);
}

void zLoss(int64_t rows, int64_t experts, int64_t tokens, float coefficient, const float *logits, float *result) {
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    double z = logSumExp(experts, logits + row * experts);
    sum += z * z;
  }
  *result = static_cast<float>(coefficient * sum / static_cast<double>(tokens));
}

void zLossGrad(int64_t rows, int64_t experts, int64_t tokens, float coefficient, const float *cotangent,
               const float *logits, float *logitsGrad) {
  double factor = 2.0 * coefficient * *cotangent / static_cast<double>(tokens);
  for (int64_t row = 0; row < rows; ++row, logits += experts, logitsGrad += experts) {
    double z = logSumExp(experts, logits);
    for (int64_t e = 0; e < experts; ++e)
      logitsGrad[e] = static_cast<float>(factor * z * std::exp(logits[e] - z));
  }
}

void updateBias(int64_t experts, float rate, const int32_t *counts, const float *factor, float *bias) {
  if (!std::isfinite(*factor))
    return;
  int64_t routes = 0;
  for (int64_t e = 0; e < experts; ++e)
    routes += counts[e];
  for (int64_t e = 0; e < experts; ++e) {
    int64_t taken = experts * counts[e];
    if (taken != routes)
      bias[e] += taken < routes ? rate : -rate;
  }
}

} // namespace plateau::rt::host
