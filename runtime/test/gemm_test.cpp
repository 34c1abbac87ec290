//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "rank.h"
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace plateau::rt::test;

namespace {

/// A matrix of one of the working types, with numbers that the type holds exactly.
class Matrix {
public:
  Matrix(plr_type type, int64_t elements) : type(type), bytes(elements * elementBytes(), 0) {}

  static Matrix random(plr_type type, int64_t elements, unsigned seed) {
    Matrix matrix(type, elements);
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> distribution(-1, 1);
    for (int64_t i = 0; i < elements; ++i)
      matrix.set(i, distribution(generator));
    return matrix;
  }

  size_t elementBytes() const { return type == PLR_BF16 ? 2 : 4; }
  void *data() { return bytes.data(); }
  const std::vector<unsigned char> &getBytes() const { return bytes; }

  double get(int64_t index) const {
    uint32_t bits = 0;
    if (type == PLR_BF16) {
      uint16_t half;
      std::memcpy(&half, &bytes[index * 2], 2);
      bits = static_cast<uint32_t>(half) << 16;
    } else {
      std::memcpy(&bits, &bytes[index * 4], 4);
    }
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  /// Cuts to the type: which number it is does not matter, only that it is one of the type's.
  void set(int64_t index, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    uint16_t half = static_cast<uint16_t>(bits >> 16);
    if (type == PLR_BF16)
      std::memcpy(&bytes[index * 2], &half, 2);
    else
      std::memcpy(&bytes[index * 4], &bits, 4);
  }

private:
  plr_type type;
  std::vector<unsigned char> bytes;
};

struct Case {
  int transposeA, transposeB, accumulate;
  plr_type type, resultType;
  int64_t m, n, k;
};

std::ostream &operator<<(std::ostream &stream, const Case &c) {
  return stream << "transpose " << c.transposeA << c.transposeB << " accumulate " << c.accumulate << " type " << c.type
                << " result " << c.resultType << " m " << c.m << " n " << c.n << " k " << c.k;
}

plr_config makeConfig(plr_gemm_kind kind) {
  plr_config config = plateau::rt::test::makeConfig();
  config.gemm = kind;
  return config;
}

plr_status run(Rank &rank, const Case &c, Matrix &a, Matrix &b, Matrix &result) {
  return plr_gemm(rank.lane(), &attentionTag, c.transposeA, c.transposeB, c.accumulate, c.type, c.resultType, c.m, c.n,
                  c.k, a.data(), b.data(), result.data(), nullptr, PLR_FROM_POOL);
}

class Gemm : public testing::TestWithParam<plr_gemm_kind> {};

} // namespace

/// Against sums in float64. An element is a sum of k rounded products, so it may be off by k roundings of the sum of
/// magnitudes, and by one rounding to the result's type.
static void compare(Rank &rank, const Case &c) {
  Matrix a = Matrix::random(c.type, c.m * c.k, 1), b = Matrix::random(c.type, c.k * c.n, 2);
  Matrix before = Matrix::random(c.resultType, c.m * c.n, 3), result = before;
  if (!c.accumulate) // Whatever the result held must not show.
    for (int64_t i = 0; i < c.m * c.n; ++i)
      result.set(i, std::numeric_limits<float>::quiet_NaN());
  ASSERT_EQ(run(rank, c, a, b, result), PLR_OK) << c << ": " << rank.message();
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << c << ": " << rank.message();
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = c.accumulate ? before.get(i * c.n + j) : 0, magnitude = std::abs(sum);
      for (int64_t k = 0; k < c.k; ++k) {
        double product =
            a.get(c.transposeA ? k * c.m + i : i * c.k + k) * b.get(c.transposeB ? j * c.k + k : k * c.n + j);
        sum += product;
        magnitude += std::abs(product);
      }
      double tolerance = std::ldexp(static_cast<double>(c.k + 2), -24) * magnitude +
                         (c.resultType == PLR_BF16 ? std::ldexp(std::abs(sum), -8) : 0);
      ASSERT_NEAR(result.get(i * c.n + j), sum, tolerance) << c << " at " << i << ", " << j;
    }
}

