//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// One element of a tensor, of whatever scalar type, and tensors made from types and attributes of the IR.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_CELL_H
#define PLATEAU_LIB_INTERPRETER_CELL_H

#include "Evaluator.h"
#include <cstring>

namespace mlir::plateau::interpreter {

/// Which member counts follows from the type in the IR and the mode.
union Cell {
  double float64;
  Field field;
  int64_t integer;
};
static_assert(sizeof(Cell) == 8 && sizeof(double) == 8 && sizeof(Field) == 8, "elements are copied as eight bytes");

inline Cell loadCell(const void *elements, int64_t index) {
  Cell cell;
  std::memcpy(&cell, static_cast<const char *>(elements) + 8 * index, sizeof cell);
  return cell;
}
inline void storeCell(void *elements, int64_t index, Cell cell) {
  std::memcpy(static_cast<char *>(elements) + 8 * index, &cell, sizeof cell);
}

/// The elements in memory, eight bytes each; to be written only when nothing else shares them yet.
const void *getElements(const Tensor &tensor);
void *getMutableElements(Tensor &tensor);

/// A number as an element of floating-point type.
template <typename Scalar>
Scalar fromDouble(double number);
template <>
inline double fromDouble<double>(double number) {
  return number;
}
template <>
inline Field fromDouble<Field>(double number) {
  return Field::fromDouble(number);
}

/// The shape of a ranked tensor type; no dimensions for a scalar type.
ArrayRef<int64_t> getShape(Type type);
/// A tensor of the scalar type that stands for the element type of `type` in `mode`; undefined elements.
Tensor makeUndefined(Type type, Mode mode);
/// The same with `shape`, for a type that leaves the rows open.
Tensor makeUndefined(Type type, ArrayRef<int64_t> shape, Mode mode);
/// An integer of `width` bits as it is kept: sign extended, i1 as 0 or 1.
int64_t normalizeInteger(uint64_t bits, unsigned width);
/// Bits of an integer or index type; 0 for others.
unsigned getIntegerWidth(Type type);

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_CELL_H
