//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The forms in which something goes round the ranks. What moves is cut into tiles, one of them when whole shards hop;
// each tile is sent on for itself, into the place that the tile before it has left.
//===----------------------------------------------------------------------===//

#include "RingVocab.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
/// A tensor whose tiles go round. There is one place more than tiles; when the first tile is smaller than the others,
/// one more of each size. The order of tiles turns round at each hop, so that each is back in its place after two.
class Moving {
public:
  /// An input stays where it is: what arrives gets places of its own. Null for an operand that is not there.
  static Moving input(StringRef name, Value home, ArrayRef<RowRange> cut) {
    Moving moving(name, cut);
    if (home)
      for (RowRange range : cut)
        moving.tiles.push_back({home, range.first, range.count});
    moving.isHome = true;
    return moving;
  }
  /// Sums start from zeros.
  static Moving sums(VocabBuilder &builder, StringRef name, ArrayRef<int64_t> rowShape, ArrayRef<RowRange> cut) {
    Moving moving(name, cut);
    for (RowRange range : cut) {
      SmallVector<int64_t> shape = {range.count};
      llvm::append_range(shape, rowShape);
      moving.tiles.push_back(Rows::all(builder.buildZeros(name, shape)));
    }
    return moving;
  }

  Rows get(unsigned tile) const { return tiles.empty() ? Rows() : tiles[tile]; }
  Value getValue(unsigned tile) const { return tiles.empty() ? Value() : tiles[tile].tensor; }
  void set(unsigned tile, Value value) {
    if (value)
      tiles[tile].tensor = value;
  }

  void send(VocabBuilder &builder, FlatSymbolRefAttr grid, unsigned tile) {
    if (tiles.empty())
      return;
    Rows &rows = tiles[tile];
    bool wasHome = isHome && !hasLeft[tile];
    Value &place = free[tile == 0 && isFirstSmaller];
    Value value = builder.takeRows(name, rows);
    Value into = place ? place : builder.buildEmpty(name, value.getType());
    Value sent =
        ShiftOp::create(builder.builder, builder.at(name), value.getType(), value, into, grid.getValue(), /*hops=*/1);
    place = wasHome ? Value() : value;
    hasLeft[tile] = true;
    rows = Rows::all(sent);
  }

  Value join(VocabBuilder &builder) const {
    if (tiles.size() < 2)
      return getValue(0);
    auto parts = llvm::map_to_vector(tiles, [](const Rows &rows) { return rows.tensor; });
    return tensor::ConcatOp::create(builder.builder, builder.at(name), /*dim=*/0, parts);
  }

private:
  Moving(StringRef name, ArrayRef<RowRange> cut)
      : name(name), isFirstSmaller(cut.front().count != cut.back().count), hasLeft(cut.size(), false) {}

  StringRef name;
  bool isFirstSmaller, isHome = false;
  SmallVector<Rows> tiles;
  SmallVector<bool> hasLeft;
  Value free[2]; ///< The place that the last tile sent has left; of the first tile, when it is smaller.
};

/// What goes round together: inputs P − 1 times, sums P times.
struct Ring {
  VocabBuilder &builder;
  FlatSymbolRefAttr grid;
  int64_t ranks;
  unsigned tiles;
  SmallVector<Moving> inputs, sums;

  using Work = llvm::function_ref<void(int64_t hop, unsigned tile, ArrayRef<Rows> inputs)>;
  /// Inputs are sent on before the work on them, so that they travel beside it.
  void run(Work work) {
    for (int64_t hop = 0; hop < ranks; ++hop)
      for (unsigned step = 0; step < tiles; ++step) {
        unsigned tile = hop % 2 == 0 ? tiles - 1 - step : step;
        auto rows = llvm::map_to_vector(inputs, [&](const Moving &input) { return input.get(tile); });
        if (hop + 1 < ranks)
          for (Moving &input : inputs)
            input.send(builder, grid, tile);
        work(hop, tile, rows);
        if (ranks > 1)
          for (Moving &sum : sums)
            sum.send(builder, grid, tile);
      }
  }
};
} // namespace

