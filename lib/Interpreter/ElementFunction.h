//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Ops of arith and math on one element. On tensors they run element by element, in linalg bodies point by point.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_ELEMENTFUNCTION_H
#define PLATEAU_LIB_INTERPRETER_ELEMENTFUNCTION_H

#include "Cell.h"

namespace mlir::plateau::interpreter {

struct ElementFunction {
  using Pointer = Cell (*)(const ElementFunction &self, const Cell *operands);

  Pointer pointer;
  uint64_t attribute;    ///< The predicate of a comparison; a hash of the op's name for all else.
  unsigned operandWidth; ///< Bits of the first operand, when that is an integer.
  unsigned resultWidth;  ///< Bits of the result, when that is an integer.

  Cell operator()(const Cell *operands) const { return pointer(*this, operands); }
};

/// Names of the ops that getElementFunction knows.
SmallVector<StringRef> getElementwiseOpNames();
/// What `op` does to one element of each operand; null when `op` is not an elementwise op that the interpreter knows.
std::optional<ElementFunction> getElementFunction(Operation *op, Mode mode);

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_ELEMENTFUNCTION_H