TEST_P(Gemm, AgreesWithFloat64) {
  Rank rank(makeConfig(GetParam()));
  const int64_t sizes[][3] = {{1, 1, 1}, {1, 17, 5},  {17, 1, 5},  {5, 17, 1},   {16, 16, 16},
                              {3, 7, 2}, {33, 65, 7}, {67, 9, 70}, {64, 64, 64}, {65, 129, 300}};
  const plr_type types[][2] = {{PLR_F32, PLR_F32}, {PLR_BF16, PLR_F32}, {PLR_BF16, PLR_BF16}};
  for (auto [type, resultType] : types)
    for (auto [m, n, k] : sizes)
      for (int flags = 0; flags < 8; ++flags)
        compare(rank, {flags & 1, flags >> 1 & 1, flags >> 2, type, resultType, m, n, k});
}

TEST_P(Gemm, EmptySizesAreLegal) {
  Rank rank(makeConfig(GetParam()));
  for (plr_type type : {PLR_F32, PLR_BF16})
    for (int64_t empty = 1; empty < 8; ++empty)
      for (int flags = 0; flags < 8; ++flags)
        compare(rank, {flags & 1, flags >> 1 & 1, flags >> 2, type, type, empty & 1 ? 0 : 5, empty & 2 ? 0 : 6,
                       empty & 4 ? 0 : 7});
  // With nothing to read or write, addresses may be null.
  EXPECT_EQ(plr_gemm(rank.lane(), &denseTag, 0, 0, 0, PLR_F32, PLR_F32, 0, 3, 4, nullptr, rank, nullptr, nullptr,
                     PLR_FROM_POOL),
            PLR_OK);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
}

TEST_P(Gemm, TwoRunsGiveTheSameBits) {
  for (plr_type type : {PLR_F32, PLR_BF16})
    for (int flags = 0; flags < 4; ++flags) {
      Case c = {flags & 1, flags >> 1, 0, type, type, 80, 96, 200};
      Matrix a = Matrix::random(type, c.m * c.k, 1), b = Matrix::random(type, c.k * c.n, 2);
      Matrix first(type, c.m * c.n), second(type, c.m * c.n);
      Rank rank(makeConfig(GetParam())), other(makeConfig(GetParam()));
      run(rank, c, a, b, first);
      run(other, c, a, b, second);
      ASSERT_EQ(plr_synchronize(rank), PLR_OK);
      ASSERT_EQ(plr_synchronize(other), PLR_OK);
      EXPECT_EQ(first.getBytes(), second.getBytes()) << c;
    }
}

/// The rows of a product of `c.m` rows, computed from the first row on and from a later one on, in pieces of other
/// sizes.
static void compareRows(plr_gemm_kind kind, const Case &c, std::initializer_list<int64_t> rowCounts) {
  Matrix a = Matrix::random(c.type, c.m * c.k, 1), b = Matrix::random(c.type, c.k * c.n, 2);
  Matrix whole(c.resultType, c.m * c.n);
  Rank rank(makeConfig(kind));
  run(rank, c, a, b, whole);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  for (int64_t rows : rowCounts)
    for (int64_t first : {int64_t(0), c.m - rows}) {
      Matrix part(c.resultType, rows * c.n);
      auto *begin = static_cast<unsigned char *>(a.data()) + first * c.k * static_cast<int64_t>(a.elementBytes());
      plr_gemm(rank.lane(), &attentionTag, 0, c.transposeB, 0, c.type, c.resultType, rows, c.n, c.k, begin, b.data(),
               part.data(), nullptr, PLR_FROM_POOL);
      ASSERT_EQ(plr_synchronize(rank), PLR_OK);
      size_t rowBytes = static_cast<size_t>(c.n) * part.elementBytes();
      EXPECT_EQ(std::memcmp(part.getBytes().data(), whole.getBytes().data() + first * rowBytes, rows * rowBytes), 0)
          << c << ": rows " << first << " ... " << first + rows;
    }
}

