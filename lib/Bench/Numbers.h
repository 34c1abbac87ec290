//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Numbers that methods are given, and how those that they give are compared.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_BENCH_NUMBERS_H
#define PLATEAU_LIB_BENCH_NUMBERS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace mlir::plateau::bench {

template <typename Number>
llvm::ArrayRef<char> toBytes(const std::vector<Number> &numbers) {
  return {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(Number)};
}
template <typename Number>
llvm::MutableArrayRef<char> toMutableBytes(std::vector<Number> &numbers) {
  return {reinterpret_cast<char *>(numbers.data()), numbers.size() * sizeof(Number)};
}

/// Normal numbers of mean 0, in f32 or rounded to bf16, as bytes; those of `name` and `rank` alone. After the first
/// million they come again.
std::vector<char> drawMatrix(uint64_t seed, llvm::StringRef name, int rank, int64_t elements, double deviation,
                             bool isBF16);

/// Fails at the first element that differs by more than `tolerance` of the largest one.
llvm::Error compareNumbers(llvm::ArrayRef<float> first, llvm::StringRef firstName, llvm::ArrayRef<float> other,
                           llvm::StringRef otherName, llvm::StringRef what, int rank, double tolerance);

double getMedian(std::vector<double> values);

} // namespace mlir::plateau::bench

#endif // PLATEAU_LIB_BENCH_NUMBERS_H
