//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The hash that stands for a nonlinear function in exact mode, and for a whole tensor in a digest.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_HASH_H
#define PLATEAU_LIB_INTERPRETER_HASH_H

#include "plateau/Interpreter/Field.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstring>

namespace mlir::plateau::interpreter {

/// Takes words in order; each step is a bijection of the state, so two sequences of one length that differ meet only by
/// chance.
class Hash {
public:
  explicit Hash(llvm::StringRef name) {
    for (char character : name)
      add(uint64_t(static_cast<unsigned char>(character)));
    add(uint64_t(name.size()));
  }

  Hash &add(uint64_t word) {
    state = mix((state ^ word) + 0x9e3779b97f4a7c15u);
    return *this;
  }
  Hash &add(int64_t word) { return add(static_cast<uint64_t>(word)); }
  Hash &add(Field element) { return add(element.getValue()); }
  Hash &add(double number) {
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return add(bits);
  }
  template <typename Word>
  Hash &add(llvm::ArrayRef<Word> row) {
    for (Word word : row)
      add(word);
    return *this;
  }

  uint64_t getDigest() const { return state; }
  Field toField() const { return Field::fromHash(state); }
  /// The hash with one more word, as a field element: element `index` of a row.
  Field at(int64_t index) const { return Hash(*this).add(index).toField(); }

private:
  // The finaliser of splitmix64.
  static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
  }

  uint64_t state = 0;
};

/// Whether a row of cotangents is zero. An adjoint is linear in its cotangent: what a hash stands for is then zero too.
inline bool isZero(llvm::ArrayRef<Field> row) {
  for (Field element : row)
    if (element != Field())
      return false;
  return true;
}

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_HASH_H
