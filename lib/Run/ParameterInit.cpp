//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/ParameterInit.h"
#include <cmath>
#include <cstring>

using namespace mlir::plateau::run;

static constexpr uint64_t golden = 0x9E3779B97F4A7C15;

static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9;
  x ^= x >> 27;
  x *= 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

static uint64_t hash(llvm::StringRef text) {
  uint64_t h = 0xCBF29CE484222325;
  for (unsigned char byte : text.bytes())
    h = (h ^ byte) * 0x100000001B3;
  return h;
}

NumberStream::NumberStream(uint64_t seed, llvm::StringRef name) : key(mix(mix(seed + golden) + hash(name))) {}

uint64_t NumberStream::getWord(uint64_t index) const { return mix(key + (index + 1) * golden); }

/// Radius and angle of pair `j`.
static std::pair<double, double> getPair(const NumberStream &stream, uint64_t j) {
  double u = ((stream.getWord(2 * j) >> 11) + 1) * 0x1p-53;
  double v = (stream.getWord(2 * j + 1) >> 11) * 0x1p-53;
  return {std::sqrt(-2 * std::log(u)), 2 * M_PI * v};
}

double NumberStream::getNormal(uint64_t element) const {
  auto [radius, angle] = getPair(*this, element / 2);
  return radius * (element % 2 ? std::sin(angle) : std::cos(angle));
}

void NumberStream::fillNormal(double mean, double deviation, llvm::MutableArrayRef<float> values,
                              uint64_t first) const {
  if (first % 2 && !values.empty()) { // The second of a pair.
    values[0] = static_cast<float>(mean + deviation * (deviation != 0 ? getNormal(first) : 0));
    return fillNormal(mean, deviation, values.drop_front(), first + 1);
  }
  for (size_t i = 0; i < values.size(); i += 2) {
    double cosine = 0, sine = 0;
    if (deviation != 0) {
      auto [radius, angle] = getPair(*this, (first + i) / 2);
      cosine = radius * std::cos(angle);
      sine = radius * std::sin(angle);
    }
    values[i] = static_cast<float>(mean + deviation * cosine);
    if (i + 1 < values.size())
      values[i + 1] = static_cast<float>(mean + deviation * sine);
  }
}

uint16_t mlir::plateau::run::roundToBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value))
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float mlir::plateau::run::extendBF16(uint16_t half) {
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
