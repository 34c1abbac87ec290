//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A value of the interpreter: a dense, row-major tensor (a scalar has no dimensions).
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERPRETER_TENSOR_H
#define PLATEAU_INTERPRETER_TENSOR_H

#include "plateau/Interpreter/Field.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cassert>
#include <limits>
#include <memory>
#include <variant>
#include <vector>

namespace mlir::plateau::interpreter {

/// What a floating-point element nobody stored to holds: NaN, or the mark of the field. Of integers: the smallest one.
template <typename Scalar>
Scalar getUndefined();
template <>
inline double getUndefined<double>() {
  return std::numeric_limits<double>::quiet_NaN();
}
template <>
inline Field getUndefined<Field>() {
  return Field::undefined();
}
template <>
inline int64_t getUndefined<int64_t>() {
  return std::numeric_limits<int64_t>::min();
}

/// Elements are double or Field for every floating-point type of the IR, int64_t for every integer type and index (sign
/// extended; i1 is 0 or 1). Copies share their elements, which do not change once the tensor is the value of an op.
class Tensor {
public:
  Tensor() = default;

  template <typename Scalar>
  static Tensor make(llvm::ArrayRef<int64_t> shape, Scalar value) {
    int64_t size = 1;
    for (int64_t dimension : shape)
      size *= dimension;
    return make(shape, std::vector<Scalar>(size, value));
  }
  template <typename Scalar>
  static Tensor make(llvm::ArrayRef<int64_t> shape, std::vector<Scalar> elements) {
    Tensor tensor;
    tensor.shape.assign(shape.begin(), shape.end());
    tensor.storage = std::make_shared<Storage>(std::move(elements));
    return tensor;
  }

  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getSize() const {
    return std::visit([](const auto &elements) { return int64_t(elements.size()); }, *storage);
  }

  template <typename Scalar>
  bool holds() const {
    return storage && std::holds_alternative<std::vector<Scalar>>(*storage);
  }
  template <typename Scalar>
  llvm::ArrayRef<Scalar> get() const {
    assert(holds<Scalar>());
    return std::get<std::vector<Scalar>>(*storage);
  }
  /// Only for a tensor that nothing else shares yet.
  template <typename Scalar>
  llvm::MutableArrayRef<Scalar> getMutable() {
    assert(holds<Scalar>() && storage.use_count() == 1);
    return std::get<std::vector<Scalar>>(*storage);
  }

  /// The same elements in another shape of the same size.
  Tensor reshape(llvm::ArrayRef<int64_t> newShape) const {
    Tensor tensor = *this;
    tensor.shape.assign(newShape.begin(), newShape.end());
    return tensor;
  }
  /// The same elements, shared with nothing.
  Tensor copy() const {
    Tensor tensor;
    tensor.shape = shape;
    tensor.storage = std::make_shared<Storage>(*storage);
    return tensor;
  }

  /// Calls `function` with the elements as an ArrayRef of their own scalar type.
  template <typename Function>
  auto visit(Function &&function) const {
    return std::visit([&](const auto &elements) { return function(llvm::ArrayRef(elements)); }, *storage);
  }

private:
  using Storage = std::variant<std::vector<double>, std::vector<Field>, std::vector<int64_t>>;

  llvm::SmallVector<int64_t, 4> shape;
  std::shared_ptr<Storage> storage;
};

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_INTERPRETER_TENSOR_H
