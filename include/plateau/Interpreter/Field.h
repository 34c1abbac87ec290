//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Integers modulo the prime 2^61 - 1: what floating-point numbers are in the exact mode of the interpreter. Sums and
// products in this field do not depend on the order or the grouping of their terms.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERPRETER_FIELD_H
#define PLATEAU_INTERPRETER_FIELD_H

#include <cstdint>

namespace mlir::plateau::interpreter {

class Field {
public:
  static constexpr uint64_t prime = (uint64_t(1) << 61) - 1;

  Field() = default; // zero when value-initialised: Field()

  /// The element of any integer.
  static Field fromInteger(int64_t integer) {
    int64_t remainder = integer % int64_t(prime);
    return Field(remainder < 0 ? uint64_t(remainder) + prime : uint64_t(remainder));
  }
  /// The element of 64 bits of a hash.
  static Field fromHash(uint64_t hash) { return Field(hash % prime); }
  /// A finite double is m · 2^e with integer m, and so is its element. An infinity or NaN gives a fixed element of its
  /// own.
  static Field fromDouble(double number);
  /// Marks an element that nothing was stored to. No operation gives it, and no op of the interpreter reads it.
  static Field undefined() { return Field(prime); }

  bool isUndefined() const { return value == prime; }
  /// In 0 … prime - 1; prime itself when undefined.
  uint64_t getValue() const { return value; }
  /// The representative nearest to zero, so that small integers compare and print as integers.
  int64_t getSigned() const { return value > prime / 2 ? int64_t(value) - int64_t(prime) : int64_t(value); }

  /// 1 / this; of zero it is zero.
  Field inverse() const;

  Field operator-() const { return Field(value ? prime - value : 0); }
  friend Field operator+(Field a, Field b) { return reduceOnce(a.value + b.value); }
  friend Field operator-(Field a, Field b) { return reduceOnce(a.value + prime - b.value); }
  friend Field operator*(Field a, Field b) { return fromWide(Wide(a.value) * b.value); }
  friend Field operator/(Field a, Field b) { return a * b.inverse(); }
  Field &operator+=(Field other) { return *this = *this + other; }
  friend bool operator==(Field a, Field b) { return a.value == b.value; }
  friend bool operator!=(Field a, Field b) { return a.value != b.value; }

  using Wide = unsigned __int128;
  /// The element of any 128-bit integer: 2^61 is 1, so the high bits are added to the low ones.
  static Field fromWide(Wide wide) {
    wide = (wide & prime) + (wide >> 61);
    return reduceOnce(uint64_t(wide & prime) + uint64_t(wide >> 61));
  }

private:
  explicit Field(uint64_t value) : value(value) {}
  static Field reduceOnce(uint64_t sum) { return Field(sum >= prime ? sum - prime : sum); }

  uint64_t value;
};

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_INTERPRETER_FIELD_H
