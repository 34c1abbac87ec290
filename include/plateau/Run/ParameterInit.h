//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Numbers drawn from (seed, name, element): the first values of parameters and the arguments of a function under test.
//
// The same numbers come out for any number of ranks, any order of drawing and any program that follows these rules. All
// integers are unsigned 64-bit and wrap around; floating-point arithmetic is float64.
//
//   G       = 0x9E3779B97F4A7C15
//   mix(x)  : x ^= x >> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >> 27; x *= 0x94D049BB133111EB; x ^= x >> 31 (SplitMix64)
//   hash(s) : h = 0xCBF29CE484222325; for each byte b of s: h = (h ^ b) * 0x100000001B3                      (FNV-1a)
//   key     = mix(mix(seed + G) + hash(name))
//   word(i) = mix(key + (i + 1) * G)
//
// Standard normal number of element e, by the method of Box and Muller on the pair j = e / 2 (rounded down):
//
//   u = ((word(2j) >> 11) + 1) / 2^53            in (0, 1]
//   v = (word(2j + 1) >> 11) / 2^53              in [0, 1)
//   z = sqrt(-2 ln u) * cos(2 pi v) for even e,  sqrt(-2 ln u) * sin(2 pi v) for odd e
//
// A parameter's element is mean + deviation * z, rounded to f32 (and a bf16 parameter is that f32 rounded again, to
// nearest even). A drawn integer below n is word(e) mod n.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_PARAMETERINIT_H
#define PLATEAU_RUN_PARAMETERINIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::plateau::run {

class NumberStream {
public:
  NumberStream(uint64_t seed, llvm::StringRef name);

  uint64_t getWord(uint64_t index) const;
  double getNormal(uint64_t element) const;
  uint64_t getBelow(uint64_t element, uint64_t bound) const { return getWord(element) % bound; }

  /// Writes mean + deviation · z of the elements `first`, `first` + 1, …
  void fillNormal(double mean, double deviation, llvm::MutableArrayRef<float> values, uint64_t first = 0) const;

private:
  uint64_t key;
};

/// f32 to bf16, to nearest even; a NaN stays one.
uint16_t roundToBF16(float value);
float extendBF16(uint16_t bits);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_PARAMETERINIT_H
