//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Names of components, phases, lanes and spaces, as every table, trace and message spells them.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_NAMES_H
#define PLATEAU_RUNTIME_COMMON_NAMES_H

#include "plateau/runtime.h"
#include <string>

namespace plateau::rt {

const char *getComponentName(int32_t component);
const char *getPhaseName(int32_t phase);
const char *getLaneName(plr_lane_kind lane);
const char *getSpaceName(plr_space space);

/// "linalg.matmul q_proj (layer 3, attention, forward)"; the layer is left out when there is none.
std::string describe(const plr_tag &tag);

/// What is wrong with a tag, empty when nothing is.
std::string checkTag(const plr_tag *tag);

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_NAMES_H
