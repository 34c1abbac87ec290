//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Scratch memory of the caller: as much as the queries say is enough, less is refused, and the pool is left alone.
#include "held_plan.h"
#include "kernels_support.h"
#include "plateau/runtime_footprint.h"
#include "rank.h"

using namespace plateau::rt::test;

namespace {

constexpr plr_tag expertsTag = {"moe.grouped_matmul w13", 2, PLR_EXPERTS, PLR_FORWARD};

using Counts = std::vector<int64_t>;

/// Memory between two lines that nobody may write.
class Workspace {
public:
  explicit Workspace(int64_t bytes)
      : bytes(bytes), memory(static_cast<size_t>(plr_footprint_lines(bytes)) + 3 * line, 0xcd),
        begin(memory.data() + 2 * line - reinterpret_cast<uintptr_t>(memory.data()) % line) {}
  void *data() { return begin; }
  bool isIntactAround() const {
    auto isCanary = [](unsigned char byte) { return byte == 0xcd; };
    return std::all_of(memory.data(), static_cast<const unsigned char *>(begin), isCanary) &&
           std::all_of(static_cast<const unsigned char *>(begin) + bytes, memory.data() + memory.size(), isCanary);
  }

private:
  static constexpr size_t line = 64;
  int64_t bytes;
  std::vector<unsigned char> memory;
  unsigned char *begin;
};

/// A context whose pool is empty: what succeeds on it took nothing.
plr_config makePoorConfig(plr_gemm_kind kind) {
  plr_config config = makeConfig();
  config.gemm = kind;
  config.device_bytes = 0;
  return config;
}

struct Product {
  int transposeA, transposeB, accumulate;
  plr_type type, resultType;
  int64_t m, n, k;

  int64_t ask(plr_gemm_kind kind = PLR_GEMM_ONEDNN) const {
    return plr_gemm_workspace_bytes(kind, transposeA, transposeB, accumulate, type, resultType, m, n, k);
  }
  Tensor run(Rank &rank, void *workspace, int64_t bytes) const {
    Tensor a = randomTensor(type, m * k, 1), b = randomTensor(type, k * n, 2), c = randomTensor(resultType, m * n, 3);
    plr_gemm(rank.lane(), &attentionTag, transposeA, transposeB, accumulate, type, resultType, m, n, k, a.data(),
             b.data(), c.data(), workspace, bytes);
    plr_synchronize(rank);
    return c;
  }
};

std::vector<Product> makeProducts() {
  std::vector<Product> products;
  const plr_type types[][2] = {{PLR_F32, PLR_F32}, {PLR_BF16, PLR_F32}, {PLR_BF16, PLR_BF16}};
  for (auto [type, resultType] : types)
    for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {33, 65, 7}, {64, 64, 64}, {128, 96, 300}, {5, 0, 7}})
      for (int flags = 0; flags < 8; ++flags)
        products.push_back({flags & 1, flags >> 1 & 1, flags >> 2, type, resultType, m, n, k});
  return products;
}

/// The calls of a grouped product and of the gradient of its weights, over rows that all experts share.
struct Grouped {
  bool isGradient;
  int flag; ///< transpose_weights, or accumulate.
  plr_type type, resultType;
  int64_t left, right;

  int64_t ask(int64_t maxRows, plr_gemm_kind kind = PLR_GEMM_ONEDNN) const {
    return isGradient ? plr_grouped_gemm_grad_workspace_bytes(kind, flag, type, resultType, maxRows, left, right)
                      : plr_grouped_gemm_workspace_bytes(kind, flag, type, maxRows, left, right);
  }
  Tensor run(Rank &rank, const Counts &counts, void *workspace, int64_t bytes, bool isRandom = true) const {
    auto make = [&](plr_type type, int64_t count, uint32_t seed) {
      return isRandom ? randomTensor(type, count, seed) : Tensor(type, count);
    };
    const int64_t experts = static_cast<int64_t>(counts.size());
    int64_t rows = 0;
    for (int64_t count : counts)
      rows += count;
    const HeldPlan plan(rank, counts);
    Tensor result = make(resultType, isGradient ? experts * left * right : rows * left, 3);
    if (isGradient) {
      Tensor a = make(type, rows * left, 1), b = make(type, rows * right, 2);
      plr_grouped_gemm_grad(rank.lane(), &expertsTag, plan, 0, flag, type, resultType, left, right, a.data(), b.data(),
                            result.data(), nullptr, workspace, bytes);
      plr_synchronize(rank);
    } else {
      Tensor input = make(type, rows * right, 1), weights = make(type, experts * left * right, 2);
      plr_grouped_gemm(rank.lane(), &expertsTag, plan, 0, flag, type, left, right, input.data(), weights.data(),
                       nullptr, result.data(), workspace, bytes);
      plr_synchronize(rank);
    }
    return result;
  }
};