// A rank that holds fewer tokens, or more, gets the same bits for a token. Row counts lie on a grid of 16.
TEST(GemmRows, KeepTheirBitsWhateverTheirNumber) {
  for (plr_type type : {PLR_F32, PLR_BF16})
    for (int transposeB : {0, 1})
      for (auto [n, k] : {std::pair<int64_t, int64_t>{256, 256}, {768, 256}, {256, 768}, {48, 208}, {100, 36}})
        compareRows(PLR_GEMM_ONEDNN, {0, transposeB, 0, type, type, 256, n, k}, {16, 32, 48, 64, 112, 160, 240});
}

TEST(GemmRows, OfTheReferenceKeepTheirBitsForAnyNumber) {
  for (plr_type type : {PLR_F32, PLR_BF16})
    for (int transposeB : {0, 1})
      compareRows(PLR_GEMM_REFERENCE, {0, transposeB, 0, type, type, 200, 70, 300}, {1, 2, 3, 17, 64, 65, 130});
}

// A gradient that 1024 chunks of rows add up to: each adds 1/256, which in bf16 would stop at 1.
TEST_P(Gemm, AddsUpChunksInF32) {
  Rank rank(makeConfig(GetParam()));
  const Case chunk = {1, 0, 1, PLR_BF16, PLR_F32, 8, 8, 4};
  Matrix a(PLR_BF16, 32), b(PLR_BF16, 32), sums(PLR_F32, 64);
  a.set(0, 1.0f / 16);
  b.set(0, 1.0f / 16);
  for (int i = 0; i < 1024; ++i)
    run(rank, chunk, a, b, sums);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  for (int64_t i = 0; i < 64; ++i)
    EXPECT_EQ(sums.get(i), i == 0 ? 4 : 0);
}

// Single products and sums rounded in order: what the reference promises, written as such.
TEST(GemmReference, SumsInAscendingOrder) {
  Rank rank(makeConfig(PLR_GEMM_REFERENCE));
  for (int flags = 0; flags < 8; ++flags) {
    Case c = {flags & 1, flags >> 1 & 1, flags >> 2, PLR_F32, PLR_F32, 37, 75, 520};
    Matrix a = Matrix::random(PLR_F32, c.m * c.k, 1), b = Matrix::random(PLR_F32, c.k * c.n, 2);
    Matrix before = Matrix::random(PLR_F32, c.m * c.n, 3), result = before;
    run(rank, c, a, b, result);
    ASSERT_EQ(plr_synchronize(rank), PLR_OK);
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < c.k; ++k) {
          // A product of two f32 numbers is exact in float64, and so is rounded once here, as in f32.
          double exact =
              a.get(c.transposeA ? k * c.m + i : i * c.k + k) * b.get(c.transposeB ? j * c.k + k : k * c.n + j);
          volatile float product = static_cast<float>(exact);
          sum = sum + product;
        }
        if (c.accumulate)
          sum = static_cast<float>(before.get(i * c.n + j)) + sum;
        ASSERT_EQ(result.get(i * c.n + j), sum) << c << " at " << i << ", " << j;
      }
  }
}

// Ties go to the even neighbour: 1 + 2^-8 lies between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6.
TEST_P(Gemm, RoundsToTheNearestBf16) {
  Rank rank(makeConfig(GetParam()));
  Case c = {0, 0, 0, PLR_BF16, PLR_BF16, 1, 4, 2};
  Matrix a(PLR_BF16, 2), b(PLR_BF16, 8), result(PLR_BF16, 4);
  a.set(0, 1);
  a.set(1, std::ldexp(1.0f, -8));
  const float second[] = {1, 3, 1.5f, -1};
  for (int j = 0; j < 4; ++j) {
    b.set(j, 1);
    b.set(4 + j, second[j]);
  }
  run(rank, c, a, b, result);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  EXPECT_EQ(result.get(0), 1);
  EXPECT_EQ(result.get(1), 1 + std::ldexp(1.0, -6));
  EXPECT_EQ(result.get(2), 1 + std::ldexp(1.0, -7));
  EXPECT_EQ(result.get(3), 1 - std::ldexp(1.0, -8));
}

