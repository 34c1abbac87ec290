//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/Scope.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

ScopeAttr moe::getScope(Location loc) {
  ScopeAttr scope;
  loc->walk([&](Location inner) {
    auto fused = dyn_cast<FusedLocWith<ScopeAttr>>(inner);
    if (!fused)
      return WalkResult::advance();
    scope = fused.getMetadata();
    return WalkResult::interrupt();
  });
  return scope;
}

Location moe::withScope(Location loc, ScopeAttr scope) {
  if (auto fused = dyn_cast<FusedLocWith<ScopeAttr>>(loc))
    return FusedLoc::get(loc.getContext(), fused.getLocations(), scope);
  return FusedLoc::get(loc.getContext(), {loc}, scope);
}

Location moe::withPhase(Location loc, Phase phase) {
  ScopeAttr scope = getScope(loc);
  if (!scope)
    return loc;
  return withScope(loc, ScopeAttr::get(loc.getContext(), phase, scope.getComponent(), scope.getLayer()));
}

StringRef moe::getLocationName(Location loc) {
  StringRef name;
  loc->walk([&](Location inner) {
    auto named = dyn_cast<NameLoc>(inner);
    if (!named)
      return WalkResult::advance();
    name = named.getName();
    return WalkResult::interrupt();
  });
  return name;
}
