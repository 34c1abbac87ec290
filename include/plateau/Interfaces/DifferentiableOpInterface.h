//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_DIFFERENTIABLEOPINTERFACE_H
#define PLATEAU_INTERFACES_DIFFERENTIABLEOPINTERFACE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include "plateau/Interfaces/DifferentiableOpInterface.h.inc"

#endif // PLATEAU_INTERFACES_DIFFERENTIABLEOPINTERFACE_H