std::vector<Grouped> makeGrouped() {
  std::vector<Grouped> calls;
  for (int flag : {0, 1})
    for (auto [left, right] : {std::pair<int64_t, int64_t>{24, 40}, {64, 64}}) {
      for (plr_type type : {PLR_F32, PLR_BF16})
        calls.push_back({false, flag, type, type, left, right});
      calls.push_back({true, flag, PLR_F32, PLR_F32, left, right});
      calls.push_back({true, flag, PLR_BF16, PLR_F32, left, right});
      calls.push_back({true, flag, PLR_BF16, PLR_BF16, left, right});
    }
  return calls;
}

class CallerWorkspace : public testing::TestWithParam<plr_gemm_kind> {};

} // namespace

TEST_P(CallerWorkspace, GivesAProductTheBitsOfThePool) {
  Rank rich([] {
    plr_config config = makeConfig();
    config.gemm = GetParam();
    return config;
  }());
  for (const Product &product : makeProducts()) {
    const int64_t needed = product.ask(GetParam());
    ASSERT_GE(needed, 0);
    plr_reset_peak(rich);
    Tensor expected = product.run(rich, nullptr, PLR_FROM_POOL);
    EXPECT_EQ(rich.report().peak_bytes, plr_footprint_lines(needed));
    Rank poor(makePoorConfig(GetParam()));
    Workspace workspace(needed);
    EXPECT_TRUE(product.run(poor, workspace.data(), needed).sameBits(expected));
    EXPECT_EQ(plr_context_error(poor, nullptr), PLR_OK) << poor.message();
    EXPECT_TRUE(workspace.isIntactAround());
    EXPECT_EQ(poor.report().allocations, 0);
  }
}

TEST_P(CallerWorkspace, GivesGroupedProductsTheBitsOfThePool) {
  plr_config config = makeConfig();
  config.gemm = GetParam();
  Rank rich(config), poor(makePoorConfig(GetParam()));
  for (const Grouped &call : makeGrouped())
    for (const Counts &counts : {Counts{3, 0, 5, 2}, {0, 0}, {64, 65, 79}, {256, 0, 272}, {513, 17}}) {
      int64_t rows = 0;
      for (int64_t count : counts)
        rows += count;
      const int64_t most = call.ask(rows, GetParam());
      plr_reset_peak(rich);
      Tensor expected = call.run(rich, counts, nullptr, PLR_FROM_POOL);
      EXPECT_LE(rich.report().peak_bytes, plr_footprint_lines(most));
      Workspace workspace(most);
      EXPECT_TRUE(call.run(poor, counts, workspace.data(), most).sameBits(expected));
      ASSERT_EQ(plr_context_error(poor, nullptr), PLR_OK) << poor.message();
      EXPECT_TRUE(workspace.isIntactAround());
    }
  EXPECT_EQ(poor.report().allocations, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CallerWorkspace, testing::Values(PLR_GEMM_ONEDNN, PLR_GEMM_REFERENCE),
                         [](const testing::TestParamInfo<plr_gemm_kind> &kind) {
                           return kind.param == PLR_GEMM_ONEDNN ? "OneDnn" : "Reference";
                         });

// The answer is what some number of rows needs, and no number needs more. One expert has each number in turn, which is
// all that counts: an expert's pieces are its own.
TEST(WorkspaceQuery, IsTheMostOverAllNumbersOfRows) {
  for (const Grouped &call : makeGrouped()) {
    Rank rank;
    int64_t most = 0, rows = 0;
    for (int64_t maxRows : {0, 1, 15, 64, 65, 80, 255, 300, 600}) {
      for (; rows <= maxRows; ++rows) {
        plr_reset_peak(rank);
        call.run(rank, {rows}, nullptr, PLR_FROM_POOL, /*isRandom=*/false);
        most = std::max(most, rank.report().peak_bytes);
      }
      EXPECT_EQ(plr_footprint_lines(call.ask(maxRows)), most) << maxRows << " gradient " << call.isGradient;
    }
  }
}

// One row or one column lies in memory as its transpose does. The library takes the two for one product, and answers
// for both with what the one that was made first needs.
TEST(WorkspaceQuery, DoesNotDependOnWhatWasMadeBefore) {
  Rank rank;
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 64, 64}, {64, 1, 64}, {64, 64, 1}, {1, 40, 72}}) {
    int64_t bytes[2][2];
    for (int transposeA : {0, 1})
      for (int transposeB : {0, 1})
        bytes[transposeA][transposeB] = Product{transposeA, transposeB, 0, PLR_F32, PLR_F32, m, n, k}.ask();
    for (int transposeA : {1, 0})
      for (int transposeB : {1, 0}) {
        Product product{transposeA, transposeB, 0, PLR_F32, PLR_F32, m, n, k};
        product.run(rank, nullptr, PLR_FROM_POOL);
        EXPECT_EQ(plr_context_error(rank, nullptr), PLR_OK);
      }
    for (int transposeA : {0, 1})
      for (int transposeB : {0, 1})
        EXPECT_EQ((Product{transposeA, transposeB, 0, PLR_F32, PLR_F32, m, n, k}.ask()), bytes[transposeA][transposeB])
            << m << " x " << n << " x " << k << " " << transposeA << transposeB;
  }
}

