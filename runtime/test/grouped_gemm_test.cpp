//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/context.h"
#include "held_plan.h"
#include "kernels_support.h"
#include "rank.h"
#include <numeric>

using namespace plateau::rt::test;

namespace {

constexpr plr_tag expertsTag = {"moe.grouped_matmul w13", 2, PLR_EXPERTS, PLR_FORWARD};

using Counts = std::vector<int64_t>;

int64_t sumOf(const Counts &counts) { return std::accumulate(counts.begin(), counts.end(), int64_t(0)); }

plr_config makeConfig(plr_gemm_kind kind) {
  plr_config config = plateau::rt::test::makeConfig();
  config.gemm = kind;
  config.poison = 1;
  config.trace = 1;
  return config;
}

/// Of elements: a tensor's part.
struct Range {
  int64_t begin, count;
};

void fillNan(Tensor &tensor, Range range) {
  for (int64_t i = range.begin; i < range.begin + range.count; ++i)
    tensor.set(i, NAN);
}

bool allNan(const Tensor &tensor, Range range) {
  for (int64_t i = range.begin; i < range.begin + range.count; ++i)
    if (!std::isnan(tensor[i]))
      return false;
  return true;
}

/// Rows past the last expert's, which no product may read or write.
constexpr int64_t rowsBehind = 3;

/// Rows of a step times the weights of their experts. The rows behind, and the weights of experts without rows, are
/// NaN.
struct Forward {
  Counts counts;
  plr_type type;
  bool transposed;
  int64_t n, k, rows;
  Tensor input, weights, result;

  Forward(const Counts &counts, plr_type type, bool transposed, int64_t n, int64_t k)
      : counts(counts), type(type), transposed(transposed), n(n), k(k), rows(sumOf(counts)),
        input(randomTensor(type, (rows + rowsBehind) * k, 1)),
        weights(randomTensor(type, static_cast<int64_t>(counts.size()) * n * k, 2)),
        result(type, (rows + rowsBehind) * n) {
    fillNan(input, {rows * k, rowsBehind * k});
    for (size_t e = 0; e < counts.size(); ++e)
      if (counts[e] == 0)
        fillNan(weights, {static_cast<int64_t>(e) * n * k, n * k});
  }
  plr_status run(Rank &rank, const plr_plan *plan) {
    return plr_grouped_gemm(rank.lane(), &expertsTag, plan, 0, transposed, type, n, k, input.data(), weights.data(),
                            nullptr, result.data(), nullptr, PLR_FROM_POOL);
  }
  void runAndWait(Rank &rank) {
    const HeldPlan plan(rank, counts);
    run(rank, plan);
    ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  }
  /// An element is a sum of k rounded products, and is rounded to the type.
  void expectRight() const {
    EXPECT_TRUE(allNan(result, {rows * n, rowsBehind * n}));
    EXPECT_TRUE(result.endIsIntact());
    int64_t row = 0;
    for (size_t e = 0; e < counts.size(); ++e)
      for (int64_t i = 0; i < counts[e]; ++i, ++row)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0, size = 0;
          for (int64_t p = 0; p < k; ++p) {
            double product =
                input[row * k + p] * weights[static_cast<int64_t>(e) * n * k + (transposed ? j * k + p : p * n + j)];
            sum += product;
            size += std::abs(product);
          }
          double bound = std::ldexp(static_cast<double>(k + 2), -24) * size +
                         (type == PLR_BF16 ? std::ldexp(std::abs(sum), -8) : 0);
          ASSERT_NEAR(result[row * n + j], sum, bound) << "row " << row << " column " << j;
        }
  }
};

/// The gradient of the weights of each expert; rows behind are NaN, as is the result of experts without rows before.
struct Backward {
  Counts counts;
  plr_type type, resultType;
  bool accumulate;
  int64_t m, n, rows;
  Tensor a, b, before, result;

