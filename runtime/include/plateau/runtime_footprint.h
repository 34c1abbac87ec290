//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Workspace of the runtime's kernels, and memory of plans, in bytes, from shapes alone. The compiler lays memory out by
// these formulas and the runtime checks what it is handed against them, so they stand in one place.
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

/// Bytes in whole lines of 64, to which all memory that is handed out is aligned.
static inline int64_t plr_footprint_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// plr_dispatch and plr_combine on a group of `ranks`: the rows of an iteration's tokens on their way, at most
/// tokens · top_k. `row_bytes` is 0 when no rows travel; `has_values`: with one f32 a row. A rank that is alone stages
/// nothing. Rows that arrive need no staging: each expert's rows from each rank lie in one piece, and go to their
/// place.
static inline int64_t plr_footprint_exchange(int64_t ranks, int64_t sent_rows, int64_t row_bytes, int32_t has_values) {
  if (ranks == 1)
    return 0;
  return plr_footprint_lines(sent_rows * row_bytes) + (has_values ? plr_footprint_lines(sent_rows * 4) : 0);
}

/// plr_return_expert_grads on a group of `ranks`.
static inline int64_t plr_footprint_return_experts(int64_t ranks, int64_t count) {
  return ranks == 1 ? 0 : plr_footprint_lines(4 * count);
}

/// What stands at the front of a plan's host memory.
#define PLR_PLAN_HEADER_BYTES 320

/// plr_plan_fill, host memory, with Q = chunks · leaves and s = experts / ranks + helper_slots expert slots of a rank:
/// where rows sent to and received from each expert slot end in each iteration, with room to bring one iteration's
/// counts into order; where each expert slot's rows begin; each rank's rows of each leaf; which leaves an iteration
/// has; loads of experts by rank; who helps with what; which part of an expert's rows goes where, at most two to its
/// own rank and one to each that helps; and what the least-loaded plan counts with.
static inline int64_t plr_footprint_plan_host(int64_t ranks, int64_t experts, int64_t helper_slots, int64_t chunks,
                                              int64_t leaves) {
  int64_t iterations = chunks * leaves, slots = experts / ranks + helper_slots;
  return plr_footprint_lines(PLR_PLAN_HEADER_BYTES) + 2 * plr_footprint_lines(4 * iterations * ranks * slots) +
         plr_footprint_lines(4 * ranks * slots) + plr_footprint_lines(8 * iterations * (slots + 1)) +
         plr_footprint_lines(8 * iterations * ranks) + plr_footprint_lines(12 * iterations) +
         plr_footprint_lines(4 * ranks * experts) + plr_footprint_lines(4 * ranks * helper_slots) +
         plr_footprint_lines(16 * (2 * experts + ranks * helper_slots)) + plr_footprint_lines(4 * experts) +
         plr_footprint_lines(8 * (3 * experts + 3 * ranks));
}

/// plr_plan_fill, device memory: for each slot of a token the place of its row among those that are sent.
static inline int64_t plr_footprint_plan_device(int64_t tokens, int64_t top_k) {
  return plr_footprint_lines(4 * tokens * top_k);
}

#endif // PLATEAU_RUNTIME_FOOTPRINT_H
