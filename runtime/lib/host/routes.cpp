//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/routes.h"
#include "host/bf16.h"
#include <algorithm>

using namespace plateau::rt::host;

std::string plateau::rt::host::countRoutes(int64_t tokens, int64_t topK, int64_t experts, const int32_t *ids,
                                           int64_t *counts) {
  std::fill(counts, counts + experts, 0);
  for (int64_t route = 0; route < tokens * topK; ++route) {
    int32_t id = ids[route];
    if (id >= 0 && id < experts)
      ++counts[id];
    else if (id != -1)
      return "token " + std::to_string(route / topK) + " has expert " + std::to_string(id) + " in slot " +
             std::to_string(route % topK) + ", but there are experts 0 ... " + std::to_string(experts - 1) +
             ", and -1 for none";
  }
  return {};
}

void plateau::rt::host::placeRoutes(int64_t routes, int64_t experts, const int32_t *ids, const int64_t *counts,
                                    int32_t *places, int64_t *next) {
  if (experts > 0)
    next[0] = 0;
  for (int64_t expert = 1; expert < experts; ++expert)
    next[expert] = next[expert - 1] + counts[expert - 1];
  for (int64_t route = 0; route < routes; ++route)
    places[route] = ids[route] < 0 ? -1 : static_cast<int32_t>(next[ids[route]]++);
}

void plateau::rt::host::placeArrivals(int64_t sources, int64_t experts, const int64_t *counts, int32_t *places,
                                      int64_t *next) {
  int64_t rows = 0;
  for (int64_t expert = 0; expert < experts; ++expert)
    for (int64_t source = 0; source < sources; ++source) {
      next[source * experts + expert] = rows;
      rows += counts[source * experts + expert];
    }
  for (int64_t piece = 0; piece < sources * experts; ++piece)
    for (int64_t i = 0; i < counts[piece]; ++i)
      *places++ = static_cast<int32_t>(next[piece] + i);
}

void plateau::rt::host::scatterRows(int64_t count, int64_t repeats, int64_t rowBytes, const int32_t *places,
                                    const void *input, void *result) {
  if (rowBytes == 0)
    return;
  for (int64_t i = 0; i < count; ++i)
    if (places[i] >= 0)
      std::memcpy(getRow(result, places[i], rowBytes), getRow(input, i / repeats, rowBytes),
                  static_cast<size_t>(rowBytes));
}

void plateau::rt::host::gatherRows(int64_t count, int64_t rowBytes, const int32_t *places, const void *input,
                                   void *result) {
  if (rowBytes == 0)
    return;
  for (int64_t i = 0; i < count; ++i)
    if (places[i] >= 0)
      std::memcpy(getRow(result, i, rowBytes), getRow(input, places[i], rowBytes), static_cast<size_t>(rowBytes));
    else
      std::memset(getRow(result, i, rowBytes), 0, static_cast<size_t>(rowBytes));
}

template <typename Element>
static void sumSlotsOf(int64_t tokens, int64_t topK, int64_t columns, const int32_t *places, const Element *rows,
                       Element *result) {
  constexpr int64_t block = 1024;
  float sums[block];
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t column = 0; column < columns; column += block) {
      int64_t length = std::min(block, columns - column);
      bool first = true;
      for (int64_t slot = 0; slot < topK; ++slot) {
        int32_t place = places[token * topK + slot];
        if (place < 0)
          continue;
        const Element *row = rows + place * columns + column;
        // The first row replaces what was there: a lone row keeps its bits, the sign of zero included.
        if (first)
          for (int64_t i = 0; i < length; ++i)
            sums[i] = widen(row[i]);
        else
          for (int64_t i = 0; i < length; ++i)
            sums[i] += widen(row[i]);
        first = false;
      }
      if (first)
        std::fill(sums, sums + length, 0.0f);
      Element *to = result + token * columns + column;
      for (int64_t i = 0; i < length; ++i)
        narrow(sums[i], to[i]);
    }
}

void plateau::rt::host::sumSlots(plr_type type, int64_t tokens, int64_t topK, int64_t columns, const int32_t *places,
                                 const void *rows, void *result) {
  if (type == PLR_BF16)
    sumSlotsOf(tokens, topK, columns, places, static_cast<const BF16 *>(rows), static_cast<BF16 *>(result));
  else
    sumSlotsOf(tokens, topK, columns, places, static_cast<const float *>(rows), static_cast<float *>(result));
}