TEST_P(Gemm, NotANumberStaysOne) {
  Rank rank(makeConfig(GetParam()));
  for (plr_type type : {PLR_F32, PLR_BF16}) {
    Case c = {0, 0, 0, type, type, 2, 2, 2};
    Matrix a = Matrix::random(type, 4, 1), b = Matrix::random(type, 4, 2), result(type, 4);
    a.set(0, std::numeric_limits<float>::quiet_NaN());
    run(rank, c, a, b, result);
    ASSERT_EQ(plr_synchronize(rank), PLR_OK);
    EXPECT_TRUE(std::isnan(result.get(0)) && std::isnan(result.get(1)));
    EXPECT_FALSE(std::isnan(result.get(2)) || std::isnan(result.get(3)));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Gemm, testing::Values(PLR_GEMM_ONEDNN, PLR_GEMM_REFERENCE),
                         [](const testing::TestParamInfo<plr_gemm_kind> &kind) {
                           return kind.param == PLR_GEMM_ONEDNN ? "OneDnn" : "Reference";
                         });

// Two lanes at once, on one shape: neither what is kept for the shape nor scratch memory may be shared between them.
TEST(GemmLanes, MayShareAShape) {
  Rank rank;
  Case c = {1, 1, 0, PLR_BF16, PLR_BF16, 64, 64, 64};
  Matrix a = Matrix::random(c.type, 64 * 64, 1), b = Matrix::random(c.type, 64 * 64, 2),
         other = Matrix::random(c.type, 64 * 64, 4);
  Matrix expectedA(c.type, 64 * 64), expectedOther = expectedA, ofA = expectedA, ofOther = expectedA;
  run(rank, c, a, b, expectedA);
  run(rank, c, other, b, expectedOther);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  for (int i = 0; i < 500; ++i) {
    run(rank, c, a, b, ofA);
    plr_gemm(rank.lane(PLR_COMM), &denseTag, 1, 1, 0, c.type, c.type, 64, 64, 64, other.data(), b.data(),
             ofOther.data(), nullptr, PLR_FROM_POOL);
  }
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  EXPECT_EQ(ofA.getBytes(), expectedA.getBytes());
  EXPECT_EQ(ofOther.getBytes(), expectedOther.getBytes());
}

TEST(GemmScratch, CountsAsWorkspaceAndIsReleased) {
  Rank rank;
  Case c = {1, 0, 0, PLR_F32, PLR_F32, 128, 128, 256};
  Matrix a = Matrix::random(PLR_F32, c.m * c.k, 1), b = Matrix::random(PLR_F32, c.k * c.n, 2),
         result(PLR_F32, c.m * c.n);
  run(rank, c, a, b, result);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK);
  plr_space_report report = rank.report();
  EXPECT_EQ(report.live_bytes, 0);
  EXPECT_EQ(report.peak_bytes, report.component_peak_bytes[PLR_WORKSPACE]);
  EXPECT_EQ(report.component_peak_bytes[PLR_ATTENTION], 0);
}

TEST(GemmScratch, ThatDoesNotFitIsAShortage) {
  plr_config config = makeConfig(PLR_GEMM_ONEDNN);
  config.device_bytes = 0;
  Rank rank(config);
  // An operand that lies transposed is copied by every implementation, so it needs scratch.
  Case c = {1, 0, 0, PLR_BF16, PLR_BF16, 256, 256, 1024};
  Matrix a(PLR_BF16, c.m * c.k), b(PLR_BF16, c.k * c.n), result(PLR_BF16, c.m * c.n);
  EXPECT_EQ(run(rank, c, a, b, result), PLR_OUT_OF_MEMORY);
  EXPECT_NE(
      rank.message().find("plr_gemm: out of device memory for linalg.matmul q_proj (layer 3, workspace, forward)"),
      std::string::npos)
      << rank.message();
}

TEST(GemmScratch, IsPoisonedWithoutHarm) {
  plr_config config = makeConfig(PLR_GEMM_ONEDNN);
  config.poison = 1;
  Rank rank(config);
  compare(rank, {1, 1, 1, PLR_F32, PLR_F32, 65, 33, 300});
  compare(rank, {1, 0, 0, PLR_BF16, PLR_BF16, 65, 33, 300});
}