  Backward(const Counts &counts, plr_type type, plr_type resultType, bool accumulate, int64_t m, int64_t n)
      : counts(counts), type(type), resultType(resultType), accumulate(accumulate), m(m), n(n), rows(sumOf(counts)),
        a(randomTensor(type, (rows + rowsBehind) * m, 3)), b(randomTensor(type, (rows + rowsBehind) * n, 4)),
        before(randomTensor(resultType, static_cast<int64_t>(counts.size()) * m * n, 5)), result(before) {
    fillNan(a, {rows * m, rowsBehind * m});
    fillNan(b, {rows * n, rowsBehind * n});
    if (!accumulate)
      fillNan(before, {0, before.size()});
    result = before;
  }
  plr_status run(Rank &rank, const plr_plan *plan) {
    return plr_grouped_gemm_grad(rank.lane(), &expertsTag, plan, 0, accumulate, type, resultType, m, n, a.data(),
                                 b.data(), result.data(), nullptr, nullptr, PLR_FROM_POOL);
  }
  void runAndWait(Rank &rank) {
    const HeldPlan plan(rank, counts);
    run(rank, plan);
    ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  }
  void expectRight() const {
    EXPECT_TRUE(result.endIsIntact());
    int64_t first = 0;
    for (size_t e = 0; e < counts.size(); first += counts[e++]) {
      int64_t origin = static_cast<int64_t>(e) * m * n;
      if (counts[e] == 0) {
        Tensor zeros(resultType, m * n);
        for (int64_t i = 0; i < m * n; ++i)
          zeros.set(i, 0);
        EXPECT_TRUE(result.slice(origin, m * n).sameBits(accumulate ? before.slice(origin, m * n) : zeros)) << e;
        continue;
      }
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = accumulate ? before[origin + i * n + j] : 0, size = std::abs(sum);
          for (int64_t row = first; row < first + counts[e]; ++row) {
            sum += a[row * m + i] * b[row * n + j];
            size += std::abs(a[row * m + i] * b[row * n + j]);
          }
          double bound = std::ldexp(static_cast<double>(counts[e] + 3), -24) * size +
                         (resultType == PLR_BF16 ? std::ldexp(std::abs(sum), -8) : 0);
          ASSERT_NEAR(result[origin + i * n + j], sum, bound) << "expert " << e << " at " << i << ", " << j;
        }
    }
  }
};

const std::vector<Counts> manyCounts = {{1},       {0},         {3, 0, 5, 2, 0, 1},  {0, 0, 0},       {64, 65},
                                        {79, 80},  {255, 0, 1}, {256, 257},          {272, 16, 0},    {0, 513, 15},
                                        {100, 31}, {600},       {17, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 63}};

class GroupedGemm : public testing::TestWithParam<plr_gemm_kind> {};

} // namespace

TEST_P(GroupedGemm, AgreesWithFloat64) {
  Rank rank(makeConfig(GetParam()));
  for (const Counts &counts : manyCounts)
    for (plr_type type : {PLR_F32, PLR_BF16})
      for (bool transposed : {false, true})
        for (auto [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {7, 5}, {16, 32}, {33, 20}}) {
          SCOPED_TRACE(testing::Message() << nameOf(type) << " transposed " << transposed << " n " << n << " k " << k
                                          << " counts " << testing::PrintToString(counts));
          Forward forward(counts, type, transposed, n, k);
          forward.runAndWait(rank);
          forward.expectRight();
        }
}

TEST_P(GroupedGemm, GradientAgreesWithFloat64) {
  Rank rank(makeConfig(GetParam()));
  const plr_type types[][2] = {{PLR_F32, PLR_F32}, {PLR_BF16, PLR_F32}, {PLR_BF16, PLR_BF16}};
  for (const Counts &counts : manyCounts)
    for (auto [type, resultType] : types)
      for (bool accumulate : {false, true})
        for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {7, 5}, {16, 32}, {33, 20}}) {
          SCOPED_TRACE(testing::Message()
                       << nameOf(type) << " to " << nameOf(resultType) << " accumulate " << accumulate << " m " << m
                       << " n " << n << " counts " << testing::PrintToString(counts));
          Backward backward(counts, type, resultType, accumulate, m, n);
          backward.runAndWait(rank);
          backward.expectRight();
        }
}