VocabLosses mlir::plateau::moe::buildRingLoss(VocabLossOp op, VocabMove move, const VocabProblem &problem,
                                              const VocabLimits &limits) {
  VocabBuilder builder(op, op.getVocabulary(), problem, limits);
  SmallVector<RowRange> cut = cutMovingRows(problem, move, limits);
  Ring ring = {builder, op.getGridAttr(), problem.ranks, static_cast<unsigned>(cut.size()), {}, {}};
  Value states;
  if (move == VocabMove::Weights) {
    ring.inputs = {Moving::input("table", op.getTable(), cut), Moving::input("bias", op.getBias(), cut)};
    states = builder.buildZeros("state", {problem.tokens, problem.stateNumbers});
    Value first;
    ring.run([&](int64_t hop, unsigned tile, ArrayRef<Rows> inputs) {
      if (tile == (hop % 2 == 0 ? cut.size() - 1 : 0))
        first = builder.buildShardStart(op.getGridAttr(), hop);
      states = builder.foldColumns(Rows::all(op.getX()), Rows::all(op.getLabels()), states,
                                   {inputs[0], inputs[1], first, cut[tile].first});
    });
  } else {
    ring.inputs = {Moving::input("x", op.getX(), cut), Moving::input("labels", op.getLabels(), cut)};
    ring.sums = {Moving::sums(builder, "state", {problem.stateNumbers}, cut)};
    Value first = builder.buildShardStart(op.getGridAttr(), /*hops=*/0);
    ring.run([&](int64_t, unsigned tile, ArrayRef<Rows> inputs) {
      Moving &state = ring.sums[0];
      state.set(tile, builder.foldColumns(inputs[0], inputs[1], state.getValue(tile),
                                          {Rows::all(op.getTable()), Rows::all(op.getBias()), first, /*column=*/0}));
    });
    states = ring.sums[0].join(builder);
  }
  auto finish = FinishLossesOp::create(builder.builder, builder.at("losses"), op.getLosses().getType(),
                                       op.getLse().getType(), states, op.getLabels(), op.getVocabularyAttr());
  return {finish.getLosses(), finish.getLse()};
}

VocabGrads mlir::plateau::moe::buildRingGrad(VocabLossGradOp op, VocabMove move, const VocabProblem &problem,
                                             const VocabLimits &limits) {
  VocabBuilder builder(op, op.getVocabulary(), problem, limits);
  SmallVector<RowRange> cut = cutMovingRows(problem, move, limits);
  Ring ring = {builder, op.getGridAttr(), problem.ranks, static_cast<unsigned>(cut.size()), {}, {}};
  VocabGrads grads;
  if (move == VocabMove::Weights) {
    ring.inputs = {Moving::input("table", op.getTable(), cut), Moving::input("bias", op.getBias(), cut)};
    ring.sums = {Moving::sums(builder, "table_grad", {problem.hidden}, cut)};
    if (op.getBias())
      ring.sums.push_back(Moving::sums(builder, "bias_grad", {}, cut));
    grads.xGrad = builder.buildZeros("x_grad", {problem.tokens, problem.hidden});
    VocabBuilder::Tokens tokens = {Rows::all(op.getX()), Rows::all(op.getLabels()), Rows::all(op.getLse()),
                                   Rows::all(op.getCotangents())};
    Value first;
    ring.run([&](int64_t hop, unsigned tile, ArrayRef<Rows> inputs) {
      if (tile == (hop % 2 == 0 ? cut.size() - 1 : 0))
        first = builder.buildShardStart(op.getGridAttr(), hop);
      Value biasGrad = op.getBias() ? ring.sums[1].getValue(tile) : Value();
      VocabGrads added = builder.addGradients(tokens, {inputs[0], inputs[1], first, cut[tile].first},
                                              {grads.xGrad, ring.sums[0].getValue(tile), biasGrad});
      grads.xGrad = added.xGrad;
      ring.sums[0].set(tile, added.tableGrad);
      if (op.getBias())
        ring.sums[1].set(tile, added.biasGrad);
    });
    grads.tableGrad = ring.sums[0].join(builder);
    grads.biasGrad = op.getBias() ? ring.sums[1].join(builder) : Value();
  } else {
    ring.inputs = {Moving::input("x", op.getX(), cut), Moving::input("labels", op.getLabels(), cut),
                   Moving::input("lse", op.getLse(), cut), Moving::input("cotangents", op.getCotangents(), cut)};
    ring.sums = {Moving::sums(builder, "x_grad", {problem.hidden}, cut)};
    grads.tableGrad = builder.buildZeros("table_grad", {problem.columns, problem.hidden});
    grads.biasGrad = op.getBias() ? builder.buildZeros("bias_grad", {problem.columns}) : Value();
    Value first = builder.buildShardStart(op.getGridAttr(), /*hops=*/0);
    ring.run([&](int64_t, unsigned tile, ArrayRef<Rows> inputs) {
      VocabGrads added = builder.addGradients({inputs[0], inputs[1], inputs[2], inputs[3]},
                                              {Rows::all(op.getTable()), Rows::all(op.getBias()), first, /*column=*/0},
                                              {ring.sums[0].getValue(tile), grads.tableGrad, grads.biasGrad});
      ring.sums[0].set(tile, added.xGrad);
      grads.tableGrad = added.tableGrad;
      grads.biasGrad = added.biasGrad;
    });
    grads.xGrad = ring.sums[0].join(builder);
  }
  grads.xGrad = builder.narrow("x_grad", grads.xGrad, op.getXGrad().getType());
  grads.tableGrad = builder.narrow("table_grad", grads.tableGrad, op.getTableGrad().getType());
  return grads;
}
