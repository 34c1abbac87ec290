//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/cpu_features.h"
#include <sstream>

/// The builtin takes literals only.
static bool isMissing(const std::string &feature) {
#define CHECK(name)                                                                                                    \
  if (feature == name)                                                                                                 \
    return !__builtin_cpu_supports(name);
  CHECK("sse3")
  CHECK("ssse3")
  CHECK("sse4.1")
  CHECK("sse4.2")
  CHECK("sse4a")
  CHECK("popcnt")
  CHECK("avx")
  CHECK("fma")
  CHECK("fma4")
  CHECK("xop")
  CHECK("avx2")
  CHECK("bmi")
  CHECK("bmi2")
  CHECK("gfni")
  CHECK("avx512f")
  CHECK("avx512cd")
  CHECK("avx512bw")
  CHECK("avx512dq")
  CHECK("avx512vl")
  CHECK("avx512ifma")
  CHECK("avx512vbmi")
  CHECK("avx512vbmi2")
  CHECK("avx512vnni")
  CHECK("avx512bitalg")
  CHECK("avx512vpopcntdq")
  CHECK("avx512bf16")
#undef CHECK
  return false;
}

std::string plateau::rt::findMissingFeatures(const char *features) {
  std::string missing, feature;
  for (std::istringstream list(features ? features : ""); std::getline(list, feature, ',');)
    if (isMissing(feature))
      missing += (missing.empty() ? "" : ",") + feature;
  return missing;
}
