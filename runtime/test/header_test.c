//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The interface is one of C: this file compiles, and the enumerations are as wide as the types that carry them.
//===----------------------------------------------------------------------===//

#include "plateau/program.h"
#include "plateau/runtime.h"
#include "plateau/runtime_footprint.h"

_Static_assert(PLR_COMPONENTS == 14, "components of the compiler");
_Static_assert(PLR_PHASES == 3, "phases of the compiler");
_Static_assert(sizeof(plr_status) == 4 && sizeof(plr_lane_kind) == 4, "calls pass 32-bit integers");
