//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "kernels_support.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

struct Options {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  float rate = 1e-3f;
};

/// The state of a group.
struct State {
  plr_type type;
  Tensor parameters, first, second, master;
  int32_t step = 0;

  State(plr_type type, const std::vector<double> &values)
      : type(type), parameters(tensorOf(values, type)), first(tensorOf(std::vector<double>(values.size()))),
        second(first), master(tensorOf(values)) {}

  void update(const Options &o, Tensor &gradients, plr_type gradientType, const std::vector<int64_t> &ranges,
              float factor = 1) {
    ++step;
    host::adamw(type, gradientType, static_cast<int64_t>(ranges.size() / 3), ranges.data(), o.beta1, o.beta2, o.epsilon,
                o.decay, parameters.data(), gradients.data(), first.floats(), second.floats(),
                type == PLR_BF16 ? master.floats() : nullptr, &factor, &o.rate, &step);
  }
  const Tensor &current() const { return type == PLR_BF16 ? master : parameters; }
  bool sameBits(const State &other) const {
    return parameters.sameBits(other.parameters) && first.sameBits(other.first) && second.sameBits(other.second) &&
           master.sameBits(other.master);
  }
};

/// One step of the equations for one element, in double.
void stepInDouble(const Options &o, int64_t t, double g, bool decays, double &p, double &m, double &v) {
  double rate = o.rate;
  if (decays)
    p *= 1 - rate * o.decay;
  m = o.beta1 * m + (1 - o.beta1) * g;
  v = o.beta2 * v + (1 - o.beta2) * g * g;
  p -= rate / (1 - std::pow(o.beta1, t)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(o.beta2, t)) + o.epsilon);
}

std::vector<double> evenly(int64_t count, double first, double last) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = count == 1 ? first : first + (last - first) * i / (count - 1);
  return values;
}

/// sqrt(Σ gradients²) over (offset, length) pairs.
float normOf(plr_type type, const std::vector<int64_t> &ranges, Tensor &gradients) {
  double squares = -1;
  const double *all[] = {&squares};
  float norm = -1;
  host::sumSquares(type, static_cast<int64_t>(ranges.size() / 2), ranges.data(), gradients.data(), &squares);
  host::gradNorm(1, all, &norm);
  return norm;
}

class Optimizer : public testing::TestWithParam<plr_type> {};

TEST_P(Optimizer, AgreesWithTheEquationsInAnyBuckets) {
  Options options;
  options.decay = 0.1;
  for (int64_t count : {1, 7, 22, 55, 64, 100003}) {
    Tensor gradients = tensorOf(evenly(count, -1, 2));
    State whole(GetParam(), evenly(count, 0.5, 1.5));
    std::vector<double> p = whole.current().values(), m(count), v(count);
    std::vector<State> pieces(3, whole);
    for (int t = 1; t <= 10; ++t) {
      whole.update(options, gradients, PLR_F32, {0, count, 1});
      const int64_t sizes[] = {1, 5, 4099};
      for (int b = 0; b < 3; ++b) {
        std::vector<int64_t> ranges;
        for (int64_t begin = 0; begin < count; begin += sizes[b])
          ranges.insert(ranges.end(), {begin, std::min(sizes[b], count - begin), 1});
        pieces[b].update(options, gradients, PLR_F32, ranges);
      }
      for (int64_t i = 0; i < count; ++i)
        stepInDouble(options, t, gradients[i], true, p[i], m[i], v[i]);
    }
    for (const State &piece : pieces)
      EXPECT_TRUE(piece.sameBits(whole)) << count;
    expectClose(PLR_F32, whole.current(), p, 1e-6, "parameters");
    expectClose(PLR_F32, whole.first, m, 1e-6, "first moment");
    expectClose(PLR_F32, whole.second, v, 1e-6, "second moment");
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(whole.parameters[i], roundTo(GetParam(), whole.current()[i]));
  }
}