TEST(WorkspaceQuery, RefusesWhatNoCallTakes) {
  auto gemm = [](plr_gemm_kind kind, int ta, int tb, int acc, plr_type type, plr_type result, int64_t m, int64_t k) {
    return plr_gemm_workspace_bytes(kind, ta, tb, acc, type, result, m, 4, k);
  };
  const int64_t huge = int64_t(1) << 40;
  EXPECT_GE(gemm(0, 0, 0, 0, 0, 0, 4, 4), 0);
  EXPECT_EQ(gemm(2, 0, 0, 0, 0, 0, 4, 4), -1);
  EXPECT_EQ(gemm(0, 2, 0, 0, 0, 0, 4, 4), -1);
  EXPECT_EQ(gemm(0, 0, -1, 0, 0, 0, 4, 4), -1);
  EXPECT_EQ(gemm(0, 0, 0, 2, 0, 0, 4, 4), -1);
  EXPECT_EQ(gemm(0, 0, 0, 0, 2, 0, 4, 4), -1);
  EXPECT_EQ(gemm(0, 0, 0, 0, PLR_F32, PLR_BF16, 4, 4), -1);
  EXPECT_EQ(gemm(0, 0, 0, 0, 0, 0, -4, 4), -1);
  EXPECT_EQ(gemm(0, 0, 0, 0, 0, 0, huge, huge), -1);
  EXPECT_EQ(gemm(0, 0, 0, 0, 0, 0, 0, 4), 0);
  EXPECT_EQ(plr_grouped_gemm_workspace_bytes(0, 2, 0, 4, 4, 4), -1);
  EXPECT_EQ(plr_grouped_gemm_workspace_bytes(0, 0, 3, 4, 4, 4), -1);
  EXPECT_EQ(plr_grouped_gemm_workspace_bytes(0, 0, 0, -4, 4, 4), -1);
  EXPECT_EQ(plr_grouped_gemm_workspace_bytes(1, 0, 0, 4, 4, 4), 0);
  EXPECT_EQ(plr_grouped_gemm_grad_workspace_bytes(0, 2, 0, 0, 4, 4, 4), -1);
  EXPECT_EQ(plr_grouped_gemm_grad_workspace_bytes(0, 0, PLR_F32, PLR_BF16, 4, 4, 4), -1);
  EXPECT_EQ(plr_grouped_gemm_grad_workspace_bytes(0, 0, 0, 0, 4, 4, -4), -1);
  EXPECT_EQ(plr_grouped_gemm_grad_workspace_bytes(0, 0, PLR_BF16, PLR_BF16, 4, 0, 4), 0);
}

// 40 rows of 12 bytes are 480 and take 8 lines. 40 values take 3 lines.
TEST(Footprint, OfExchanges) {
  EXPECT_EQ(plr_footprint_exchange(2, 40, 12, 0), 512);
  EXPECT_EQ(plr_footprint_exchange(2, 40, 12, 1), 512 + 192);
  EXPECT_EQ(plr_footprint_exchange(2, 40, 0, 1), 192);
  EXPECT_EQ(plr_footprint_exchange(4, 0, 12, 1), 0);
  EXPECT_EQ(plr_footprint_exchange(1, 40, 12, 1), 0);
}

