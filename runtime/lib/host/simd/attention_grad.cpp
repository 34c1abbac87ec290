//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "attention_blocks.h"
#include "multiply.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

namespace {

/// Where the blocks lie in the workspace.
struct Backward {
  int64_t padded;
  float *keySum, *valueSum;         ///< [rows, padded]: one key head's gradients.
  float *query, *cotangent;         ///< Strips of [head size, strip]; the query is scaled here and below.
  float *queryRows, *cotangentRows; ///< [query, padded].
  float *queryGrad;                 ///< Strips of [head size, strip].
  float *key, *value;               ///< [key, padded].
  float *probabilities;             ///< [key, query].
  float *scoreGrad;                 ///< [key, query].
  float *lse, *delta;               ///< [query].

  Backward(int64_t rows, int64_t headSize, float *workspace) : padded(plr_attention_padded(headSize)) {
    auto take = [&](int64_t count) {
      float *result = workspace;
      workspace += count;
      return result;
    };
    keySum = take(rows * padded);
    valueSum = take(rows * padded);
    query = take(queryBlock * padded);
    cotangent = take(queryBlock * padded);
    queryRows = take(queryBlock * padded);
    cotangentRows = take(queryBlock * padded);
    queryGrad = take(queryBlock * padded);
    key = take(keyBlock * padded);
    value = take(keyBlock * padded);
    probabilities = take(keyBlock * queryBlock);
    scoreGrad = take(keyBlock * queryBlock);
    lse = take(queryBlock);
    delta = take(queryBlock);
  }
};

} // namespace

/// scores → probabilities exp(score − lse), and their cotangents → P · (dP − delta), for a strip.
static void softmaxGrad(int64_t keys, float *scores, float *cotangents, const float *lse, const float *delta) {
  for (int64_t lane = 0; lane < strip; lane += lanes) {
    Vec l = load(lse + lane), d = load(delta + lane);
    for (int64_t j = 0; j < keys; ++j) {
      float *s = scores + j * queryBlock + lane, *g = cotangents + j * queryBlock + lane;
      Vec p = exponential(load(s) - l);
      store(s, p);
      store(g, p * (load(g) - d));
    }
  }
}

/// One block of queries of one head against all the keys that it sees.
template <typename T>
static void blockGrad(const Backward &w, int64_t headSize, int64_t start, int64_t begin, int64_t count, const T *key,
                      const T *value, int64_t keyStride) {
  int64_t end = begin + count;
  for (int64_t keyBegin = start; keyBegin < end; keyBegin += keyBlock) {
    int64_t keys = smaller(keyBlock, end - keyBegin);
    packRows(keys, headSize, key + keyBegin * keyStride, keyStride, 1, w.padded, w.key);
    packRows(keys, headSize, value + keyBegin * keyStride, keyStride, 1, w.padded, w.value);
    for (int64_t i = 0; i < count; i += strip) {
      int64_t first = begin + i, last = smaller(first + strip, end) - 1;
      if (last < keyBegin)
        continue;
      // Whole groups of keys, as they are taken below.
      int64_t seen = smaller(keys, (last - keyBegin) / tileRows * tileRows + tileRows);
      float *scores = w.probabilities + i, *grads = w.scoreGrad + i;
      multiply<false>(seen, strip, headSize, Left<false>{w.key, w.padded}, w.query + i * w.padded, strip, scores,
                      queryBlock);
      multiply<false>(seen, strip, headSize, Left<false>{w.value, w.padded}, w.cotangent + i * w.padded, strip, grads,
                      queryBlock);
      maskLaterKeys(seen, keyBegin, first, scores, queryBlock);
      softmaxGrad(seen, scores, grads, w.lse + i, w.delta + i);
      multiply<true>(headSize, strip, seen, Left<true>{w.key, w.padded}, grads, queryBlock, w.queryGrad + i * w.padded,
                     strip);
    }
    // Queries before a key do not see it: a group of keys starts at the first query that sees its first key.
    for (int64_t j = 0; j < keys; j += tileRows) {
      int64_t group = smaller(tileRows, keys - j), row = keyBegin + j;
      int64_t skip = row > begin ? row - begin : 0;
      multiply<true>(group, w.padded, count - skip, Left<false>{w.probabilities + j * queryBlock + skip, queryBlock},
                     w.cotangentRows + skip * w.padded, w.padded, w.valueSum + row * w.padded, w.padded);
      multiply<true>(group, w.padded, count - skip, Left<false>{w.scoreGrad + j * queryBlock + skip, queryBlock},
                     w.queryRows + skip * w.padded, w.padded, w.keySum + row * w.padded, w.padded);
    }
  }
}

