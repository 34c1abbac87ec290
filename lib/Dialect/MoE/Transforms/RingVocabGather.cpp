//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The form in which nothing goes round: a loop over tiles of tokens, each gathered from all ranks, whose logits serve
// loss and gradient.
//===----------------------------------------------------------------------===//

#include "RingVocab.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "plateau/Interfaces/Matmul.h"
#include <numeric>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
/// Stages of an iteration: what is gathered for one tile travels beside the products of the tile before it, and so do
/// the sums of the one before that.
enum class Stage : int64_t { Gather, Compute, Scatter };

struct GatheredLoss {
  VocabLossOp op;
  VocabLossGradOp grad;
  const VocabProblem &problem;
  VocabBuilder builder;
  Value first;
  Value xGrad, tableGrad, biasGrad, states;

  GatheredLoss(VocabLossOp op, VocabLossGradOp grad, const VocabProblem &problem, const VocabLimits &limits)
      : op(op), grad(grad), problem(problem), builder(op, op.getVocabulary(), problem, limits) {}

  std::pair<VocabLosses, VocabGrads> build(const VocabLimits &limits);

private:
  SmallVector<Value> buildTile(OpFoldResult offset, int64_t tokens, ValueRange carried);
  Value gather(StringRef name, Value rows);
  Value buildIds(StringRef name, int64_t rows, llvm::function_ref<int32_t(int64_t)> get);
  /// This rank's rows of states that all ranks have, added to the zeros of `into`.
  Value takeOwn(Value merged, int64_t tokens, Value into);
  void mark(Stage stage);

  OpBuilder &b() { return builder.builder; }
  shard::GridAxesAttr getAxes();

  Operation *last = nullptr; ///< The last op of the tile that has its stage.
};
} // namespace

shard::GridAxesAttr GatheredLoss::getAxes() {
  FailureOr<Grid> grid = Grid::lookup(op, op.getGridAttr());
  return shard::GridAxesAttr::get(op.getContext(), {static_cast<shard::GridAxis>(grid->shape.size() - 1)});
}

Value GatheredLoss::gather(StringRef name, Value rows) {
  auto type = cast<RankedTensorType>(rows.getType());
  if (problem.ranks == 1)
    return rows;
  SmallVector<int64_t> shape(type.getShape());
  shape[0] *= problem.ranks;
  return shard::AllGatherOp::create(b(), builder.at(name), type.clone(shape), op.getGridAttr(), getAxes(), rows,
                                    b().getIndexAttr(0));
}

Value GatheredLoss::buildIds(StringRef name, int64_t rows, llvm::function_ref<int32_t(int64_t)> get) {
  // Outside the loop over tiles: made once.
  OpBuilder::InsertionGuard guard(b());
  b().setInsertionPoint(first.getDefiningOp());
  SmallVector<int32_t> values(rows);
  for (auto [row, value] : llvm::enumerate(values))
    value = get(row);
  auto type = RankedTensorType::get({rows}, b().getI32Type());
  return arith::ConstantOp::create(b(), builder.at(name), DenseElementsAttr::get(type, ArrayRef(values)));
}

Value GatheredLoss::takeOwn(Value merged, int64_t tokens, Value into) {
  // The rank's place is known when the step runs: rows of it are looked up by number, as those of a table are.
  Value place;
  {
    OpBuilder::InsertionGuard guard(b());
    b().setInsertionPoint(first.getDefiningOp());
    place = ShardStartOp::create(b(), builder.at("own"), op.getGridAttr().getValue(), /*hops=*/0, tokens);
  }
  Value rows = buildIds("own", tokens * problem.ranks, [](int64_t row) { return static_cast<int32_t>(row); });
  return EmbeddingShardGradOp::create(b(), builder.at("state"), into.getType(), merged, rows, place, into);
}

/// Gives all ops since the last call a stage.
void GatheredLoss::mark(Stage stage) {
  Block *block = b().getInsertionBlock();
  auto it = last ? std::next(last->getIterator()) : block->begin();
  for (; it != b().getInsertionPoint(); ++it) {
    if (!it->hasTrait<OpTrait::IsTerminator>())
      it->setAttr("moe.stage", b().getI64IntegerAttr(static_cast<int64_t>(stage)));
    last = &*it;
  }
}