// One row of 20 numbers takes 2 lines.
TEST(Footprint, OfReturnedGradients) {
  EXPECT_EQ(plr_footprint_return_experts(2, 20), 128);
  EXPECT_EQ(plr_footprint_return_experts(2, 0), 0);
  EXPECT_EQ(plr_footprint_return_experts(1, 20), 0);
}

TEST(Footprint, OfPlans) {
  // 4 ranks, 8 experts, one iteration: a header of 320 bytes; 2 x 8 ends and 8 counts of 4 bytes, 32 each; 3 offsets
  // and 4 sums of 8, 24 and 32; 3 leaves' numbers of 4; 32 loads of 4; 16 pieces of 16; 8 first pieces of 4; and 36
  // numbers of 8, 288. In lines:
  EXPECT_EQ(plr_footprint_plan_host(4, 8, 0, 1, 1), 320 + 3 * 64 + 64 + 64 + 64 + 128 + 256 + 64 + 320);
  // With 3 helper slots, 5 chunks and 2 leaves: 10 iterations of 4 x 5 bins, 800 bytes twice, and 20 counts, 80; 60
  // offsets, 480; 40 sums, 320; 30 numbers, 120; 12 helped experts, 48; 28 pieces, 448.
  EXPECT_EQ(plr_footprint_plan_host(4, 8, 3, 5, 2), 320 + 2 * 832 + 128 + 512 + 320 + 128 + 128 + 64 + 448 + 64 + 320);
  EXPECT_EQ(plr_footprint_plan_device(10, 2), 128);
  EXPECT_EQ(plr_footprint_plan_device(0, 2), 0);
}

TEST(CallerWorkspaceMisuse, IsNamed) {
  alignas(64) static char memory[1 << 16];
  const Product product = {1, 0, 0, PLR_BF16, PLR_BF16, 256, 256, 1024};
  const int64_t needed = product.ask();
  ASSERT_GT(needed, 64); // An operand that lies transposed is copied by every implementation.
  auto expectRefused = [&](void *workspace, int64_t bytes, const std::string &text) {
    Rank rank;
    product.run(rank, workspace, bytes);
    EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT);
    EXPECT_CONTAINS(rank.message(), "plr_gemm of linalg.matmul q_proj (layer 3, attention, forward): " + text);
    EXPECT_EQ(rank.report().allocations, 0);
  };
  expectRefused(memory, needed - 1,
                "the workspace has " + std::to_string(needed - 1) + " bytes, but " + std::to_string(needed) +
                    " are needed");
  expectRefused(nullptr, 0, "the workspace has 0 bytes, but " + std::to_string(needed) + " are needed");
  expectRefused(nullptr, needed, "the workspace is null");
  expectRefused(memory + 16, needed, "the workspace lies 16 bytes behind a multiple of 64, but must be aligned to it");
  expectRefused(memory, PLR_FROM_POOL, "there is a workspace, but workspace_bytes is -1 (PLR_FROM_POOL)");
  expectRefused(memory, -2, "workspace_bytes is -2, but must not be negative, unless it is -1 (PLR_FROM_POOL)");
}

TEST(CallerWorkspaceMisuse, OfGroupedProductsIsNamed) {
  alignas(64) static char memory[1 << 16];
  const Grouped gradient = {true, 1, PLR_BF16, PLR_BF16, 64, 64}, forward = {false, 0, PLR_F32, PLR_F32, 64, 64};
  const int64_t sums = 64 * 64 * 4; // Of one expert, in f32; the library may need more.
  Rank rank, other, third;
  gradient.run(rank, {100, 300}, memory, sums - 64);
  EXPECT_CONTAINS(rank.message(), "plr_grouped_gemm_grad of moe.grouped_matmul w13 (layer 2, experts, forward): the "
                                  "workspace has 16320 bytes, but ");
  gradient.run(other, {100, 300}, memory, -7);
  EXPECT_CONTAINS(other.message(), "workspace_bytes is -7");
  forward.run(third, {100, 300}, memory + 8, 64);
  EXPECT_CONTAINS(third.message(), "the workspace lies 8 bytes behind");
}