// The memory of one round, poisoned, is that of the next.
TEST_P(GroupedGemm, RoundsOnPoisonedMemory) {
  Rank rank(makeConfig(GetParam()));
  const Counts counts = {3, 0, 5, 2, 0, 1};
  for (int round = 0; round < 3; ++round)
    for (plr_type type : {PLR_F32, PLR_BF16}) {
      Forward forward(counts, type, round % 2, 24, 40);
      Backward backward(counts, type, type, false, 24, 40);
      auto allocate = [&](const Tensor &tensor) {
        void *memory = plr_allocate(rank, PLR_DEVICE, tensor.size() * 4, &expertsTag);
        EXPECT_NE(memory, nullptr);
        return memory;
      };
      const HeldPlan plan(rank, counts);
      // Results without the rows behind: what follows them is another buffer.
      void *result = allocate(forward.result), *behind = allocate(forward.result), *grad = allocate(backward.result);
      int64_t size = type == PLR_BF16 ? 2 : 4;
      plr_grouped_gemm(rank.lane(), &expertsTag, plan, 0, forward.transposed, type, 24, 40, forward.input.data(),
                       forward.weights.data(), nullptr, result, nullptr, PLR_FROM_POOL);
      plr_grouped_gemm_grad(rank.lane(), &expertsTag, plan, 0, 0, type, type, 24, 40, backward.a.data(),
                            backward.b.data(), grad, nullptr, nullptr, PLR_FROM_POOL);
      plr_copy(rank.lane(), &expertsTag, forward.result.data(), result, forward.result.size() * size);
      plr_copy(rank.lane(), &expertsTag, backward.result.data(), grad, backward.result.size() * size);
      for (void *memory : {result, behind, grad})
        plr_release(rank, PLR_DEVICE, memory);
      ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
      forward.expectRight();
      backward.expectRight();
    }
}

TEST_P(GroupedGemm, EmptySizesAreLegal) {
  Rank rank(makeConfig(GetParam()));
  const Counts counts = {2, 0, 3};
  for (plr_type type : {PLR_F32, PLR_BF16}) {
    for (auto [n, k] : {std::pair<int64_t, int64_t>{0, 4}, {4, 0}, {0, 0}}) {
      Forward forward(counts, type, false, n, k);
      forward.runAndWait(rank);
      forward.expectRight(); // With k = 0, sums of nothing: zeros.
      Backward backward(counts, type, PLR_F32, false, n, k);
      backward.runAndWait(rank);
    }
  }
  // With nothing to read or write, addresses may be null. A rank may have no rows at all.
  const HeldPlan none(rank, {0, 0});
  EXPECT_EQ(plr_grouped_gemm(rank.lane(), &expertsTag, none, 0, 0, PLR_F32, 3, 4, nullptr, rank, nullptr, nullptr,
                             nullptr, PLR_FROM_POOL),
            PLR_OK);
  const HeldPlan noExperts(rank, {});
  EXPECT_EQ(plr_grouped_gemm_grad(rank.lane(), &expertsTag, noExperts, 0, 0, PLR_F32, PLR_F32, 3, 4, nullptr, nullptr,
                                  nullptr, nullptr, nullptr, PLR_FROM_POOL),
            PLR_OK);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
}

