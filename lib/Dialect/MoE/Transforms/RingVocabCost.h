//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What each form of the vocabulary loss costs a rank: products, bytes it sends, bytes that are live. One place for all
// formulas; what the forms build is held to them by tests.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_RINGVOCABCOST_H
#define PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_RINGVOCABCOST_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::plateau::moe {

/// What goes round the ranks: shards of the table, rows of tokens, or nothing.
enum class VocabMove { Weights, Activations, None };
llvm::StringRef stringifyVocabMove(VocabMove move);

/// A loss, its gradient, or both. N tokens a rank, tables of R rows of width H on each of P ranks.
struct VocabProblem {
  int64_t tokens, hidden, columns, ranks;
  int64_t elementBytes; ///< Of x and table.
  int64_t stateNumbers; ///< Of a row's state.
  bool hasBias = false;
  bool hasLoss = true, hasGrad = true;
  bool narrowsXGrad = false, narrowsTableGrad = false; ///< The gradient's type is bf16; sums are f32 anyway.
};

/// What limits a form, and how fast the machine is.
struct VocabLimits {
  int64_t tileBytes;
  bool hopsByTile;
  double flopsPerSecond, linkBytesPerSecond;
};

struct VocabCost {
  int64_t flops = 0;
  int64_t sentBytes = 0;
  int64_t logitsBytes = 0; ///< Of the logits, and of their rounded derivative, that are live at once.
  int64_t liveBytes = 0;   ///< At the peak: results, what moves, accumulators and tiles, but not the operands.
  double seconds = 0;      ///< Products and transfers one after the other.
};

/// The rows of a tile when `rows` are cut into as few and as even tiles as `most` allows.
int64_t getEvenTile(int64_t rows, int64_t most);

/// Rows from `first` on.
struct RowRange {
  int64_t first, count;
};

/// `rows` in tiles of getEvenTile rows; what is left over comes first.
llvm::SmallVector<RowRange> cutRows(int64_t rows, int64_t most);

/// How what moves is cut: one range of all rows, or, by tiles, ranges whose f32 rows of width H fit the tile bytes.
llvm::SmallVector<RowRange> cutMovingRows(const VocabProblem &problem, VocabMove move, const VocabLimits &limits);

/// A tile of logits. With the rounded derivative beside it, when operands are bf16, it fits the tile bytes.
struct LogitsTile {
  int64_t tokens, columns;
};

/// Bytes of one logit, and of what is rounded from it.
int64_t getLogitBytes(const VocabProblem &problem);

/// As wide as the columns, unless fewer than 64 tokens would fit: then 64 tokens wide, unless fewer than 64 columns
/// would.
LogitsTile getLogitsTile(const VocabProblem &problem, int64_t tokens, int64_t columns, const VocabLimits &limits);

/// Tokens a rank in a tile of the form in which nothing moves; 0 when not one fits. Logits of all columns of the shard,
/// the gathered rows of x, and the parts of their gradient are such a tile each.
int64_t getGatheredTokens(const VocabProblem &problem, const VocabLimits &limits);

VocabCost getVocabCost(const VocabProblem &problem, VocabMove move, const VocabLimits &limits);

} // namespace mlir::plateau::moe

#endif // PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_RINGVOCABCOST_H
