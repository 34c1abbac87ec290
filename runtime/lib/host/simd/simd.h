//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Vectors of f32 as wide as the instruction set this file is compiled for. Included only by files that are compiled
// once for each instruction set, so everything here lives in that variant's namespace: an inline function shared
// between variants could be linked from the wrong one. For the same reason those files use no inline function of the
// C++ library.
//
// The files are compiled without contraction: a product and a sum are fused where the code says fusedMultiplyAdd and
// nowhere else, so that an element's bits do not depend on its position.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_SIMD_SIMD_H
#define PLATEAU_RUNTIME_HOST_SIMD_SIMD_H

#ifndef PLATEAU_RT_VARIANT
#error "PLATEAU_RT_VARIANT names the variant that a file is compiled for: see kernels.cmake"
#endif

#include <stdint.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

#if defined(__AVX512F__)
constexpr int lanes = 16;
#elif defined(__AVX2__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;
#endif

typedef float Vec __attribute__((vector_size(lanes * sizeof(float))));
typedef int32_t VecInt __attribute__((vector_size(lanes * sizeof(int32_t))));
typedef uint32_t VecBits __attribute__((vector_size(lanes * sizeof(uint32_t))));
typedef uint16_t VecHalf __attribute__((vector_size(lanes * sizeof(uint16_t))));

/// A bfloat16 number in memory; all arithmetic is in f32.
struct BF16 {
  uint16_t bits;
};

constexpr float infinity = __builtin_inff();
constexpr float lowest = -3.40282347e+38f; ///< The smallest finite number.

inline Vec broadcast(float value) { return value - Vec{}; }

inline Vec load(const float *source) {
  Vec value;
  __builtin_memcpy(&value, source, sizeof(value));
  return value;
}

inline Vec load(const BF16 *source) {
  VecHalf half;
  __builtin_memcpy(&half, source, sizeof(half));
  return (Vec)(__builtin_convertvector(half, VecBits) << 16);
}

inline void store(float *destination, Vec value) { __builtin_memcpy(destination, &value, sizeof(value)); }

/// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
inline void store(BF16 *destination, Vec value) {
  VecBits bits = (VecBits)value;
  VecBits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  VecBits quiet = (bits >> 16) | 0x40u;
  VecBits result = value == value ? rounded : quiet;
  VecHalf half = __builtin_convertvector(result, VecHalf);
  __builtin_memcpy(destination, &half, sizeof(half));
}

/// The first `count` ≤ lanes elements; `fill` in the other lanes.
template <typename T>
inline Vec load(const T *source, int64_t count, float fill = 0) {
  if (count == lanes)
    return load(source);
  T buffer[lanes] = {};
  for (int64_t i = 0; i < count; ++i)
    buffer[i] = source[i];
  Vec value = load(buffer);
  if (fill != 0)
    for (int64_t i = count; i < lanes; ++i)
      value[i] = fill;
  return value;
}

template <typename T>
inline void store(T *destination, Vec value, int64_t count) {
  if (count == lanes)
    return store(destination, value);
  T buffer[lanes];
  store(buffer, value);
  for (int64_t i = 0; i < count; ++i)
    destination[i] = buffer[i];
}

/// body(j, count) for each vector of a row: the elements j … j + count − 1, count ≤ lanes.
template <typename Body>
inline void forEachVector(int64_t columns, Body body) {
  int64_t j = 0;
  for (; j + lanes <= columns; j += lanes)
    body(j, int64_t(lanes));
  if (j < columns)
    body(j, columns - j);
}

