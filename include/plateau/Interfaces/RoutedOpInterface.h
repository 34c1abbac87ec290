//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Ops on the rows that tokens send to experts.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_ROUTEDOPINTERFACE_H
#define PLATEAU_INTERFACES_ROUTEDOPINTERFACE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::plateau {

enum class RoutedKind {
  Entry,  ///< Tokens to rows: moe.dispatch.
  Row,    ///< Rows to rows.
  Reduce, ///< Rows to what is plain: gradients of weights, summed over the rows.
  Exit    ///< Rows to tokens: moe.combine.
};

/// Whether a type is that of rows of a plan.
inline bool isRoutedType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 0 && tensor.isDynamicDim(0);
}

} // namespace mlir::plateau

#include "plateau/Interfaces/RoutedOpInterface.h.inc"

#endif // PLATEAU_INTERFACES_ROUTEDOPINTERFACE_H
