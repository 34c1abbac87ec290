//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Workspace of the runtime's kernels, in bytes, from shapes alone. The compiler lays memory out by these formulas and the
// runtime checks what it is handed against them, so they stand in one place.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_FOOTPRINT_H
#define PLATEAU_RUNTIME_FOOTPRINT_H

#include <stdint.h>

/// Rows of a block of queries and of a block of keys in attention.
#define PLR_ATTENTION_QUERY_BLOCK 64
#define PLR_ATTENTION_KEY_BLOCK 64

/// plr_attention: packed query, key, value, score and output blocks in f32. Does not depend on the number of rows.
static inline int64_t plr_footprint_attention(int64_t rows, int64_t query_heads, int64_t key_heads, int64_t head_size) {
  (void)rows, (void)query_heads, (void)key_heads;
  return 4 * (2 * PLR_ATTENTION_QUERY_BLOCK * head_size + 2 * PLR_ATTENTION_KEY_BLOCK * head_size +
              PLR_ATTENTION_QUERY_BLOCK * PLR_ATTENTION_KEY_BLOCK + 4 * PLR_ATTENTION_QUERY_BLOCK);
}

/// plr_attention_grad: blocks, delta [rows, query_heads], and the f32 sums of one key head's key and value gradients.
static inline int64_t plr_footprint_attention_grad(int64_t rows, int64_t query_heads, int64_t key_heads,
                                                   int64_t head_size) {
  (void)key_heads;
  return 4 * (rows * query_heads + 2 * rows * head_size + 4 * PLR_ATTENTION_QUERY_BLOCK * head_size +
              4 * PLR_ATTENTION_KEY_BLOCK * head_size + 4 * PLR_ATTENTION_QUERY_BLOCK * PLR_ATTENTION_KEY_BLOCK);
}

/// plr_embedding_grad: the tokens ordered by id (counting sort), and one f32 row.
static inline int64_t plr_footprint_embedding_grad(int64_t rows, int64_t vocabulary, int64_t columns) {
  return 4 * (rows + vocabulary + 1 + columns);
}

/// plr_rms_norm_grad: the f32 sum of the weight's gradient.
static inline int64_t plr_footprint_rms_norm_grad(int64_t columns) { return 4 * columns; }

#endif // PLATEAU_RUNTIME_FOOTPRINT_H