// A row's bits hang neither on how many rows its expert has nor on where it lies among them; nor do they differ from
// those of a plain product.
TEST_P(GroupedGemm, RowsKeepTheirBits) {
  Rank rank(makeConfig(GetParam()));
  bool reference = GetParam() == PLR_GEMM_REFERENCE;
  constexpr int64_t rows = 600;
  std::vector<std::pair<int64_t, int64_t>> shapes = {{100, 36}};
  if (!reference)
    shapes.insert(shapes.end(), {{512, 256}, {256, 256}, {48, 208}});
  for (plr_type type : {PLR_F32, PLR_BF16})
    for (bool transposed : {false, true})
      for (auto [n, k] : shapes) {
        Forward whole({rows}, type, transposed, n, k);
        whole.runAndWait(rank);
        Tensor plain(type, rows * n);
        plr_gemm(rank.lane(), &expertsTag, 0, transposed, 0, type, type, rows, n, k, whole.input.data(),
                 whole.weights.data(), plain.data(), nullptr, PLR_FROM_POOL);
        ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
        EXPECT_TRUE(plain.sameBits(whole.result.slice(0, rows * n)));
        for (const Counts &counts : {Counts{1, 2, 3, 4, 5, 6, 7, 8, 9, 555}, {33, 0, 567}, {64, 65, 79, 80, 311, 1}}) {
          Forward parts(counts, type, transposed, n, k);
          parts.input = whole.input;
          for (size_t e = 0; e < counts.size(); ++e) // Every expert has the same weights.
            std::memcpy(static_cast<char *>(parts.weights.data()) + e * n * k * (type == PLR_BF16 ? 2 : 4),
                        whole.weights.data(), n * k * (type == PLR_BF16 ? 2 : 4));
          parts.runAndWait(rank);
          EXPECT_TRUE(parts.result.sameBits(whole.result))
              << nameOf(type) << transposed << " n " << n << " k " << k << " " << testing::PrintToString(counts);
        }
      }
}

TEST_P(GroupedGemm, TwoRunsGiveTheSameBits) {
  for (plr_type type : {PLR_F32, PLR_BF16}) {
    Backward first({300, 0, 77}, type, PLR_F32, false, 48, 32), second = first;
    Rank rank(makeConfig(GetParam())), other(makeConfig(GetParam()));
    first.runAndWait(rank);
    second.runAndWait(other);
    EXPECT_TRUE(first.result.sameBits(second.result));
  }
}

TEST_P(GroupedGemm, CountsItsOperations) {
  Rank rank(makeConfig(GetParam()));
  Forward({3, 0, 5}, PLR_F32, false, 7, 11).runAndWait(rank);
  Backward({3, 0, 5}, PLR_F32, PLR_F32, true, 7, 11).runAndWait(rank);
  Forward({0}, PLR_F32, false, 7, 11).runAndWait(rank);
  plr_span spans[3];
  ASSERT_EQ(plr_trace(rank, 0, spans, 3), 3);
  EXPECT_STREQ(spans[0].call, "plr_grouped_gemm");
  EXPECT_EQ(spans[0].flops, 2 * 8 * 7 * 11);
  EXPECT_STREQ(spans[1].call, "plr_grouped_gemm_grad");
  EXPECT_EQ(spans[1].flops, 2 * 8 * 7 * 11);
  EXPECT_EQ(spans[2].flops, 0);
}

// A plan is released in the order of calls, before its products have run.
TEST_P(GroupedGemm, ThePlanMayBeGone) {
  plr_config config = makeConfig(GetParam());
  config.poison = 0; // Poisoning waits for the lanes.
  Rank rank(config);
  Gate gate;
  Forward forward({3, 0, 5}, PLR_F32, false, 7, 11);
  Backward backward({3, 0, 5}, PLR_F32, PLR_F32, false, 7, 11);
  gate.close(rank.lane());
  {
    const HeldPlan plan(rank, forward.counts);
    forward.run(rank, plan);
    backward.run(rank, plan);
    std::fill(plan->slotOffsets, plan->slotOffsets + forward.counts.size() + 1, 0);
  }
  gate.release();
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  forward.expectRight();
  backward.expectRight();
}