SmallVector<Value> GatheredLoss::buildTile(OpFoldResult offset, int64_t tokens, ValueRange carried) {
  bool isLoop = problem.ranks > 1 && isa<Value>(offset);
  auto stage = [&](Stage value) {
    if (isLoop)
      mark(value);
  };
  last = nullptr;
  auto take = [&](StringRef name, Value rows) { return builder.takeRows(name, rows, offset, tokens); };
  int64_t rows = tokens * problem.ranks;
  Value x = gather("x", take("x", op.getX()));
  Value labels = gather("labels", take("labels", op.getLabels()));
  Value cotangents = grad ? gather("cotangents", take("cotangents", grad.getCotangents())) : Value();
  stage(Stage::Gather);

  Value logits = createMatmul(b(), builder.at("logits"), x, op.getTable(), {false, /*transposeB=*/true});
  Value column = arith::ConstantIndexOp::create(b(), builder.at("index"), 0);
  Value state = builder.buildZeros("state", {rows, problem.stateNumbers});
  state = FoldLogitsOp::create(b(), builder.at("state"), state.getType(), logits, labels, first, column, op.getBias(),
                               state, op.getVocabularyAttr());
  Value merged =
      MergeStatesOp::create(b(), builder.at("state"), state.getType(), gather("state", state), op.getVocabularyAttr());
  SmallVector<Value> results;
  if (problem.ranks == 1) {
    results.push_back(builder.putRows("state", merged, carried[0], offset));
    merged = state;
  } else {
    Value own = takeOwn(merged, tokens, builder.takeRows("state", carried[0], offset, tokens));
    results.push_back(builder.putRows("state", own, carried[0], offset));
  }
  if (!grad) {
    stage(Stage::Compute);
    return results;
  }

  // Bad labels are an error of the rank that has them, with its own number of the row; here only lse is wanted.
  Value ignored = buildIds("labels", rows, [&](int64_t) { return op.getVocabulary().getIgnoreIndex(); });
  auto vector = RankedTensorType::get({rows}, b().getF32Type());
  Value lse =
      FinishLossesOp::create(b(), builder.at("lse"), vector, vector, merged, ignored, op.getVocabularyAttr()).getLse();
  Type element = cast<RankedTensorType>(op.getX().getType()).getElementType();
  Value logitsGrad =
      LogitsGradOp::create(b(), builder.at("logits_grad"), RankedTensorType::get({rows, problem.columns}, element),
                           logits, labels, lse, cotangents, first, column, op.getBias(), op.getVocabularyAttr());
  Value table = builder.buildProductOnto("table_grad", logitsGrad, x, /*transposeA=*/true, carried[2]);
  Value bias;
  if (op.getBias())
    bias = ColumnSumsOp::create(b(), builder.at("bias_grad"), carried[3].getType(), logitsGrad, carried[3]);
  Value part = createMatmul(b(), builder.at("x_grad"), logitsGrad, op.getTable(), {});
  stage(Stage::Compute);
  if (problem.ranks > 1) {
    auto sum = shard::ReductionKindAttr::get(op.getContext(), shard::ReductionKind::Sum);
    auto type = RankedTensorType::get({tokens, problem.hidden}, b().getF32Type());
    part = shard::ReduceScatterOp::create(b(), builder.at("x_grad"), type, op.getGridAttr(), getAxes(), part, sum,
                                          b().getIndexAttr(0));
  }
  results.push_back(builder.putRows("x_grad", part, carried[1], offset));
  results.push_back(table);
  if (bias)
    results.push_back(bias);
  stage(Stage::Scatter);
  return results;
}

std::pair<VocabLosses, VocabGrads> GatheredLoss::build(const VocabLimits &limits) {
  first = builder.buildShardStart(op.getGridAttr(), /*hops=*/0);
  SmallVector<Value> carried = {builder.buildZeros("state", {problem.tokens, problem.stateNumbers})};
  if (grad) {
    carried.push_back(builder.buildZeros("x_grad", {problem.tokens, problem.hidden}));
    carried.push_back(builder.buildZeros("table_grad", {problem.columns, problem.hidden}));
    if (op.getBias())
      carried.push_back(builder.buildZeros("bias_grad", {problem.columns}));
  }
  auto annotate = [&](Operation *loop) {
    if (problem.ranks > 1)
      loop->setAttr("moe.in_flight", b().getI64IntegerAttr(2));
  };
  carried = builder.forTiles(
      problem.tokens, std::max<int64_t>(getGatheredTokens(problem, limits), 1), carried,
      [&](OpFoldResult offset, int64_t tokens, ValueRange values) { return buildTile(offset, tokens, values); },
      annotate);
  auto finish = FinishLossesOp::create(b(), builder.at("losses"), op.getLosses().getType(), op.getLse().getType(),
                                       carried[0], op.getLabels(), op.getVocabularyAttr());
  VocabGrads grads;
  if (grad) {
    grads.xGrad = builder.narrow("x_grad", carried[1], grad.getXGrad().getType());
    grads.tableGrad = builder.narrow("table_grad", carried[2], grad.getTableGrad().getType());
    grads.biasGrad = op.getBias() ? carried[3] : Value();
  }
  return {{finish.getLosses(), finish.getLse()}, grads};
}

std::pair<VocabLosses, VocabGrads> mlir::plateau::moe::buildGatheredLoss(VocabLossOp op, VocabLossGradOp grad,
                                                                         const VocabProblem &problem,
                                                                         const VocabLimits &limits) {
  return GatheredLoss(op, grad, problem, limits).build(limits);
}
