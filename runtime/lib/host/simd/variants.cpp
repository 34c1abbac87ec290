//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "variants.h"

namespace plateau::rt::host {

const Variant *getVariant(int index) {
  // What the compile options of the variants in kernels.cmake ask for.
  bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool wide = fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  switch (index) {
  case 0:
    return wide ? &avx512::variant : nullptr;
  case 1:
    return fma ? &avx2::variant : nullptr;
  case 2:
    return &baseline::variant;
  }
  return nullptr;
}

const Variant &bestVariant() {
  static const Variant &best = []() -> const Variant & {
    int index = 0;
    while (!getVariant(index))
      ++index;
    return *getVariant(index);
  }();
  return best;
}

} // namespace plateau::rt::host
