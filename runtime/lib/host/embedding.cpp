//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "kernels.h"
#include "simd/variants.h"
#include <cstring>

namespace plateau::rt::host {

static int64_t elementBytes(plr_type type) { return type == PLR_BF16 ? 2 : 4; }

static Fault checkIds(int64_t rows, int64_t vocabulary, const int32_t *ids) {
  for (int64_t row = 0; row < rows; ++row)
    if (ids[row] < 0 || ids[row] >= vocabulary)
      return "row " + std::to_string(row) + " has token id " + std::to_string(ids[row]) + ", but the table has " +
             std::to_string(vocabulary) + " rows";
  return Fault();
}

Fault embedding(plr_type type, int64_t rows, int64_t columns, int64_t vocabulary, const void *table, const int32_t *ids,
                void *result) {
  Fault fault = checkIds(rows, vocabulary, ids);
  if (!fault.empty())
    return fault;
  int64_t bytes = columns * elementBytes(type);
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(static_cast<char *>(result) + row * bytes, static_cast<const char *>(table) + ids[row] * bytes, bytes);
  return Fault();
}

Fault embeddingGrad(plr_type type, int64_t rows, int64_t columns, int64_t vocabulary, const void *cotangent,
                    const int32_t *ids, void *result, void *workspace) {
  Fault fault = checkIds(rows, vocabulary, ids);
  if (!fault.empty())
    return fault;
  // Counting sort: after placement, the rows with id v are order[ends[v - 1] … ends[v] - 1], ascending.
  int32_t *ends = static_cast<int32_t *>(workspace);
  int32_t *order = ends + vocabulary + 1;
  float *sum = reinterpret_cast<float *>(order + rows);
  std::memset(ends, 0, (vocabulary + 1) * sizeof(int32_t));
  for (int64_t row = 0; row < rows; ++row)
    ++ends[ids[row] + 1];
  for (int64_t id = 0; id < vocabulary; ++id)
    ends[id + 1] += ends[id];
  for (int64_t row = 0; row < rows; ++row)
    order[ends[ids[row]]++] = static_cast<int32_t>(row);

  const Variant &variant = bestVariant();
  int64_t bytes = columns * elementBytes(type);
  char *target = static_cast<char *>(result);
  for (int64_t id = 0, begin = 0; id < vocabulary; begin = ends[id++], target += bytes) {
    if (ends[id] == begin)
      std::memset(target, 0, bytes);
    else
      variant.embeddingSum(type, columns, ends[id] - begin, order + begin, cotangent, target, sum);
  }
  return Fault();
}

Fault embeddingShard(plr_type type, int64_t rows, int64_t columns, int64_t shardRows, int64_t vocabulary,
                     const int32_t *first, const void *shard, const int32_t *ids, void *result) {
  Fault fault = checkIds(rows, vocabulary, ids);
  if (!fault.empty())
    return fault;
  const int64_t bytes = columns * elementBytes(type);
  char *target = static_cast<char *>(result);
  for (int64_t row = 0; row < rows; ++row, target += bytes) {
    const int64_t place = int64_t(ids[row]) - *first;
    if (place >= 0 && place < shardRows)
      std::memcpy(target, static_cast<const char *>(shard) + place * bytes, bytes);
    else
      std::memset(target, 0, bytes);
  }
  return Fault();
}

void embeddingShardGrad(plr_type type, int64_t rows, int64_t columns, int64_t shardRows, const int32_t *first,
                        const void *cotangent, const int32_t *ids, float *sums) {
  const Variant &variant = bestVariant();
  const char *source = static_cast<const char *>(cotangent);
  for (int64_t row = 0; row < rows; ++row, source += columns * elementBytes(type)) {
    const int64_t place = int64_t(ids[row]) - *first;
    if (place >= 0 && place < shardRows)
      variant.columnSums(type, 1, columns, source, sums + place * columns);
  }
}

} // namespace plateau::rt::host
