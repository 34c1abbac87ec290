//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "attention_blocks.h"
#include "multiply.h"
#include "variants.h"

namespace plateau::rt::host::PLATEAU_RT_VARIANT {

namespace {

/// The softmax of a block of queries, as far as its keys have been seen, and where its blocks lie in the workspace.
struct Forward {
  int64_t headSize, padded;
  float *query;  ///< Strips of [head size, strip], scaled.
  float *output; ///< Strips of [head size, strip]: Σ exp(score − top) · value.
  float *key;    ///< [key, head size].
  float *value;  ///< [key, head size].
  float *scores; ///< [key, strip].
  float *top;    ///< [query]: largest score.
  float *total;  ///< [query]: Σ exp(score − top).

  Forward(int64_t headSize, float *workspace) : headSize(headSize), padded(plr_attention_padded(headSize)) {
    auto take = [&](int64_t count) {
      float *result = workspace;
      workspace += count;
      return result;
    };
    query = take(queryBlock * padded);
    output = take(queryBlock * padded);
    key = take(keyBlock * padded);
    value = take(keyBlock * padded);
    scores = take(keyBlock * strip);
    top = take(queryBlock);
    total = take(queryBlock);
  }
};

} // namespace

/// Turns the scores of a strip into exponentials relative to the largest score so far, and scales what was summed
/// relative to the old one.
static void softmaxStep(int64_t keys, int64_t headSize, float *scores, float *top, float *total, float *output) {
  for (int64_t lane = 0; lane < strip; lane += lanes) {
    Vec before = load(top + lane);
    Vec tops[4] = {before, before, before, before};
    int64_t j = 0;
    for (; j + 4 <= keys; j += 4)
      for (int i = 0; i < 4; ++i)
        tops[i] = maximum(load(scores + (j + i) * strip + lane), tops[i]);
    for (; j < keys; ++j)
      tops[0] = maximum(load(scores + j * strip + lane), tops[0]);
    Vec after = maximum(maximum(tops[0], tops[1]), maximum(tops[2], tops[3]));

    Vec sums[2] = {};
    for (j = 0; j + 2 <= keys; j += 2)
      for (int i = 0; i < 2; ++i) {
        float *target = scores + (j + i) * strip + lane;
        Vec e = exponential(load(target) - after);
        store(target, e);
        sums[i] += e;
      }
    if (j < keys) {
      float *target = scores + j * strip + lane;
      Vec e = exponential(load(target) - after);
      store(target, e);
      sums[0] += e;
    }

    // Most blocks hold no new largest score; then the factors are exactly 1.
    Vec factor = exponential(before - after);
    store(top + lane, after);
    store(total + lane, load(total + lane) * factor + (sums[0] + sums[1]));
    if (anyDiffers(before, after))
      for (int64_t d = 0; d < headSize; ++d)
        store(output + d * strip + lane, load(output + d * strip + lane) * factor);
  }
}

template <typename T>
static void attention(int64_t rows, int64_t queryHeads, int64_t keyHeads, int64_t headSize, float scale, const T *query,
                      const T *key, const T *value, const int32_t *starts, T *output, float *lse, float *workspace) {
  Forward w(headSize, workspace);
  int64_t queryStride = queryHeads * headSize, keyStride = keyHeads * headSize, stripSize = w.padded * strip;
  for (int64_t head = 0; head < queryHeads; ++head) {
    int64_t keyHead = head / (queryHeads / keyHeads);
    forEachQueryBlock(rows, starts, [&](int64_t start, int64_t begin, int64_t count) {
      int64_t end = begin + count;
      packStrips(count, headSize, query + begin * queryStride + head * headSize, queryStride, scale, stripSize,
                 w.query);
      __builtin_memset(w.output, 0, queryBlock * w.padded * sizeof(float));
      for (int64_t i = 0; i < queryBlock; ++i) {
        w.top[i] = lowest;
        w.total[i] = 0;
      }
      for (int64_t keyBegin = start; keyBegin < end; keyBegin += keyBlock) {
        int64_t keys = smaller(keyBlock, end - keyBegin);
        int64_t offset = keyBegin * keyStride + keyHead * headSize;
        packRows(keys, headSize, key + offset, keyStride, 1, w.padded, w.key);
        packRows(keys, headSize, value + offset, keyStride, 1, w.padded, w.value);
        for (int64_t i = 0; i < count; i += strip) {
          int64_t first = begin + i, last = smaller(first + strip, end) - 1;
          int64_t seen = smaller(keys, last - keyBegin + 1);
          if (seen <= 0)
            continue;
          multiply<false>(seen, strip, headSize, Left<false>{w.key, w.padded}, w.query + i * w.padded, strip, w.scores,
                          strip);
          maskLaterKeys(seen, keyBegin, first, w.scores, strip);
          softmaxStep(seen, headSize, w.scores, w.top + i, w.total + i, w.output + i * w.padded);
          multiply<true>(headSize, strip, seen, Left<true>{w.value, w.padded}, w.scores, strip, w.output + i * w.padded,
                         strip);
        }
      }
      for (int64_t i = 0; i < count; i += strip) {
        float *sums = w.output + i * w.padded;
        for (int64_t lane = 0; lane < strip; lane += lanes) {
          Vec inverse = 1.0f / load(w.total + i + lane);
          for (int64_t d = 0; d < headSize; ++d)
            store(sums + d * strip + lane, load(sums + d * strip + lane) * inverse);
        }
        // The query strip is done with and has room for the rows.
        int64_t valid = smaller(strip, count - i);
        float *buffer = w.query + i * w.padded;
        transpose(headSize, valid, sums, strip, 1, buffer, w.padded);
        unpackRows(valid, headSize, buffer, w.padded, output + (begin + i) * queryStride + head * headSize,
                   queryStride);
        for (int64_t j = 0; j < valid; ++j)
          lse[(begin + i + j) * queryHeads + head] = w.top[i + j] + __builtin_logf(w.total[i + j]);
      }
    });
  }
}

void attention(plr_type type, int64_t rows, int64_t queryHeads, int64_t keyHeads, int64_t headSize, float scale,
               const void *query, const void *key, const void *value, const int32_t *starts, void *output, float *lse,
               float *workspace) {
  if (type == PLR_BF16)
    attention(rows, queryHeads, keyHeads, headSize, scale, static_cast<const BF16 *>(query),
              static_cast<const BF16 *>(key), static_cast<const BF16 *>(value), starts, static_cast<BF16 *>(output),
              lse, workspace);
  else
    attention(rows, queryHeads, keyHeads, headSize, scale, static_cast<const float *>(query),
              static_cast<const float *>(key), static_cast<const float *>(value), starts, static_cast<float *>(output),
              lse, workspace);
}

} // namespace plateau::rt::host::PLATEAU_RT_VARIANT
