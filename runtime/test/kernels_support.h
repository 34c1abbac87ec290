//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the tests of the kernels share: tensors of either working type seen as doubles, poisoned before use, and the
// variants.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_TEST_KERNELS_SUPPORT_H
#define PLATEAU_RUNTIME_TEST_KERNELS_SUPPORT_H

#include "host/simd/variants.h"
#include "plateau/runtime.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace plateau::rt::test {

constexpr double infinity = std::numeric_limits<double>::infinity();

inline double roundTo(plr_type type, double value) {
  float rounded = static_cast<float>(value);
  if (type == PLR_F32 || !std::isfinite(rounded))
    return rounded;
  // Rounding to 8 significant bits: nearest, ties to even, as the default mode of nearbyint.
  int exponent;
  double fraction = std::frexp(rounded, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

/// A dense tensor of a working type, NaN all over until it is set.
class Tensor {
public:
  Tensor(plr_type type, int64_t count) : type(type), count(count), bytes(count * width() + 64, 0xff) {}

  int64_t size() const { return count; }
  void *data() { return bytes.data(); }
  float *floats() { return reinterpret_cast<float *>(bytes.data()); }
  double operator[](int64_t i) const {
    uint32_t bits = 0;
    std::memcpy(type == PLR_BF16 ? reinterpret_cast<char *>(&bits) + 2 : reinterpret_cast<char *>(&bits),
                bytes.data() + i * width(), width());
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  /// Rounds to the type.
  void set(int64_t i, double value) {
    float rounded = static_cast<float>(roundTo(type, value));
    uint32_t bits;
    std::memcpy(&bits, &rounded, sizeof(bits));
    std::memcpy(bytes.data() + i * width(), reinterpret_cast<char *>(&bits) + (type == PLR_BF16 ? 2 : 0), width());
  }
  std::vector<double> values() const {
    std::vector<double> result(count);
    for (int64_t i = 0; i < count; ++i)
      result[i] = (*this)[i];
    return result;
  }
  /// The bytes past the last element still hold the poison.
  bool endIsIntact() const {
    return std::all_of(bytes.begin() + count * width(), bytes.end(), [](unsigned char byte) { return byte == 0xff; });
  }
  bool sameBits(const Tensor &other) const { return bytes == other.bytes; }
  Tensor slice(int64_t begin, int64_t length) const {
    Tensor result(type, length);
    std::memcpy(result.bytes.data(), bytes.data() + begin * width(), length * width());
    return result;
  }

private:
  int64_t width() const { return type == PLR_BF16 ? 2 : 4; }
  plr_type type;
  int64_t count;
  std::vector<unsigned char> bytes;
};

inline Tensor randomTensor(plr_type type, int64_t count, uint32_t seed, double scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Tensor result(type, count);
  for (int64_t i = 0; i < count; ++i)
    result.set(i, scale * normal(generator));
  return result;
}

inline Tensor tensorOf(const std::vector<double> &values, plr_type type = PLR_F32) {
  Tensor result(type, static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    result.set(i, values[i]);
  return result;
}

/// Address space for `count` zeros, of which only the pages that are touched take memory; null where the machine
/// refuses it.
class SparseFloats {
public:
  explicit SparseFloats(int64_t count)
      : bytes(count * sizeof(float)),
        memory(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~SparseFloats() {
    if (data())
      munmap(memory, bytes);
  }
  SparseFloats(const SparseFloats &) = delete;
  SparseFloats &operator=(const SparseFloats &) = delete;
  float *data() { return memory == MAP_FAILED ? nullptr : static_cast<float *>(memory); }

private:
  size_t bytes;
  void *memory;
};

/// |actual − expected| ≤ tolerance · max|expected|, plus a unit in the last place of the type for each element. Where
/// all that is expected is 0, inputs of size 1 cancelled, and the bound is the tolerance.
inline void expectClose(plr_type type, const Tensor &actual, const std::vector<double> &expected, double tolerance,
                        const char *what) {
  ASSERT_EQ(actual.size(), static_cast<int64_t>(expected.size())) << what;
  EXPECT_TRUE(actual.endIsIntact()) << what;
  double largest = 0;
  for (double value : expected)
    largest = std::max(largest, std::abs(value));
  if (largest == 0)
    largest = 1;
  double unit = type == PLR_BF16 ? 0x1p-8 : 0x1p-23;
  for (int64_t i = 0; i < actual.size(); ++i) {
    double bound = tolerance * largest + unit * std::abs(expected[i]);
    if (!(std::abs(actual[i] - expected[i]) <= bound)) {
      ADD_FAILURE() << what << ": element " << i << " is " << actual[i] << ", not " << expected[i] << " (bound "
                    << bound << ")";
      return;
    }
  }
}

/// Central differences of a function of all the given values.
inline std::vector<double> differences(const std::function<double()> &function, std::vector<double> &values,
                                       double step = 1e-5) {
  std::vector<double> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    double kept = values[i];
    values[i] = kept + step;
    double above = function();
    values[i] = kept - step;
    double below = function();
    values[i] = kept;
    result[i] = (above - below) / (2 * step);
  }
  return result;
}

inline const char *nameOf(plr_type type) { return type == PLR_BF16 ? "bf16" : "f32"; }

/// Tests that run once for each variant and working type.
class KernelTest : public testing::TestWithParam<std::tuple<int, plr_type>> {
protected:
  void SetUp() override {
    variant = host::getVariant(std::get<0>(GetParam()));
    type = std::get<1>(GetParam());
    if (!variant)
      GTEST_SKIP() << "this machine has not the instructions of the variant";
  }
  const host::Variant *variant = nullptr;
  plr_type type = PLR_F32;
};

inline std::string nameOfParameter(const testing::TestParamInfo<std::tuple<int, plr_type>> &info) {
  const char *variants[host::variantCount] = {"avx512", "avx2", "baseline"};
  return std::string(variants[std::get<0>(info.param)]) + "_" + nameOf(std::get<1>(info.param));
}

#define PLATEAU_KERNEL_TEST(suite)                                                                                     \
  INSTANTIATE_TEST_SUITE_P(                                                                                            \
      Variants, suite, testing::Combine(testing::Range(0, host::variantCount), testing::Values(PLR_F32, PLR_BF16)),    \
      nameOfParameter)

/// For kernels that know f32 alone.
#define PLATEAU_KERNEL_TEST_F32(suite)                                                                                 \
  INSTANTIATE_TEST_SUITE_P(Variants, suite,                                                                            \
                           testing::Combine(testing::Range(0, host::variantCount), testing::Values(PLR_F32)),          \
                           nameOfParameter)

} // namespace plateau::rt::test

#endif // PLATEAU_RUNTIME_TEST_KERNELS_SUPPORT_H