TEST_P(Optimizer, VariantsAgreeBitForBit) {
  const host::AdamWNumbers numbers = {0.7f, 0.999f, 0.9f, 0.1f, 0.95f, 0.05f, 1e-2f, 0.22f, 1e-8f};
  for (int64_t count : {1, 3, 17, 100}) {
    std::vector<State> states;
    for (int index = 0; index < host::variantCount; ++index)
      if (const host::Variant *variant = host::getVariant(index)) {
        states.emplace_back(GetParam(), evenly(count, -1, 1));
        State &s = states.back();
        Tensor gradients = randomTensor(GetParam(), count, 5);
        for (int repeat = 0; repeat < 3; ++repeat)
          variant->adamw(GetParam(), GetParam(), count, numbers, s.parameters.data(), gradients.data(),
                         s.first.floats(), s.second.floats(), s.master.floats());
      }
    for (const State &state : states)
      EXPECT_TRUE(state.sameBits(states[0])) << count;
  }
}

TEST_P(Optimizer, SmallStepsAreNotLost) {
  Options options;
  options.rate = 1e-4f;
  State state(GetParam(), {1.0});
  Tensor gradients = tensorOf({1}, GetParam());
  for (int t = 0; t < 100; ++t)
    state.update(options, gradients, GetParam(), {0, 1, 1});
  // f32 numbers below 1 are 6e-8 apart, so each step of 1e-4 is 1.7e-8 off; bf16 ones are 4e-3 apart and would not
  // move.
  EXPECT_NEAR(state.current()[0], 0.99, 2e-6);
  EXPECT_EQ(state.parameters[0], roundTo(GetParam(), state.current()[0]));
}

TEST_P(Optimizer, ResumingEqualsNotStopping) {
  Options options;
  State state(GetParam(), {1.0});
  Tensor gradients = tensorOf({1}, GetParam());
  for (int t = 0; t < 10; ++t)
    state.update(options, gradients, GetParam(), {0, 1, 0});
  State resumed = state, restarted = state;
  restarted.step = 0;
  state.update(options, gradients, GetParam(), {0, 1, 0});
  resumed.update(options, gradients, GetParam(), {0, 1, 0});
  restarted.update(options, gradients, GetParam(), {0, 1, 0});
  EXPECT_NEAR(state.current()[0], 0.989000, 1e-6);
  EXPECT_NEAR(restarted.current()[0], 0.987926, 1e-6);
  EXPECT_TRUE(resumed.sameBits(state));
}

TEST_P(Optimizer, TwoParametersOneCounter) {
  Options options;
  State state(GetParam(), {1, 1, 1});
  Tensor gradients = tensorOf({1, 1, 1}, GetParam());
  for (int t = 0; t < 2; ++t)
    state.update(options, gradients, GetParam(), {0, 1, 0, 1, 2, 0});
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(state.current()[i], 1 - 2e-3, 1e-6);
}

TEST_P(Optimizer, DecaysOnlyWhereAsked) {
  Options options;
  options.decay = 0.5;
  options.rate = 0.1f;
  State state(GetParam(), {1, 1});
  Tensor gradients = tensorOf({0, 0}, GetParam());
  state.update(options, gradients, GetParam(), {0, 1, 1, 1, 1, 0});
  EXPECT_NEAR(state.current()[0], 0.95, 1e-7);
  EXPECT_EQ(state.current()[1], 1);
}

TEST_P(Optimizer, PaddingIsLeftAlone) {
  State state(GetParam(), {1, NAN, NAN, 2}), before = state;
  Tensor gradients = tensorOf({1, NAN, NAN, 1}, GetParam());
  state.update(Options(), gradients, GetParam(), {0, 1, 1, 3, 1, 1});
  EXPECT_TRUE(state.parameters.slice(1, 2).sameBits(before.parameters.slice(1, 2)));
  EXPECT_TRUE(state.first.slice(1, 2).sameBits(before.first.slice(1, 2)));
  EXPECT_LT(state.current()[3], 2);
  EXPECT_NEAR(normOf(GetParam(), {0, 1, 3, 1}, gradients), std::sqrt(2.0), 1e-6);
}

// One infinite gradient among 1000: the norm is not finite, so nothing of the state changes.
TEST_P(Optimizer, InfinityLeavesAllAsItWas) {
  for (double bad : {infinity, -infinity, double(NAN)}) {
    State state(GetParam(), evenly(1000, -1, 1)), before = state;
    Tensor gradients = tensorOf(evenly(1000, -1, 1), GetParam());
    gradients.set(617, bad);
    float norm = normOf(GetParam(), {0, 1000}, gradients), factor;
    EXPECT_FALSE(std::isfinite(norm));
    host::clipFactor(1, &norm, &factor);
    EXPECT_TRUE(std::isnan(factor));
    state.update(Options(), gradients, GetParam(), {0, 1000, 1}, factor);
    EXPECT_TRUE(state.sameBits(before));
  }
}

