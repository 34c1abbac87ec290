//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Errors with a formatted text.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_ERROR_H
#define PLATEAU_RUN_ERROR_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::plateau::run {

template <typename... Values>
llvm::Error makeError(const char *format, Values &&...values) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv(format, std::forward<Values>(values)...).str());
}

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_ERROR_H
