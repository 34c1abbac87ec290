//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Ops on the rows that tokens send to experts.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_ROUTEDOPINTERFACE_TD
#define PLATEAU_INTERFACES_ROUTEDOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def RoutedOpInterface : OpInterface<"RoutedOpInterface"> {
  let description = [{
    An op on the rows that tokens send to experts by a plan. Such rows are tensors whose first dimension is dynamic; everything else
    that the op has is in token space (rows of the rank's tokens) or plain. An op of kind `Row` gives each row from rows of the same number
    alone, so a part of the rows can be computed by itself.
  }];
  let cppNamespace = "::mlir::plateau";
  let methods = [
    InterfaceMethod<"What the op does with rows.", "::mlir::plateau::RoutedKind", "getRoutedKind">
  ];
}

#endif // PLATEAU_INTERFACES_ROUTEDOPINTERFACE_TD
