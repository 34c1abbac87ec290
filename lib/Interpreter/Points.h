//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Walks the points of a box in row-major order.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_POINTS_H
#define PLATEAU_LIB_INTERPRETER_POINTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::plateau::interpreter {

/// Elements between neighbours along each dimension of a row-major tensor.
inline llvm::SmallVector<int64_t> getStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Calls `function` with each point of 0 … sizes - 1, the last coordinate first.
template <typename Function>
void forEachPoint(llvm::ArrayRef<int64_t> sizes, Function &&function) {
  if (llvm::is_contained(sizes, 0))
    return;
  llvm::SmallVector<int64_t> point(sizes.size(), 0);
  while (true) {
    function(llvm::ArrayRef<int64_t>(point));
    size_t i = sizes.size();
    while (i > 0 && ++point[i - 1] == sizes[i - 1])
      point[--i] = 0;
    if (i == 0)
      return;
  }
}

/// A number for each point: constant + Σ coefficients[i] · point[i].
struct LinearForm {
  int64_t constant = 0;
  llvm::SmallVector<int64_t> coefficients;

  int64_t operator()(llvm::ArrayRef<int64_t> point) const {
    int64_t value = constant;
    for (auto [coefficient, coordinate] : llvm::zip_equal(coefficients, point))
      value += coefficient * coordinate;
    return value;
  }
};

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_POINTS_H
