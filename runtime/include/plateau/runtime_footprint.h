//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Workspace of the runtime's kernels, in bytes, from shapes alone. The compiler lays memory out by these formulas and
// the runtime checks what it is handed against them, so they stand in one place.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_FOOTPRINT_H
#define PLATEAU_RUNTIME_FOOTPRINT_H

#include <stdint.h>

/// Rows of a block of queries and of a block of keys in attention; queries are taken by strips inside a block.
#define PLR_ATTENTION_QUERY_BLOCK 128
#define PLR_ATTENTION_KEY_BLOCK 64
#define PLR_ATTENTION_STRIP 32

/// A head's size in attention's blocks: whole vectors of the widest instruction set.
static inline int64_t plr_attention_padded(int64_t head_size) { return (head_size + 15) / 16 * 16; }

/// plr_attention: blocks of query, output, key, value and scores in f32, and two numbers a query. Does not depend on
/// the number of rows.
static inline int64_t plr_footprint_attention(int64_t rows, int64_t query_heads, int64_t key_heads, int64_t head_size) {
  (void)rows, (void)query_heads, (void)key_heads;
  return 4 * (2 * (PLR_ATTENTION_QUERY_BLOCK + PLR_ATTENTION_KEY_BLOCK) * plr_attention_padded(head_size) +
              PLR_ATTENTION_KEY_BLOCK * PLR_ATTENTION_STRIP + 2 * PLR_ATTENTION_QUERY_BLOCK);
}

/// plr_attention_grad: the f32 sums of one key head's key and value gradients, blocks, and two numbers a query.
static inline int64_t plr_footprint_attention_grad(int64_t rows, int64_t query_heads, int64_t key_heads,
                                                   int64_t head_size) {
  (void)query_heads, (void)key_heads;
  return 4 *
         ((2 * rows + 5 * PLR_ATTENTION_QUERY_BLOCK + 2 * PLR_ATTENTION_KEY_BLOCK) * plr_attention_padded(head_size) +
          2 * PLR_ATTENTION_QUERY_BLOCK * PLR_ATTENTION_KEY_BLOCK + 2 * PLR_ATTENTION_QUERY_BLOCK);
}

/// plr_embedding_grad: the tokens ordered by id (counting sort), and one f32 row.
static inline int64_t plr_footprint_embedding_grad(int64_t rows, int64_t vocabulary, int64_t columns) {
  return 4 * (rows + vocabulary + 1 + columns);
}

/// plr_rms_norm_grad: the weight's gradient in f32, over the rows of a block and over all, and the latter's rounding
/// error.
static inline int64_t plr_footprint_rms_norm_grad(int64_t columns) { return 12 * columns; }

#endif // PLATEAU_RUNTIME_FOOTPRINT_H
