//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The components and phases that memory is accounted under. The runtime's plr_component and plr_phase have the same
// values (a static assertion in lib/Conversion compares them).
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_COMPONENT_H
#define PLATEAU_INTERFACES_COMPONENT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

#include "plateau/Interfaces/ComponentEnums.h.inc"

#endif // PLATEAU_INTERFACES_COMPONENT_H
