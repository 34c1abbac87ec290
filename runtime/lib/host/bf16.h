//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// bfloat16 numbers in memory; all arithmetic is in f32.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_BF16_H
#define PLATEAU_RUNTIME_HOST_BF16_H

#include <cstdint>
#include <cstring>

namespace plateau::rt::host {

struct BF16 {
  uint16_t bits;
};

inline float widen(float value) { return value; }
inline float widen(BF16 value) {
  uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

inline void narrow(float value, float &result) { result = value; }
/// To nearest, ties to even; a NaN stays a (quiet) NaN.
inline void narrow(float value, BF16 &result) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, quiet = (bits >> 16) | 0x40u;
  result.bits = static_cast<uint16_t>(value == value ? rounded : quiet);
}

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_BF16_H
