//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "host/vocabulary_argument.h"

using namespace plateau::rt::host;

extern "C" plr_status plr_shard_start(plr_lane *lane, const plr_tag *tag, int64_t place, int64_t ranks, int64_t hops,
                                      int64_t shard_rows, int32_t *start) {
  return enter(lane, "plr_shard_start", tag, [&](Call &call) {
    call.size("ranks", ranks, 1);
    call.size("shard_rows", shard_rows);
    if (call.isRefused())
      return;
    if (place < 0 || place >= ranks)
      call.refuse("place is " + std::to_string(place) + ", but must be at least 0 and less than ranks, " +
                  std::to_string(ranks));
    if (int64_t last; __builtin_mul_overflow(ranks - 1, shard_rows, &last) || last > INT32_MAX)
      call.refuse("the last of " + std::to_string(ranks) + " shards of " + std::to_string(shard_rows) +
                  " rows begins behind row " + std::to_string(INT32_MAX) + ", but numbers of rows have 32 bits");
    call.tensor("start", start, {1});
    if (call.isRefused())
      return;
    const int64_t source = (place - hops % ranks + ranks) % ranks;
    call.enqueue([start, value = static_cast<int32_t>(source * shard_rows)](const Running &) -> Outcome {
      *start = value;
      return {};
    });
  });
}

/// The size and place of a tile.
static void checkTile(Call &call, int64_t rows, int64_t columns, int64_t column, const int32_t *first) {
  call.size("rows", rows);
  call.size("columns", columns, 1);
  call.size("column", column);
  if (column > INT32_MAX)
    call.refuse("column is " + std::to_string(column) + ", but numbers of columns have 32 bits");
  call.tensor("first", first, {1});
}

/// The numbers of a row's state.
static int64_t getStateWidth(const plr_vocabulary &vocabulary) { return vocabulary.label_smoothing == 0 ? 3 : 4; }

extern "C" plr_status plr_fold_logits(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary,
                                      int64_t rows, int64_t columns, int64_t column, const int32_t *first,
                                      const float *logits, const float *bias, const int32_t *labels, float *state) {
  return enter(lane, "plr_fold_logits", tag, [&](Call &call) {
    const plr_vocabulary taken = takeVocabulary(call, vocabulary);
    checkTile(call, rows, columns, column, first);
    call.tensor("logits", logits, {rows, columns});
    call.tensor("labels", labels, {rows});
    call.tensor("state", state, {rows, getStateWidth(taken)});
    call.enqueue([=](const Running &) -> Outcome {
      foldLogits(taken, rows, columns, column, first, logits, bias, labels, state);
      return {};
    });
  });
}

extern "C" plr_status plr_merge_states(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary,
                                       int64_t parts, int64_t rows, const float *states, float *result) {
  return enter(lane, "plr_merge_states", tag, [&](Call &call) {
    const plr_vocabulary taken = takeVocabulary(call, vocabulary);
    call.size("parts", parts, 1);
    call.size("rows", rows);
    call.tensor("states", states, {parts, rows, getStateWidth(taken)});
    call.tensor("result", result, {rows, getStateWidth(taken)});
    call.enqueue([=](const Running &) -> Outcome {
      mergeStates(taken, parts, rows, states, result);
      return {};
    });
  });
}

extern "C" plr_status plr_finish_losses(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary,
                                        int64_t rows, const float *state, const int32_t *labels, float *losses,
                                        float *lse) {
  return enter(lane, "plr_finish_losses", tag, [&](Call &call) {
    const plr_vocabulary taken = takeVocabulary(call, vocabulary);
    call.size("rows", rows);
    call.tensor("state", state, {rows, getStateWidth(taken)});
    call.tensor("labels", labels, {rows});
    call.tensor("losses", losses, {rows});
    call.tensor("lse", lse, {rows});
    call.enqueue([=](const Running &) { return fromFault(finishLosses(taken, rows, state, labels, losses, lse)); });
  });
}

extern "C" plr_status plr_logits_grad(plr_lane *lane, const plr_tag *tag, const plr_vocabulary *vocabulary,
                                      plr_type result_type, int64_t rows, int64_t columns, int64_t column,
                                      const int32_t *first, const float *logits, const float *bias,
                                      const int32_t *labels, const float *lse, const float *cotangents, void *result) {
  return enter(lane, "plr_logits_grad", tag, [&](Call &call) {
    const plr_vocabulary taken = takeVocabulary(call, vocabulary);
    call.type("result_type", result_type);
    checkTile(call, rows, columns, column, first);
    call.tensor("logits", logits, {rows, columns});
    call.tensor("labels", labels, {rows});
    call.tensor("lse", lse, {rows});
    call.tensor("cotangents", cotangents, {rows});
    call.tensor("result", result, {rows, columns});
    if (rows > 0)
      call.require(result_type == PLR_F32 || result != logits,
                   "result is logits, but bf16: it needs a tile of its own");
    call.enqueue([=](const Running &) -> Outcome {
      logitsGrad(taken, result_type, rows, columns, column, first, logits, bias, labels, lse, cotangents, result);
      return {};
    });
  });
}

extern "C" plr_status plr_column_sums(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t rows, int64_t columns,
                                      const void *input, float *sums) {
  return enter(lane, "plr_column_sums", tag, [&](Call &call) {
    call.type("type", type);
    call.size("rows", rows);
    call.size("columns", columns);
    call.tensor("input", input, {rows, columns});
    call.tensor("sums", sums, {columns});
    call.enqueue([=](const Running &) -> Outcome {
      columnSums(type, rows, columns, input, sums);
      return {};
    });
  });
}
