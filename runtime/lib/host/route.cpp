//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

// All arithmetic is in double: what is chosen, and ties, then hang on the logits rather than on rounding.

namespace plateau::rt::host {

/// Keeps the weights of scores that are all tiny from dividing by zero; the reference models have the same number.
static constexpr double sigmoidEpsilon = 1e-20;

/// Whether a comes before b in descending order; NaN counts as lower than every number.
static bool isHigher(double a, double b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

namespace {
/// The highest of the values it is shown, in descending order, the first shown first among equals.
class Highest {
public:
  explicit Highest(int64_t most) : indices(most), values(most) {}

  void clear() { count = 0; }
  void show(int64_t index, double value) {
    int64_t most = static_cast<int64_t>(indices.size());
    if (count == most && !isHigher(value, values[most - 1]))
      return;
    int64_t place = count < most ? count++ : most - 1;
    for (; place > 0 && isHigher(value, values[place - 1]); --place) {
      indices[place] = indices[place - 1];
      values[place] = values[place - 1];
    }
    indices[place] = index;
    values[place] = value;
  }
  int64_t size() const { return count; }
  int64_t operator[](int64_t place) const { return indices[place]; }
  double value(int64_t place) const { return values[place]; }

private:
  std::vector<int64_t> indices;
  std::vector<double> values;
  int64_t count = 0;
};

/// Chooses one token's experts by their values: the experts outside the kept groups are no candidates.
class Choice {
public:
  explicit Choice(const plr_routing &routing)
      : experts(routing.experts), groups(routing.expert_groups), chosen(routing.top_k), kept(routing.kept_groups),
        best(2) {}

  const Highest &choose(const std::vector<double> &values) {
    chosen.clear();
    if (groups == 1) {
      for (int64_t expert = 0; expert < experts; ++expert)
        chosen.show(expert, values[expert]);
      return chosen;
    }
    int64_t size = experts / groups;
    kept.clear();
    for (int64_t group = 0; group < groups; ++group) {
      best.clear();
      for (int64_t expert = group * size; expert < (group + 1) * size; ++expert)
        best.show(expert, values[expert]);
      kept.show(group, best.size() > 1 ? best.value(0) + best.value(1) : best.value(0));
    }
    // Ascending, so that ties go to the lower expert, not to the better group.
    order.resize(kept.size());
    for (int64_t i = 0; i < kept.size(); ++i)
      order[i] = kept[i];
    std::sort(order.begin(), order.end());
    for (int64_t group : order)
      for (int64_t expert = group * size; expert < (group + 1) * size; ++expert)
        chosen.show(expert, values[expert]);
    return chosen;
  }

private:
  int64_t experts, groups;
  Highest chosen, kept, best;
  std::vector<int64_t> order;
};
} // namespace

/// The highest of `count` logits, NaN left out.
template <typename At>
static double findHighest(int64_t count, At at) {
  double highest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i)
    highest = std::max(highest, static_cast<double>(at(i)));
  return highest;
}

/// probabilities[count] = softmax of the logits at(i).
template <typename At>
static void softmax(int64_t count, At at, double *probabilities) {
  double highest = findHighest(count, at), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += probabilities[i] = std::exp(static_cast<double>(at(i)) - highest);
  for (int64_t i = 0; i < count; ++i)
    probabilities[i] /= sum;
}

/// Whether a token's weights are a softmax over its chosen experts. So they are too when those of a softmax over all
/// are divided by their sum, and this form cannot underflow.
static bool isSoftmaxOverChosen(const plr_routing &routing) {
  return routing.score == PLR_TOP_K_SOFTMAX || (routing.score == PLR_SOFTMAX && routing.normalize);
}

void route(const plr_routing &routing, int64_t tokens, const float *logits, const float *bias, int32_t *ids,
           float *weights, int32_t *counts) {
  const int64_t experts = routing.experts, topK = routing.top_k;
  std::vector<double> scores(experts), values(experts), ofChosen(topK);
  Choice choice(routing);
  std::fill(counts, counts + experts, 0);
  for (int64_t token = 0; token < tokens; ++token, logits += experts, ids += topK, weights += topK) {
    if (routing.score == PLR_SOFTMAX)
      softmax(experts, [&](int64_t e) { return logits[e]; }, scores.data());
    else
      for (int64_t e = 0; e < experts; ++e)
        scores[e] = routing.score == PLR_SIGMOID ? sigmoid(logits[e]) : logits[e];
    for (int64_t e = 0; e < experts; ++e)
      values[e] = bias ? scores[e] + bias[e] : scores[e];
    const Highest &chosen = choice.choose(values);
    if (std::isnan(scores[chosen[0]])) {
      // A softmax over all that met a NaN shows it, also where the chosen logits are numbers.
      std::fill(ofChosen.begin(), ofChosen.end(), std::numeric_limits<double>::quiet_NaN());
    } else if (isSoftmaxOverChosen(routing)) {
      softmax(topK, [&](int64_t slot) { return logits[chosen[slot]]; }, ofChosen.data());
    } else {
      double sum = routing.normalize ? sigmoidEpsilon : 1;
      for (int64_t slot = 0; slot < topK; ++slot) {
        ofChosen[slot] = scores[chosen[slot]];
        sum += routing.normalize ? ofChosen[slot] : 0;
      }
      for (double &weight : ofChosen)
        weight /= sum;
    }
    for (int64_t slot = 0; slot < topK; ++slot) {
      ids[slot] = static_cast<int32_t>(chosen[slot]);
      weights[slot] = static_cast<float>(ofChosen[slot] * routing.scale);
      ++counts[ids[slot]];
    }
  }
}

namespace {
/// One slot that sends a row.
struct Slot {
  int32_t expert;
  double cotangent; ///< Of the weight before it was scaled.
};
} // namespace

/// Adjoint of weights[i] = softmax(logits of the slots)[i].
static void softmaxOverChosenGrad(const std::vector<Slot> &slots, const float *logits, std::vector<double> &space,
                                  float *result) {
  int64_t count = static_cast<int64_t>(slots.size());
  softmax(count, [&](int64_t i) { return logits[slots[i].expert]; }, space.data());
  double mean = 0;
  for (int64_t i = 0; i < count; ++i)
    mean += space[i] * slots[i].cotangent;
  for (int64_t i = 0; i < count; ++i)
    result[slots[i].expert] = static_cast<float>(space[i] * (slots[i].cotangent - mean));
}

/// Adjoint of weights[i] = softmax(all logits)[expert of slot i].
static void softmaxGrad(const std::vector<Slot> &slots, int64_t experts, const float *logits,
                        std::vector<double> &space, float *result) {
  softmax(experts, [&](int64_t e) { return logits[e]; }, space.data());
  double mean = 0;
  for (const Slot &slot : slots)
    mean += space[slot.expert] * slot.cotangent;
  for (int64_t e = 0; e < experts; ++e)
    result[e] = static_cast<float>(-space[e] * mean);
  for (const Slot &slot : slots)
    result[slot.expert] = static_cast<float>(space[slot.expert] * (slot.cotangent - mean));
}

/// Adjoint of weights[i] = s_i, or s_i / (sum of s + epsilon), s the sigmoids of the slots' logits.
static void sigmoidGrad(const std::vector<Slot> &slots, bool normalize, const float *logits, float *result) {
  double sum = 1, mean = 0;
  if (normalize) {
    sum = sigmoidEpsilon;
    for (const Slot &slot : slots)
      sum += sigmoid(logits[slot.expert]);
    for (const Slot &slot : slots)
      mean += sigmoid(logits[slot.expert]) / sum * slot.cotangent;
  }
  for (const Slot &slot : slots) {
    double x = logits[slot.expert];
    result[slot.expert] = static_cast<float>((slot.cotangent - mean) * (sigmoid(x) / sum) * sigmoid(-x));
  }
}

Fault routeGrad(const plr_routing &routing, int64_t tokens, const float *cotangent, const float *logits,
                const int32_t *ids, float *logitsGrad) {
  const int64_t experts = routing.experts, topK = routing.top_k;
  for (int64_t i = 0; i < tokens * topK; ++i)
    if (ids[i] < -1 || ids[i] >= experts)
      return "token " + std::to_string(i / topK) + " has expert " + std::to_string(ids[i]) + " in slot " +
             std::to_string(i % topK) + ", but there are " + std::to_string(experts) + " experts, and -1 for none";
  std::vector<double> space(experts);
  std::vector<Slot> slots;
  slots.reserve(topK);
  for (int64_t token = 0; token < tokens; ++token, cotangent += topK, ids += topK) {
    slots.clear();
    for (int64_t slot = 0; slot < topK; ++slot)
      if (ids[slot] >= 0)
        slots.push_back({ids[slot], static_cast<double>(cotangent[slot]) * routing.scale});
    std::fill(logitsGrad, logitsGrad + experts, 0.0f);
    if (isSoftmaxOverChosen(routing))
      softmaxOverChosenGrad(slots, logits, space, logitsGrad);
    else if (routing.score == PLR_SOFTMAX)
      softmaxGrad(slots, experts, logits, space, logitsGrad);
    else
      sigmoidGrad(slots, routing.normalize, logits, logitsGrad);
    logits += experts;
    logitsGrad += experts;
  }
  return Fault();
}

} // namespace plateau::rt::host
