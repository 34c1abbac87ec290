//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RingVocabTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Interfaces/Matmul.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static RankedTensorType getTensor(Value value) { return cast<RankedTensorType>(value.getType()); }

Rows Rows::all(Value tensor) { return {tensor, 0, tensor ? getTensor(tensor).getDimSize(0) : 0}; }

VocabBuilder::VocabBuilder(Operation *op, VocabularyAttr vocabulary, const VocabProblem &problem,
                           const VocabLimits &limits)
    : builder(op), problem(problem), limits(limits), vocabulary(vocabulary) {
  Phase phase = isa<VocabLossGradOp>(op) ? Phase::Backward : Phase::Forward;
  if (ScopeAttr old = getScope(op->getLoc()))
    phase = old.getPhase();
  scope = ScopeAttr::get(op->getContext(), phase, Component::Vocabulary, std::nullopt);
}

Location VocabBuilder::at(StringRef name) const {
  return withScope(NameLoc::get(StringAttr::get(scope.getContext(), name)), scope);
}

Value VocabBuilder::buildEmpty(StringRef name, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor::EmptyOp::create(builder, at(name), tensor.getShape(), tensor.getElementType());
}

Value VocabBuilder::buildZeros(StringRef name, ArrayRef<int64_t> shape) {
  Value empty = buildEmpty(name, RankedTensorType::get(shape, builder.getF32Type()));
  Value zero = arith::ConstantOp::create(builder, at(name), builder.getF32FloatAttr(0));
  return linalg::FillOp::create(builder, at(name), zero, empty).getResult(0);
}

Value VocabBuilder::getIndex(OpFoldResult offset) {
  if (auto value = dyn_cast<Value>(offset))
    return value;
  return arith::ConstantIndexOp::create(builder, at("index"), *getConstantIntValue(offset));
}

OpFoldResult VocabBuilder::move(OpFoldResult offset, int64_t by) {
  if (std::optional<int64_t> constant = getConstantIntValue(offset))
    return builder.getIndexAttr(*constant + by);
  if (by == 0)
    return offset;
  Value distance = arith::ConstantIndexOp::create(builder, at("index"), by);
  return arith::AddIOp::create(builder, at("index"), cast<Value>(offset), distance).getResult();
}

/// Sizes and strides of `count` whole rows, and offsets from `offset` on.
static std::array<SmallVector<OpFoldResult>, 3> getSlice(OpBuilder &builder, RankedTensorType type, OpFoldResult offset,
                                                         int64_t count) {
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)), sizes,
      strides(type.getRank(), builder.getIndexAttr(1));
  for (int64_t size : type.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  offsets[0] = offset;
  sizes[0] = builder.getIndexAttr(count);
  return {offsets, sizes, strides};
}

Value VocabBuilder::takeRows(StringRef name, Value tensor, OpFoldResult offset, int64_t count) {
  RankedTensorType type = getTensor(tensor);
  if (type.getDimSize(0) == count)
    return tensor;
  auto [offsets, sizes, strides] = getSlice(builder, type, offset, count);
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = count;
  return tensor::ExtractSliceOp::create(builder, at(name), type.clone(shape), tensor, offsets, sizes, strides);
}

Value VocabBuilder::takeRows(StringRef name, Rows rows, OpFoldResult offset, int64_t count) {
  return rows ? takeRows(name, rows.tensor, move(offset, rows.first), count) : Value();
}

Value VocabBuilder::putRows(StringRef name, Value part, Value whole, OpFoldResult offset) {
  if (part.getType() == whole.getType())
    return part;
  auto [offsets, sizes, strides] = getSlice(builder, getTensor(whole), offset, getTensor(part).getDimSize(0));
  return tensor::InsertSliceOp::create(builder, at(name), part, whole, offsets, sizes, strides);
}

Value VocabBuilder::buildProductOnto(StringRef name, Value a, Value b, bool transposeA, Value sums) {
  return createMatmul(builder, at(name), a, b, {transposeA, /*transposeB=*/false}, sums);
}

Value VocabBuilder::narrow(StringRef name, Value sums, Type type) {
  return sums.getType() == type ? sums : arith::TruncFOp::create(builder, at(name), type, sums);
}

