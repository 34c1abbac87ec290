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

void plateau::rt::host::chooseBins(const plr_plan_shape &shape, int64_t ranks, const int32_t *ids,
                                   const Assignment &assignment, int64_t *positions, int32_t *bins, int32_t *counts) {
  const int64_t slots = shape.experts / ranks + shape.helper_slots, binCount = ranks * slots,
                leaves = shape.chunks * shape.leaves;
  std::fill(counts, counts + leaves * binCount, 0);
  int64_t leaf = 0;
  for (int64_t token = 0; token < shape.tokens; ++token) {
    int32_t *ofLeaf = counts + leaf * binCount;
    for (int64_t route = token * shape.top_k; route < (token + 1) * shape.top_k; ++route) {
      const int32_t expert = ids[route];
      if (expert < 0) {
        bins[route] = -1;
        continue;
      }
      // Positions ascend, so a piece that ends before this one is of no use any more.
      const int64_t position = positions[expert]++;
      int32_t &piece = assignment.firstPiece[expert];
      while (assignment.pieces[piece].end <= position)
        ++piece;
      bins[route] = static_cast<int32_t>(assignment.pieces[piece].rank * slots + assignment.pieces[piece].slot);
      ++ofLeaf[bins[route]];
    }
    leaf = leaf + 1 == leaves ? 0 : leaf + 1;
  }
}

void plateau::rt::host::placeRoutes(const plr_plan_shape &shape, int64_t binCount, const int32_t *iterationOf,
                                    int32_t *next, int32_t *places) {
  const int64_t leaves = shape.chunks * shape.leaves;
  int64_t leaf = 0;
  for (int64_t token = 0; token < shape.tokens; ++token) {
    int32_t *ofIteration = next + iterationOf[leaf] * binCount;
    for (int64_t route = token * shape.top_k; route < (token + 1) * shape.top_k; ++route)
      if (places[route] >= 0)
        places[route] = ofIteration[places[route]]++;
    leaf = leaf + 1 == leaves ? 0 : leaf + 1;
  }
}

void plateau::rt::host::scatterRows(const TokenSet &tokens, int64_t topK, int64_t rowBytes, const int32_t *places,
                                    const void *input, void *result) {
  if (rowBytes == 0)
    return;
  tokens.forEach([=](int64_t token) {
    for (int64_t slot = 0; slot < topK; ++slot)
      if (int32_t place = places[token * topK + slot]; place >= 0)
        std::memcpy(getRow(result, place, rowBytes), getRow(input, token, rowBytes), static_cast<size_t>(rowBytes));
  });
}

void plateau::rt::host::scatterValues(const TokenSet &tokens, int64_t topK, const int32_t *places, const float *values,
                                      float *result) {
  tokens.forEach([=](int64_t token) {
    for (int64_t route = token * topK; route < (token + 1) * topK; ++route)
      if (places[route] >= 0)
        result[places[route]] = values[route];
  });
}

void plateau::rt::host::gatherValues(const TokenSet &tokens, int64_t topK, const int32_t *places,
                                     const float *rowValues, float *result) {
  tokens.forEach([=](int64_t token) {
    for (int64_t route = token * topK; route < (token + 1) * topK; ++route)
      result[route] = places[route] >= 0 ? rowValues[places[route]] : 0.0f;
  });
}

template <typename Element>
static void sumSlotsOf(const TokenSet &tokens, int64_t topK, int64_t columns, const int32_t *places,
                       const Element *rows, Element *result) {
  constexpr int64_t block = 1024;
  float sums[block];
  tokens.forEach([&](int64_t token) {
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
  });
}

void plateau::rt::host::sumSlots(plr_type type, const TokenSet &tokens, int64_t topK, int64_t columns,
                                 const int32_t *places, const void *rows, void *result) {
  if (type == PLR_BF16)
    sumSlotsOf(tokens, topK, columns, places, static_cast<const BF16 *>(rows), static_cast<BF16 *>(result));
  else
    sumSlotsOf(tokens, topK, columns, places, static_cast<const float *>(rows), static_cast<float *>(result));
}
