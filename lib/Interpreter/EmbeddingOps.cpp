//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
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

/// result[i, :] = table[ids[i], :]
template <typename Scalar>
static LogicalResult evaluateEmbedding(EmbeddingOp op, RankCall &call) {
  auto table = call.read<Scalar>(op.getTable());
  auto ids = call.read<int64_t>(op.getIds());
  int64_t columns = op.getTable().getType().getDimSize(1);
  if (failed(checkIds(call, ids, op.getTable().getType().getDimSize(0))))
    return failure();
  auto result = call.write<Scalar>(op.getResult());
  for (size_t i = 0; i < ids.size(); ++i)
    for (int64_t c = 0; c < columns; ++c)
      result[i * columns + c] = table[ids[i] * columns + c];
  return success();
}

/// result[v, :] = Σ cotangent[i, :] over i with ids[i] = v
template <typename Scalar>
static LogicalResult evaluateEmbeddingGrad(EmbeddingGradOp op, RankCall &call) {
  auto cotangent = call.read<Scalar>(op.getCotangent());
  auto ids = call.read<int64_t>(op.getIds());
  int64_t columns = op.getResult().getType().getDimSize(1);
  if (failed(checkIds(call, ids, op.getResult().getType().getDimSize(0))))
    return failure();
  auto result = call.write<Scalar>(op.getResult());
  for (size_t i = 0; i < ids.size(); ++i)
    for (int64_t c = 0; c < columns; ++c)
      result[ids[i] * columns + c] += cotangent[i * columns + c];
  return success();
}

void interpreter::addEmbeddingOps(OpTable &table) {
  table.add<EmbeddingOp>(evaluateEmbedding<double>, evaluateEmbedding<Field>);
  table.add<EmbeddingGradOp>(evaluateEmbeddingGrad<double>, evaluateEmbeddingGrad<Field>);
}
