//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Where rows go that tokens send to experts, and the loops that move them there. A route is a token's slot; its number
// is token · top_k + slot, and its place −1 when it has no expert.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_ROUTES_H
#define PLATEAU_RUNTIME_HOST_ROUTES_H

#include "plateau/runtime.h"
#include <string>

namespace plateau::rt::host {

/// counts[experts] = the routes to each expert. Names token, slot and id of an id that is neither −1 nor an expert;
/// empty when there is none.
std::string countRoutes(int64_t tokens, int64_t topK, int64_t experts, const int32_t *ids, int64_t *counts);
/// Places by expert, then token, then slot. next[experts] is scratch memory.
void placeRoutes(int64_t routes, int64_t experts, const int32_t *ids, const int64_t *counts, int32_t *places,
                 int64_t *next);
/// places[rows] by expert, then source, of rows that come by source, then expert: counts[sources, experts] of each.
/// next[sources, experts] is scratch memory.
void placeArrivals(int64_t sources, int64_t experts, const int64_t *counts, int32_t *places, int64_t *next);

/// The address of a row.
inline const char *getRow(const void *rows, int64_t row, int64_t rowBytes) {
  return static_cast<const char *>(rows) + row * rowBytes;
}
inline char *getRow(void *rows, int64_t row, int64_t rowBytes) { return static_cast<char *>(rows) + row * rowBytes; }

/// result[places[i]] = input[i / repeats] for each i < count that has a place.
void scatterRows(int64_t count, int64_t repeats, int64_t rowBytes, const int32_t *places, const void *input,
                 void *result);
/// result[i] = input[places[i]]; zeros where there is no place.
void gatherRows(int64_t count, int64_t rowBytes, const int32_t *places, const void *input, void *result);
/// result[tokens, columns] = the sum of each token's rows, slots ascending, in f32, rounded once; 0 without any.
void sumSlots(plr_type type, int64_t tokens, int64_t topK, int64_t columns, const int32_t *places, const void *rows,
              void *result);

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_ROUTES_H
