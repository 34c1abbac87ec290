//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Reading and writing the #moe.scope of a location.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_SCOPE_H
#define PLATEAU_DIALECT_MOE_IR_SCOPE_H

#include "plateau/Dialect/MoE/IR/MoE.h"

namespace mlir::plateau::moe {

/// The scope of a location: the first found in it, outermost first; null when there is none.
ScopeAttr getScope(Location loc);

/// `loc` with `scope` as its scope. A scope it already has is replaced, its name kept.
Location withScope(Location loc, ScopeAttr scope);

/// `loc` with the phase of its scope replaced; `loc` itself when it has no scope.
Location withPhase(Location loc, Phase phase);

/// The name in a location ("q_proj"); empty when there is none.
StringRef getLocationName(Location loc);

} // namespace mlir::plateau::moe

#endif // PLATEAU_DIALECT_MOE_IR_SCOPE_H