INSTANTIATE_TEST_SUITE_P(Kinds, GroupedGemm, testing::Values(PLR_GEMM_ONEDNN, PLR_GEMM_REFERENCE),
                         [](const testing::TestParamInfo<plr_gemm_kind> &kind) {
                           return kind.param == PLR_GEMM_ONEDNN ? "OneDnn" : "Reference";
                         });

// Single products and sums, rounded, rows ascending: what the reference promises.
TEST(GroupedGemmReference, SumsRowsInAscendingOrder) {
  Rank rank(makeConfig(PLR_GEMM_REFERENCE));
  for (bool accumulate : {false, true}) {
    Backward c({300, 0, 70}, PLR_F32, PLR_F32, accumulate, 5, 70);
    c.runAndWait(rank);
    int64_t first = 0;
    for (int64_t e = 0; e < 3; first += c.counts[e++])
      for (int64_t i = 0; i < c.m * c.n && c.counts[e] > 0; ++i) {
        float sum = 0;
        for (int64_t row = first; row < first + c.counts[e]; ++row) {
          // A product of two f32 numbers is exact in float64, and so is rounded once here, as in f32.
          volatile float product = static_cast<float>(c.a[row * c.m + i / c.n] * c.b[row * c.n + i % c.n]);
          sum = sum + product;
        }
        if (accumulate)
          sum = static_cast<float>(c.before[e * c.m * c.n + i]) + sum;
        ASSERT_EQ(c.result[e * c.m * c.n + i], sum);
      }
  }
}

// Other row counts at every step: the library's products are made once and for all.
TEST(GroupedGemmCache, DoesNotGrowWithTheRowCounts) {
  Rank rank(makeConfig(PLR_GEMM_ONEDNN));
  plr_context *context = rank;
  for (int64_t rows = 1; rows <= 1200; ++rows)
    Forward({rows}, PLR_F32, false, 8, 8).runAndWait(rank);
  size_t made = context->gemms->getSize();
  EXPECT_LE(made, 80u);
  for (int64_t rows = 1201; rows <= 2000; rows += 7)
    Forward({rows, 3}, PLR_F32, false, 8, 8).runAndWait(rank);
  EXPECT_EQ(context->gemms->getSize(), made);
}

TEST(GroupedGemmScratch, CountsAsWorkspaceAndIsReleased) {
  Rank rank(makeConfig(PLR_GEMM_ONEDNN));
  Backward({100, 0, 300}, PLR_BF16, PLR_BF16, true, 64, 64).runAndWait(rank);
  plr_space_report report = rank.report();
  EXPECT_EQ(report.live_bytes, 0);
  EXPECT_GE(report.peak_bytes, 64 * 64 * 4); // Sums of one expert.
  EXPECT_EQ(report.peak_bytes, report.component_peak_bytes[PLR_WORKSPACE]);
}

TEST(GroupedGemmScratch, ThatDoesNotFitIsAShortage) {
  plr_config config = makeConfig(PLR_GEMM_ONEDNN);
  config.device_bytes = 64;
  Rank rank(config);
  Backward backward({100, 0, 300}, PLR_BF16, PLR_BF16, true, 64, 64);
  const HeldPlan plan(rank, backward.counts);
  EXPECT_EQ(backward.run(rank, plan), PLR_OUT_OF_MEMORY);
  EXPECT_NE(rank.message().find("plr_grouped_gemm_grad: out of device memory for moe.grouped_matmul w13 (layer 2, "
                                "workspace, forward)"),
            std::string::npos)
      << rank.message();
}

/// A fresh rank, one call, and what its message says.
template <typename Call>
static void expectRefused(Call call, const char *text) {
  Rank rank;
  const HeldPlan plan(rank, {1, 1});
  EXPECT_EQ(call(rank.lane(), plan), PLR_INVALID_ARGUMENT) << text;
  EXPECT_NE(rank.message().find(text), std::string::npos) << rank.message();
}