SmallVector<Value> VocabBuilder::forTiles(int64_t count, int64_t size, ValueRange carried, TileBody body,
                                          llvm::function_ref<void(Operation *loop)> annotate) {
  SmallVector<Value> values(carried);
  int64_t full = count / size, rest = count % size;
  if (full == 1)
    values = body(builder.getIndexAttr(0), size, values);
  if (full > 1) {
    auto index = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, at("index"), value); };
    Value from = index(0), to = index(full * size), step = index(size);
    auto loop = scf::ForOp::create(builder, at("tiles"), from, to, step, values);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      SmallVector<Value> results = body(loop.getInductionVar(), size, loop.getRegionIterArgs());
      if (Block *block = loop.getBody(); !block->empty() && block->back().hasTrait<OpTrait::IsTerminator>())
        block->back().erase();
      builder.setInsertionPointToEnd(loop.getBody());
      scf::YieldOp::create(builder, at("tiles"), results);
    }
    if (annotate)
      annotate(loop);
    values = llvm::to_vector_of<Value>(loop.getResults());
  }
  if (rest > 0)
    values = body(builder.getIndexAttr(full * size), rest, values);
  return values;
}

Value VocabBuilder::buildShardStart(FlatSymbolRefAttr grid, int64_t hops) {
  if (problem.ranks > 1)
    return ShardStartOp::create(builder, at("first"), grid.getValue(), hops, problem.columns);
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return arith::ConstantOp::create(builder, at("first"), builder.getZeroAttr(type));
}

Value VocabBuilder::foldColumns(Rows x, Rows labels, Value states, const Columns &columns) {
  LogitsTile tile = getLogitsTile(problem, x.count, columns.table.count, limits);
  return forTiles(x.count, tile.tokens, states, [&](OpFoldResult i, int64_t tokens, ValueRange carried) {
    Value xs = takeRows("x", x, i, tokens), ls = takeRows("labels", labels, i, tokens);
    return forTiles(columns.table.count, tile.columns, carried,
                    [&](OpFoldResult j, int64_t width, ValueRange inner) -> SmallVector<Value> {
                      Value ws = takeRows("table", columns.table, j, width);
                      Value bias = takeRows("bias", columns.bias, j, width);
                      Value logits = createMatmul(builder, at("logits"), xs, ws, {false, /*transposeB=*/true});
                      Value column = getIndex(move(j, columns.column));
                      Value state = takeRows("state", inner[0], i, tokens);
                      Value folded = FoldLogitsOp::create(builder, at("state"), state.getType(), logits, ls,
                                                          columns.first, column, bias, state, vocabulary);
                      return {putRows("state", folded, inner[0], i)};
                    });
  })[0];
}

VocabBuilder::Sums VocabBuilder::addGradients(const Tokens &t, const Columns &columns, Sums sums) {
  LogitsTile tile = getLogitsTile(problem, t.x.count, columns.table.count, limits);
  SmallVector<Value> carried = {sums.xGrad, sums.tableGrad};
  if (sums.biasGrad)
    carried.push_back(sums.biasGrad);
  Type element = getTensor(t.x.tensor).getElementType();
  carried = forTiles(t.x.count, tile.tokens, carried, [&](OpFoldResult i, int64_t tokens, ValueRange outer) {
    Value xs = takeRows("x", t.x, i, tokens), labels = takeRows("labels", t.labels, i, tokens);
    Value lse = takeRows("lse", t.lse, i, tokens), cotangents = takeRows("cotangents", t.cotangents, i, tokens);
    return forTiles(columns.table.count, tile.columns, outer, [&](OpFoldResult j, int64_t width, ValueRange inner) {
      Value ws = takeRows("table", columns.table, j, width);
      Value bias = takeRows("bias", columns.bias, j, width);
      Value logits = createMatmul(builder, at("logits"), xs, ws, {false, /*transposeB=*/true});
      Value column = getIndex(move(j, columns.column));
      Value grad = LogitsGradOp::create(builder, at("logits_grad"), RankedTensorType::get({tokens, width}, element),
                                        logits, labels, lse, cotangents, columns.first, column, bias, vocabulary);
      SmallVector<Value> results;
      Value xGrad = takeRows("x_grad", inner[0], i, tokens);
      results.push_back(putRows("x_grad", buildProductOnto("x_grad", grad, ws, false, xGrad), inner[0], i));
      Value tableGrad = takeRows("table_grad", inner[1], j, width);
      results.push_back(putRows("table_grad", buildProductOnto("table_grad", grad, xs, true, tableGrad), inner[1], j));
      if (bias) {
        Value biasGrad = takeRows("bias_grad", inner[2], j, width);
        Value added = ColumnSumsOp::create(builder, at("bias_grad"), biasGrad.getType(), grad, biasGrad);
        results.push_back(putRows("bias_grad", added, inner[2], j));
      }
      return results;
    });
  });
  return {carried[0], carried[1], sums.biasGrad ? carried[2] : Value()};
}