template <typename T>
static void attentionGrad(int64_t rows, int64_t queryHeads, int64_t keyHeads, int64_t headSize, float scale,
                          const T *cotangent, const T *query, const T *key, const T *value, const int32_t *starts,
                          const T *output, const float *lse, T *queryGrad, T *keyGrad, T *valueGrad, float *workspace) {
  Backward w(rows, headSize, workspace);
  int64_t queryStride = queryHeads * headSize, keyStride = keyHeads * headSize, stripSize = w.padded * strip;
  int64_t group = queryHeads / keyHeads;
  for (int64_t keyHead = 0; keyHead < keyHeads; ++keyHead) {
    __builtin_memset(w.keySum, 0, rows * w.padded * sizeof(float));
    __builtin_memset(w.valueSum, 0, rows * w.padded * sizeof(float));
    for (int64_t head = keyHead * group; head < (keyHead + 1) * group; ++head)
      forEachQueryBlock(rows, starts, [&](int64_t start, int64_t begin, int64_t count) {
        int64_t offset = begin * queryStride + head * headSize;
        packStrips(count, headSize, query + offset, queryStride, scale, stripSize, w.query);
        packRows(count, headSize, query + offset, queryStride, scale, w.padded, w.queryRows);
        packStrips(count, headSize, cotangent + offset, queryStride, 1, stripSize, w.cotangent);
        packRows(count, headSize, cotangent + offset, queryStride, 1, w.padded, w.cotangentRows);
        __builtin_memset(w.queryGrad, 0, queryBlock * w.padded * sizeof(float));
        for (int64_t i = 0; i < queryBlock; ++i) {
          // An infinite lse gives the lanes past the last query probabilities of zero.
          w.lse[i] = i < count ? lse[(begin + i) * queryHeads + head] : infinity;
          w.delta[i] = 0;
        }
        for (int64_t i = 0; i < count; ++i) {
          Vec products = {};
          const T *row = output + offset + i * queryStride;
          forEachVector(headSize, [&](int64_t j, int64_t n) {
            products = fusedMultiplyAdd(load(row + j, n), load(w.cotangentRows + i * w.padded + j, n), products);
          });
          w.delta[i] = sum(products);
        }
        blockGrad(w, headSize, start, begin, count, key + keyHead * headSize, value + keyHead * headSize, keyStride);
        for (int64_t i = 0; i < count; i += strip) {
          // The query strip is done with and has room for the rows.
          int64_t valid = smaller(strip, count - i);
          float *buffer = w.query + i * w.padded;
          transpose(headSize, valid, w.queryGrad + i * w.padded, strip, scale, buffer, w.padded);
          unpackRows(valid, headSize, buffer, w.padded, queryGrad + offset + i * queryStride, queryStride);
        }
      });
    unpackRows(rows, headSize, w.keySum, w.padded, keyGrad + keyHead * headSize, keyStride);
    unpackRows(rows, headSize, w.valueSum, w.padded, valueGrad + keyHead * headSize, keyStride);
  }
}

void attentionGrad(plr_type type, int64_t rows, int64_t queryHeads, int64_t keyHeads, int64_t headSize, float scale,
                   const void *cotangent, const void *query, const void *key, const void *value, const int32_t *starts,
                   const void *output, const float *lse, void *queryGrad, void *keyGrad, void *valueGrad,
                   float *workspace) {
  if (type == PLR_BF16)
    attentionGrad(rows, queryHeads, keyHeads, headSize, scale, static_cast<const BF16 *>(cotangent),
                  static_cast<const BF16 *>(query), static_cast<const BF16 *>(key), static_cast<const BF16 *>(value),
                  starts, static_cast<const BF16 *>(output), lse, static_cast<BF16 *>(queryGrad),
                  static_cast<BF16 *>(keyGrad), static_cast<BF16 *>(valueGrad), workspace);
  else
    attentionGrad(rows, queryHeads, keyHeads, headSize, scale, static_cast<const float *>(cotangent),
                  static_cast<const float *>(query), static_cast<const float *>(key), static_cast<const float *>(value),
                  starts, static_cast<const float *>(output), lse, static_cast<float *>(queryGrad),
                  static_cast<float *>(keyGrad), static_cast<float *>(valueGrad), workspace);
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
