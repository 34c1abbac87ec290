//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Interpreter/Field.h"
#include "Hash.h"
#include <cmath>

using namespace mlir::plateau::interpreter;

Field Field::inverse() const {
  // Fermat: a^(p - 2).
  Field result = fromInteger(1), power = *this;
  for (uint64_t exponent = prime - 2; exponent; exponent >>= 1) {
    if (exponent & 1)
      result = result * power;
    power = power * power;
  }
  return result;
}

Field Field::fromDouble(double number) {
  if (std::isnan(number))
    return Hash("nan").toField();
  if (std::isinf(number)) {
    Field infinity = Hash("infinity").toField();
    return number < 0 ? -infinity : infinity;
  }
  int exponent;
  double mantissa = std::frexp(number, &exponent); // number = mantissa · 2^exponent, mantissa a multiple of 2^-53
  auto integer = static_cast<int64_t>(std::ldexp(mantissa, 53));
  // 2^61 = 1, so 2^e is 2^(e mod 61).
  int shift = ((exponent - 53) % 61 + 61) % 61;
  return fromInteger(integer) * fromInteger(int64_t(1) << shift);
}
