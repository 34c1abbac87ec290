//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Cell.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

const void *interpreter::getElements(const Tensor &tensor) {
  return tensor.visit([](auto elements) -> const void * { return elements.data(); });
}

void *interpreter::getMutableElements(Tensor &tensor) {
  if (tensor.holds<double>())
    return tensor.getMutable<double>().data();
  if (tensor.holds<Field>())
    return tensor.getMutable<Field>().data();
  return tensor.getMutable<int64_t>().data();
}

ArrayRef<int64_t> interpreter::getShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getShape() : ArrayRef<int64_t>();
}

Tensor interpreter::makeUndefined(Type type, ArrayRef<int64_t> shape, Mode mode) {
  if (!isa<FloatType>(getElementTypeOrSelf(type)))
    return Tensor::make(shape, getUndefined<int64_t>());
  return mode == Mode::Float64 ? Tensor::make(shape, getUndefined<double>())
                               : Tensor::make(shape, getUndefined<Field>());
}

Tensor interpreter::makeUndefined(Type type, Mode mode) { return makeUndefined(type, getShape(type), mode); }

int64_t interpreter::normalizeInteger(uint64_t bits, unsigned width) {
  if (width == 1)
    return bits & 1;
  unsigned unused = 64 - width;
  return static_cast<int64_t>(bits << unused) >> unused;
}

unsigned interpreter::getIntegerWidth(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIndex() ? 64 : element.isInteger() ? element.getIntOrFloatBitWidth() : 0;
}
