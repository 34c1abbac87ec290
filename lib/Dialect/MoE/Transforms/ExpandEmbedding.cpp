//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// moe-expand-embedding: look-ups in a table that ranks hold in shards, by tiles of tokens.
//===----------------------------------------------------------------------===//

#include "GroupBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEEXPANDEMBEDDING
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
class Expansion {
public:
  /// For rows of type `rows`, of which the group gathers at most `tileBytes` at once, and at least one a rank.
  Expansion(GroupBuilder group, RankedTensorType rows, int64_t tileBytes);

  Value lookUp(EmbeddingOp op);
  Value differentiate(EmbeddingGradOp op);

private:
  using Body = llvm::function_ref<Value(Value first, int64_t tokens, Value carried)>;

  /// `body` for each tile of tokens, from its first token on: a loop over the full tiles, then the rest.
  Value forEachTile(Value carried, Body body);
  /// Rows [first, first + tokens) of `whole`, of all ranks.
  Value gatherRows(StringRef name, Value whole, Value first, int64_t tokens);

  GroupBuilder group;
  int64_t tokens, tile = 1;
};

constexpr StringLiteral place = "embed_tokens";
} // namespace

Expansion::Expansion(GroupBuilder group, RankedTensorType rows, int64_t tileBytes)
    : group(group), tokens(rows.getDimSize(0)) {
  int64_t rowBytes = rows.getDimSize(1) * rows.getElementTypeBitWidth() / 8;
  int64_t most = std::max<int64_t>(1, tileBytes / std::max<int64_t>(1, rowBytes * group.getRanks()));
  if (tokens > 0)
    tile = llvm::divideCeil(tokens, llvm::divideCeil(tokens, most)); // Even tiles.
}

Value Expansion::forEachTile(Value carried, Body body) {
  OpBuilder &builder = group.getBuilder();
  Location loc = group.locate(place);
  auto number = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  int64_t full = tokens / tile, rest = tokens % tile;
  if (full == 1)
    carried = body(number(0), tile, carried);
  if (full > 1) {
    Value from = number(0), to = number(full * tile), step = number(tile);
    auto loop = scf::ForOp::create(builder, loc, from, to, step, carried);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value next = body(loop.getInductionVar(), tile, loop.getRegionIterArg(0));
    scf::YieldOp::create(builder, loc, next);
    carried = loop.getResult(0);
  }
  if (rest > 0)
    carried = body(number(full * tile), rest, carried);
  return carried;
}

/// The offsets, sizes and strides of rows [first, first + rows) of `whole`.
static std::array<SmallVector<OpFoldResult>, 3> getRows(OpBuilder &builder, Value whole, Value first, int64_t rows) {
  auto type = cast<RankedTensorType>(whole.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  offsets[0] = getAsOpFoldResult(first);
  sizes[0] = builder.getIndexAttr(rows);
  return {offsets, sizes, strides};
}

Value Expansion::gatherRows(StringRef name, Value whole, Value first, int64_t rows) {
  OpBuilder &builder = group.getBuilder();
  auto [offsets, sizes, strides] = getRows(builder, whole, first, rows);
  Value part = tensor::ExtractSliceOp::create(builder, group.locate(name), whole, offsets, sizes, strides);
  return group.gather(name, part);
}

Value Expansion::lookUp(EmbeddingOp op) {
  OpBuilder &builder = group.getBuilder();
  Location loc = group.locate(place);
  RankedTensorType type = op.getResult().getType();
  Value start = group.getShardStart("shard_start", op.getTable().getType().getDimSize(0));
  // Rows are written tile by tile into a place that has contents, as all that a loop carries must.
  Value result = tile < tokens || tokens == 0 ? group.createZeros("rows", type) : Value();
  return forEachTile(result, [&](Value first, int64_t rows, Value carried) -> Value {
    Value ids = gatherRows("ids_gather", op.getIds(), first, rows);
    auto all = type.clone({rows * group.getRanks(), type.getDimSize(1)});
    Value found = EmbeddingShardOp::create(builder, loc, all, op.getTable(), ids, start, *op.getSize());
    Value own = group.scatterSum("rows_scatter", found); // One term of each sum is no zero.
    if (!carried)
      return own;
    auto [offsets, sizes, strides] = getRows(builder, carried, first, rows);
    return tensor::InsertSliceOp::create(builder, loc, own, carried, offsets, sizes, strides);
  });
}

Value Expansion::differentiate(EmbeddingGradOp op) {
  OpBuilder &builder = group.getBuilder();
  Location loc = group.locate(place);
  RankedTensorType type = op.getResult().getType();
  Value start = group.getShardStart("shard_start", type.getDimSize(0));
  Value sums = group.createZeros("table_sums", type.getShape());
  sums = forEachTile(sums, [&](Value first, int64_t rows, Value carried) -> Value {
    Value ids = gatherRows("ids_gather", op.getIds(), first, rows);
    Value cotangent = gatherRows("rows_gather", op.getCotangent(), first, rows);
    return EmbeddingShardGradOp::create(builder, loc, carried.getType(), cotangent, ids, start, carried);
  });
  return group.round(place, sums, type.getElementType());
}

namespace {
struct ExpandEmbedding : moe::impl::MoEExpandEmbeddingBase<ExpandEmbedding> {
  using MoEExpandEmbeddingBase::MoEExpandEmbeddingBase;

  template <typename OpTy>
  LogicalResult expand(OpTy op, RankedTensorType rows, Phase phase, Value (Expansion::*build)(OpTy)) {
    FailureOr<GroupBuilder> group = GroupBuilder::get(op, op.getGridAttr(), phase, Component::Embedding);
    if (failed(group))
      return failure();
    Expansion expansion(*group, rows, tileBytes);
    op.getResult().replaceAllUsesWith((expansion.*build)(op));
    op.erase();
    return success();
  }

  void runOnOperation() override {
    if (tileBytes < 1) {
      getOperation()->emitError() << "moe-expand-embedding: tile-bytes is " << tileBytes.getValue()
                                  << ": it must be at least 1";
      return signalPassFailure();
    }
    SmallVector<EmbeddingOp> lookUps;
    SmallVector<EmbeddingGradOp> gradients;
    getOperation()->walk([&](Operation *op) {
      if (auto lookUp = dyn_cast<EmbeddingOp>(op); lookUp && lookUp.getGrid())
        lookUps.push_back(lookUp);
      else if (auto gradient = dyn_cast<EmbeddingGradOp>(op); gradient && gradient.getGrid())
        gradients.push_back(gradient);
    });
    for (EmbeddingOp op : lookUps)
      if (failed(expand(op, op.getResult().getType(), Phase::Forward, &Expansion::lookUp)))
        return signalPassFailure();
    for (EmbeddingGradOp op : gradients)
      if (failed(expand(op, op.getCotangent().getType(), Phase::Backward, &Expansion::differentiate)))
        return signalPassFailure();
  }
};
} // namespace