/// a·b + c, rounded once where the instruction set can.
inline Vec fusedMultiplyAdd(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

/// The larger of each pair; b where either is NaN.
inline Vec maximum(Vec a, Vec b) { return a > b ? a : b; }

/// Whether any lane differs; NaN differs from everything.
inline bool anyDiffers(Vec a, Vec b) {
  VecInt differs = a != b;
  int32_t any = 0;
  for (int i = 0; i < lanes; ++i)
    any |= differs[i];
  return any;
}

inline Vec squareRoot(Vec value) {
#if defined(__AVX512F__)
  return (Vec)_mm512_sqrt_ps((__m512)value);
#elif defined(__AVX2__)
  return (Vec)_mm256_sqrt_ps((__m256)value);
#elif defined(__SSE2__)
  return (Vec)_mm_sqrt_ps((__m128)value);
#else
  for (int i = 0; i < lanes; ++i)
    value[i] = __builtin_sqrtf(value[i]);
  return value;
#endif
}

/// Sum of the lanes, by halves.
inline float sum(Vec value) {
  float buffer[lanes];
  store(buffer, value);
  for (int width = lanes / 2; width; width /= 2)
    for (int i = 0; i < width; ++i)
      buffer[i] += buffer[i + width];
  return buffer[0];
}

/// Largest lane; NaN lanes are passed over unless all are NaN.
inline float largest(Vec value) {
  float result = value[0];
  for (int i = 1; i < lanes; ++i)
    result = result == result && !(value[i] > result) ? result : value[i];
  return result;
}

/// e^x = (1 + rest)·2^n with n whole and |log(1 + rest)| ≤ ln 2 / 2; rest keeps the digits of a small x.
struct Power {
  Vec n, rest;
  VecBits whole; ///< n.
};

/// |x| ≤ 200.
inline Power reducePower(Vec x) {
  // x = n·ln 2 + r. Adding 1.5·2^23 rounds to a whole number, whose bits then stand at the low end. The high part of
  // ln 2 has so few bits that n times it is exact.
  const Vec shift = broadcast(12582912.0f);
  Vec shifted = fusedMultiplyAdd(x, broadcast(1.44269502f), shift);
  Vec n = shifted - shift;
  Vec r = fusedMultiplyAdd(n, broadcast(-0.693115234375f), x);
  r = fusedMultiplyAdd(n, broadcast(-3.19461833e-05f), r);
  // (e^r − 1 − r) / r² on |r| ≤ ln 2 / 2, interpolated at Chebyshev's nodes.
  Vec q = broadcast(1.39262131e-3f);
  q = fusedMultiplyAdd(q, r, broadcast(8.36320315e-3f));
  q = fusedMultiplyAdd(q, r, broadcast(4.16665561e-2f));
  q = fusedMultiplyAdd(q, r, broadcast(1.66665763e-1f));
  q = fusedMultiplyAdd(q, r, broadcast(0.5f));
  return {n, fusedMultiplyAdd(q, r * r, r), (VecBits)shifted - (VecBits)shift};
}

/// e^x within 2 units in the last place, gradual underflow included: 0 far below, +inf far above, NaN for NaN.
inline Vec exponential(Vec x) {
  x = x < -105.0f ? broadcast(-105.0f) : x;
  x = x > 90.0f ? broadcast(90.0f) : x;
  Power power = reducePower(x);
  Vec p = power.rest + 1.0f;
#if defined(__AVX512F__)
  return (Vec)_mm512_scalef_ps((__m512)p, (__m512)power.n);
#else
  // Two factors, since 2^n itself may be out of range where the product is not.
  VecBits half = (VecBits)((VecInt)power.whole >> 1);
  return p * (Vec)((half + 127u) << 23) * (Vec)((power.whole - half + 127u) << 23);
#endif
}

/// tanh x within 4 units in the last place, never past ±1; NaN for NaN.
inline Vec hyperbolicTangent(Vec x) {
  const VecBits sign = (VecBits)x & 0x80000000u;
  Vec size = (Vec)((VecBits)x ^ sign);
  size = size > 20.0f ? broadcast(20.0f) : size; // From 10 on it is 1.
  // tanh x = −e / (2 + e) with e = e^−2x − 1, which has all digits of a small x.
  Power power = reducePower(size * -2.0f);
  Vec scale = (Vec)((power.whole + 127u) << 23);
  Vec e = fusedMultiplyAdd(power.rest, scale, scale - 1.0f);
  return (Vec)((VecBits)(-e / (2.0f + e)) | sign);
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT

#endif // PLATEAU_RUNTIME_HOST_SIMD_SIMD_H
