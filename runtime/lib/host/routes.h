//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Where rows go that tokens send to experts, and the loops that move them there. A route is a token's slot; its number
// is token · top_k + slot, and its place −1 when it has no expert. A bin is an expert slot of a rank, rank · slots +
// slot.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_ROUTES_H
#define PLATEAU_RUNTIME_HOST_ROUTES_H

#include "host/least_loaded.h"
#include "plateau/runtime.h"
#include <string>

namespace plateau::rt::host {

/// The tokens of an iteration: those of `count` leaves, every `step`-th from `first` on. Leaf q has the tokens q, q +
/// leaves, ...
struct TokenSet {
  int64_t tokens, leaves, first, step, count;

  template <typename Body>
  void forEach(const Body &body) const {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t token = first + i * step; token < tokens; token += leaves)
        body(token);
  }
  static TokenSet all(int64_t tokens) { return {tokens, 1, 0, 1, 1}; }
};

/// counts[experts] = the routes to each expert. Names token, slot and id of an id that is neither −1 nor an expert;
/// empty when there is none.
std::string countRoutes(int64_t tokens, int64_t topK, int64_t experts, const int32_t *ids, int64_t *counts);
/// bins[tokens, top_k] of the routes, −1 for none, and counts[leaves, bins of all ranks] of each leaf.
/// positions[experts] is where this rank's rows begin in each expert's list; it is used up, and so is
/// assignment.firstPiece.
void chooseBins(const plr_plan_shape &shape, int64_t ranks, const int32_t *ids, const Assignment &assignment,
                int64_t *positions, int32_t *bins, int32_t *counts);
/// Turns the bins of an iteration's tokens into places: by bin, then token, then slot. iterationOf[leaves] says which
/// iteration a leaf is in; next[iterations, binCount] is where the rows of each bin begin, and then where they end.
void placeRoutes(const plr_plan_shape &shape, int64_t binCount, const int32_t *iterationOf, int32_t *next,
                 int32_t *places);

/// The address of a row.
inline const char *getRow(const void *rows, int64_t row, int64_t rowBytes) {
  return static_cast<const char *>(rows) + row * rowBytes;
}
inline char *getRow(void *rows, int64_t row, int64_t rowBytes) { return static_cast<char *>(rows) + row * rowBytes; }

/// result[places[t, s]] = input[t] for each slot s with a place of each of the tokens t.
void scatterRows(const TokenSet &tokens, int64_t topK, int64_t rowBytes, const int32_t *places, const void *input,
                 void *result);
/// result[places[t, s]] = values[t, s] likewise.
void scatterValues(const TokenSet &tokens, int64_t topK, const int32_t *places, const float *values, float *result);
/// result[t, s] = rowValues[places[t, s]]; 0 where there is no place.
void gatherValues(const TokenSet &tokens, int64_t topK, const int32_t *places, const float *rowValues, float *result);
/// result[t, columns] = the sum of the rows of each of the tokens t, slots ascending, in f32, rounded once; 0 without
/// any.
void sumSlots(plr_type type, const TokenSet &tokens, int64_t topK, int64_t columns, const int32_t *places,
              const void *rows, void *result);

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_ROUTES_H
