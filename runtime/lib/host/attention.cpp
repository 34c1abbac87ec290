//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels.h"
#include "simd/variants.h"

namespace plateau::rt::host {

static Fault checkStarts(int64_t rows, const int32_t *starts) {
  for (int64_t row = 0; row < rows; ++row)
    if (starts[row] < 0 || starts[row] > row)
      return "row " + std::to_string(row) + " has document start " + std::to_string(starts[row]) +
             ", but a document starts at a row from 0 to the row itself";
  return Fault();
}

Fault attention(plr_type type, int64_t rows, int64_t queryHeads, int64_t keyHeads, int64_t headSize, float scale,
                const void *query, const void *key, const void *value, const int32_t *starts, void *output, float *lse,
                void *workspace) {
  Fault fault = checkStarts(rows, starts);
  if (fault.empty())
    bestVariant().attention(type, rows, queryHeads, keyHeads, headSize, scale, query, key, value, starts, output, lse,
                            static_cast<float *>(workspace));
  return fault;
}

Fault attentionGrad(plr_type type, int64_t rows, int64_t queryHeads, int64_t keyHeads, int64_t headSize, float scale,
                    const void *cotangent, const void *query, const void *key, const void *value, const int32_t *starts,
                    const void *output, const float *lse, void *queryGrad, void *keyGrad, void *valueGrad,
                    void *workspace) {
  Fault fault = checkStarts(rows, starts);
  if (fault.empty())
    bestVariant().attentionGrad(type, rows, queryHeads, keyHeads, headSize, scale, cotangent, query, key, value, starts,
                                output, lse, queryGrad, keyGrad, valueGrad, static_cast<float *>(workspace));
  return fault;
}

} // namespace plateau::rt::host