TEST(GroupedGemmCalls, MisuseIsNamed) {
  static float x[16];
  auto forward = [](plr_lane *lane, const plr_plan *plan, int transpose, plr_type type, int64_t n, int64_t k, void *w) {
    return plr_grouped_gemm(lane, &expertsTag, plan, 0, transpose, type, n, k, x, w, nullptr, x, nullptr,
                            PLR_FROM_POOL);
  };
  auto backward = [](plr_lane *lane, const plr_plan *plan, int accumulate, plr_type type, plr_type result, int64_t m) {
    return plr_grouped_gemm_grad(lane, &expertsTag, plan, 0, accumulate, type, result, m, 2, x, x, x, nullptr, nullptr,
                                 PLR_FROM_POOL);
  };
  using Lane = plr_lane *;
  using Plan = const plr_plan *;
  expectRefused([&](Lane l, Plan) { return forward(l, nullptr, 0, 0, 2, 2, x); }, "the plan is null");
  expectRefused([&](Lane l, Plan p) { return forward(l, p, 2, 0, 2, 2, x); }, "transpose_weights is 2");
  expectRefused([&](Lane l, Plan p) { return forward(l, p, 0, PLR_F64, 2, 2, x); }, "type is 3");
  expectRefused([&](Lane l, Plan p) { return forward(l, p, 0, 0, -2, 2, x); }, "n is -2");
  expectRefused([&](Lane l, Plan p) { return forward(l, p, 0, 0, 2, -3, x); }, "k is -3");
  expectRefused([&](Lane l, Plan p) { return forward(l, p, 0, 0, 2, 2, nullptr); }, "weights is null");
  expectRefused([&](Lane l, Plan p) { return forward(l, p, 0, 0, int64_t(1) << 40, int64_t(1) << 40, x); },
                "weights has more bytes than 64 bits can count: 2 x 1099511627776 x 1099511627776 elements");
  expectRefused([&](Lane l, Plan) { return backward(l, nullptr, 0, 0, 0, 2); }, "the plan is null");
  expectRefused([&](Lane l, Plan p) { return backward(l, p, 3, 0, 0, 2); }, "accumulate is 3");
  expectRefused([&](Lane l, Plan p) { return backward(l, p, 0, 0, PLR_BF16, 2); }, "f32 operands give an f32 result");
  expectRefused([&](Lane l, Plan p) { return backward(l, p, 0, 0, 0, -2); }, "m is -2");
  Rank rank, other;
  const HeldPlan plan(other, {1}), many(rank, Counts(5000, 0));
  expectRefused([&](Lane l, Plan) { return forward(l, plan, 0, 0, 2, 2, x); }, "the plan is another context's");
  EXPECT_EQ(forward(rank.lane(), many, 0, 0, 2, 2, x), PLR_INVALID_ARGUMENT);
  EXPECT_NE(rank.message().find("the rank has 5000 experts, but a grouped product takes at most 4095"),
            std::string::npos)
      << rank.message();
}

// Where no plan could be made the error stands, and the calls on it leave it so.
TEST(GroupedGemmCalls, ANullPlanKeepsTheFirstError) {
  Rank rank;
  float x = 1;
  plr_zero(rank.lane(), &expertsTag, nullptr, 4);
  std::string message = rank.message();
  EXPECT_EQ(plr_grouped_gemm(rank.lane(), &expertsTag, nullptr, 0, 0, PLR_F32, 1, 1, &x, &x, nullptr, &x, nullptr,
                             PLR_FROM_POOL),
            PLR_INVALID_ARGUMENT);
  EXPECT_EQ(plr_grouped_gemm_grad(rank.lane(), &expertsTag, nullptr, 0, 0, PLR_F32, PLR_F32, 1, 1, &x, &x, &x, nullptr,
                                  nullptr, PLR_FROM_POOL),
            PLR_INVALID_ARGUMENT);
  EXPECT_EQ(rank.message(), message);
}
