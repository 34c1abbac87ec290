//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

/// Every id is a row of the table.
static LogicalResult checkIds(RankCall &call, ArrayRef<int64_t> ids, int64_t vocabulary) {
  for (auto [row, id] : llvm::enumerate(ids))
    if (id < 0 || id >= vocabulary)
      return call.fail("row " + Twine(row) + " has token id " + Twine(id) + ", but the table has " + Twine(vocabulary) +
                       " rows");
  return success();
}

/// result[i, :] = table[ids[i], :], where row v of the table is row v mod R of the rank at place v div R.
template <typename Scalar>
static LogicalResult evaluateEmbedding(EmbeddingOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<SmallVector<Group>> groups = getShardGroups(op, op.getGridAttr(), calls);
  if (failed(groups))
    return failure();
  int64_t rows = op.getTable().getType().getDimSize(0), columns = op.getTable().getType().getDimSize(1);
  int64_t size = op.getSize() ? static_cast<int64_t>(*op.getSize()) : rows;
  for (const Group &group : *groups)
    for (int rank : group) {
      auto ids = calls[rank].read<int64_t>(op.getIds());
      if (failed(checkIds(calls[rank], ids, size)))
        return failure();
      auto result = calls[rank].write<Scalar>(op.getResult());
      for (size_t i = 0; i < ids.size(); ++i) {
        auto shard = calls[group[ids[i] / rows]].read<Scalar>(op.getTable());
        for (int64_t c = 0; c < columns; ++c)
          result[i * columns + c] = shard[ids[i] % rows * columns + c];
      }
    }
  return success();
}

/// result[v, :] = Σ cotangent[i, :] over i with ids[i] = v, of the tokens of one rank of the group after the other
template <typename Scalar>
static LogicalResult evaluateEmbeddingGrad(EmbeddingGradOp op, MutableArrayRef<RankCall> calls) {
  FailureOr<SmallVector<Group>> groups = getShardGroups(op, op.getGridAttr(), calls);
  if (failed(groups))
    return failure();
  int64_t rows = op.getResult().getType().getDimSize(0), columns = op.getResult().getType().getDimSize(1);
  int64_t size = op.getSize() ? static_cast<int64_t>(*op.getSize()) : rows;
  for (const Group &group : *groups) {
    auto shards = llvm::map_to_vector(group, [&](int rank) { return calls[rank].write<Scalar>(op.getResult()); });
    for (int rank : group) {
      auto cotangent = calls[rank].read<Scalar>(op.getCotangent());
      auto ids = calls[rank].read<int64_t>(op.getIds());
      if (failed(checkIds(calls[rank], ids, size)))
        return failure();
      for (size_t i = 0; i < ids.size(); ++i)
        for (int64_t c = 0; c < columns; ++c)
          shards[ids[i] / rows][ids[i] % rows * columns + c] += cotangent[i * columns + c];
    }
  }
  return success();
}

/// result[i, :] = shard[ids[i] - first, :], zeros for ids of other shards
template <typename Scalar>
static LogicalResult evaluateEmbeddingShard(EmbeddingShardOp op, RankCall &call) {
  auto shard = call.read<Scalar>(op.getShard());
  auto ids = call.read<int64_t>(op.getIds());
  int64_t first = call.read<int64_t>(op.getFirst())[0];
  int64_t rows = op.getShard().getType().getDimSize(0), columns = op.getShard().getType().getDimSize(1);
  if (failed(checkIds(call, ids, static_cast<int64_t>(op.getSize()))))
    return failure();
  auto result = call.write<Scalar>(op.getResult());
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= first && ids[i] < first + rows)
      for (int64_t c = 0; c < columns; ++c)
        result[i * columns + c] = shard[(ids[i] - first) * columns + c];
  return success();
}

/// result[v, :] = sums[v, :] + Σ cotangent[i, :] over i with ids[i] = first + v
template <typename Scalar>
static LogicalResult evaluateEmbeddingShardGrad(EmbeddingShardGradOp op, RankCall &call) {
  auto cotangent = call.read<Scalar>(op.getCotangent());
  auto ids = call.read<int64_t>(op.getIds());
  int64_t first = call.read<int64_t>(op.getFirst())[0];
  int64_t rows = op.getSums().getType().getDimSize(0), columns = op.getSums().getType().getDimSize(1);
  Tensor result = call.get(op.getSums()).copy();
  auto sums = result.getMutable<Scalar>();
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= first && ids[i] < first + rows)
      for (int64_t c = 0; c < columns; ++c)
        sums[(ids[i] - first) * columns + c] += cotangent[i * columns + c];
  call.set(op.getResult(), std::move(result));
  return success();
}

void interpreter::addEmbeddingOps(OpTable &table) {
  table.add<EmbeddingOp>(evaluateEmbedding<double>, evaluateEmbedding<Field>);
  table.add<EmbeddingGradOp>(evaluateEmbeddingGrad<double>, evaluateEmbeddingGrad<Field>);
  table.add<EmbeddingShardOp>(evaluateEmbeddingShard<double>, evaluateEmbeddingShard<Field>);
  table.add<EmbeddingShardGradOp>(evaluateEmbeddingShardGrad<double>, evaluateEmbeddingShardGrad<Field>);
}
