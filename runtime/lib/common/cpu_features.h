//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Whether this machine can run compiled code.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_CPU_FEATURES_H
#define PLATEAU_RUNTIME_COMMON_CPU_FEATURES_H

#include <string>

namespace plateau::rt {

/// Those of the instruction sets `features` (names with commas between them) that this machine lacks, in the same
/// form. Names are looked up among those that elementwise code can be made of; others do not matter to it.
std::string findMissingFeatures(const char *features);

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_CPU_FEATURES_H
