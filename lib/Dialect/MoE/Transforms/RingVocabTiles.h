//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Products of tiles of tokens and columns, and what is done with each tile of logits.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_RINGVOCABTILES_H
#define PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_RINGVOCABTILES_H

#include "RingVocabCost.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

namespace mlir::plateau::moe {

/// Some rows of a tensor, from `first` on. Null where an optional operand is not there.
struct Rows {
  Value tensor;
  int64_t first = 0, count = 0;

  explicit operator bool() const { return static_cast<bool>(tensor); }
  /// All rows of a tensor, which may be null.
  static Rows all(Value tensor);
};

/// Builds the ops of one loss or gradient, all with the scope of the op that is replaced.
class VocabBuilder {
public:
  VocabBuilder(Operation *op, VocabularyAttr vocabulary, const VocabProblem &problem, const VocabLimits &limits);

  Location at(StringRef name) const;

  Value buildZeros(StringRef name, ArrayRef<int64_t> shape);
  Value buildEmpty(StringRef name, Type type);
  /// The rows from `offset` on; the tensor itself when they are all of it.
  Value takeRows(StringRef name, Value tensor, OpFoldResult offset, int64_t count);
  Value takeRows(StringRef name, Rows rows, OpFoldResult offset, int64_t count);
  Value takeRows(StringRef name, Rows rows) { return takeRows(name, rows, builder.getIndexAttr(0), rows.count); }
  Value putRows(StringRef name, Value part, Value whole, OpFoldResult offset);
  /// The product, added to `sums`, which it overwrites.
  Value buildProductOnto(StringRef name, Value a, Value b, bool transposeA, Value sums);
  /// f32 sums as the type of the gradient.
  Value narrow(StringRef name, Value sums, Type type);

  using TileBody = llvm::function_ref<SmallVector<Value>(OpFoldResult offset, int64_t rows, ValueRange carried)>;
  /// `body` for tiles of `size` of `count` rows, in a loop that carries values, and for what is left over behind it.
  SmallVector<Value> forTiles(int64_t count, int64_t size, ValueRange carried, TileBody body,
                              llvm::function_ref<void(Operation *loop)> annotate = {});

  /// The number of the first row of the shard that came `hops` ranks round.
  Value buildShardStart(FlatSymbolRefAttr grid, int64_t hops);

  /// Where the columns of a product are in the vocabulary: `first` of the shard, `column` in it.
  struct Columns {
    Rows table, bias;
    Value first;
    int64_t column;
  };
  /// Folds all columns into the states of all rows.
  Value foldColumns(Rows x, Rows labels, Value states, const Columns &columns);

  struct Tokens {
    Rows x, labels, lse, cotangents;
  };
  struct Sums {
    Value xGrad, tableGrad, biasGrad; ///< biasGrad is null without a bias.
  };
  /// Adds to the gradients what these tokens and columns give.
  Sums addGradients(const Tokens &tokens, const Columns &columns, Sums sums);

  OpBuilder builder;
  const VocabProblem &problem;
  const VocabLimits &limits;
  VocabularyAttr vocabulary;

private:
  Value getIndex(OpFoldResult offset);
  OpFoldResult move(OpFoldResult offset, int64_t by);

  ScopeAttr scope;
};

} // namespace mlir::plateau::moe

#endif // PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_RINGVOCABTILES_H