TEST_P(Optimizer, NormZeroChangesNothing) {
  State state(GetParam(), {1, -2});
  Tensor gradients = tensorOf({0, 0}, GetParam());
  float norm = normOf(GetParam(), {0, 2}, gradients), factor;
  EXPECT_EQ(norm, 0);
  host::clipFactor(1, &norm, &factor);
  EXPECT_EQ(factor, 1);
  state.update(Options(), gradients, GetParam(), {0, 2, 0}, factor);
  EXPECT_EQ(state.current()[0], 1);
  EXPECT_EQ(state.current()[1], -2);
}

TEST_P(Optimizer, Norm) {
  for (int64_t count : {0, 1, 7, 22, 55, 64, 4096, 4097, 100003}) {
    Tensor gradients = randomTensor(GetParam(), count + 3, 1);
    double squares = 0;
    for (int64_t i = 0; i < count; ++i)
      squares += gradients[i + 3] * gradients[i + 3];
    float norm = normOf(GetParam(), {3, count / 2, 3 + count / 2, count - count / 2}, gradients);
    EXPECT_NEAR(norm, std::sqrt(squares), 1e-7 * std::sqrt(squares)) << count;
  }
}

// Squares beyond the range of f32, and below it.
TEST_P(Optimizer, NormOfExtremeNumbers) {
  for (double size : {1e30, 1e-30}) {
    Tensor gradients = tensorOf({size, -size, size, size}, GetParam());
    EXPECT_NEAR(normOf(GetParam(), {0, 4}, gradients) / gradients[0], 2, 1e-6);
  }
}

// Ranges are added in their order: 2^-54 is lost beside 1, but not four of them.
TEST_P(Optimizer, SumsSquaresInOrder) {
  Tensor gradients = tensorOf({1, 0x1p-27, 0x1p-27, 0x1p-27, 0x1p-27}, GetParam());
  const int64_t largeFirst[] = {0, 1, 1, 1, 2, 1, 3, 1, 4, 1}, largeLast[] = {1, 1, 2, 1, 3, 1, 4, 1, 0, 1};
  double sum = -1;
  host::sumSquares(GetParam(), 5, largeFirst, gradients.data(), &sum);
  EXPECT_EQ(sum, 1);
  host::sumSquares(GetParam(), 5, largeLast, gradients.data(), &sum);
  EXPECT_EQ(sum, 1 + 0x1p-52);
  host::sumSquares(GetParam(), 0, nullptr, nullptr, &sum);
  EXPECT_EQ(sum, 0);
}

TEST_P(Optimizer, NormOfSeveralGroups) {
  const double nine = 9, sixteen = 16, huge = 1e300;
  const double *parts[] = {&nine, &sixteen};
  float norm = -1;
  host::gradNorm(2, parts, &norm);
  EXPECT_EQ(norm, 5);
  host::gradNorm(0, nullptr, &norm);
  EXPECT_EQ(norm, 0);
  // Beyond the numbers of f32.
  const double *large[] = {&huge};
  host::gradNorm(1, large, &norm);
  EXPECT_TRUE(std::isinf(norm));
}

INSTANTIATE_TEST_SUITE_P(Types, Optimizer, testing::Values(PLR_F32, PLR_BF16),
                         [](const auto &info) { return nameOf(info.param); });

TEST(ClipFactor, AsDefined) {
  auto factor = [](float maxNorm, float norm) {
    float result = -7;
    host::clipFactor(maxNorm, &norm, &result);
    return result;
  };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(factor(1, 4), 0.25f);
  EXPECT_EQ(factor(1, 0.5f), 1);
  EXPECT_EQ(factor(1, 1), 1);
  EXPECT_EQ(factor(1, 0), 1);
  EXPECT_EQ(factor(inf, 1e30f), 1);
  EXPECT_EQ(factor(inf, 0), 1);
  EXPECT_EQ(factor(3, std::numeric_limits<float>::denorm_min()), 1);
  EXPECT_TRUE(std::isnan(factor(1, inf)));
  EXPECT_TRUE(std::isnan(factor(1, NAN)));
  EXPECT_TRUE(std::isnan(factor(inf, inf)));
  EXPECT_TRUE(std::isnan(factor(inf, NAN)));
}

} // namespace
