//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "Hash.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

// Token i sees tokens starts[i] … i; query head h reads key head h / (query heads / key heads).

namespace {
/// The sizes of an attention op, and where the row of a token and head begins.
struct Heads {
  int64_t rows, queryHeads, keyHeads, size;

  Heads(RankedTensorType query, RankedTensorType key)
      : rows(query.getDimSize(0)), queryHeads(query.getDimSize(1)), keyHeads(key.getDimSize(1)),
        size(query.getDimSize(2)) {}

  int64_t getKeyHead(int64_t queryHead) const { return queryHead / (queryHeads / keyHeads); }
  int64_t atQuery(int64_t token, int64_t head) const { return (token * queryHeads + head) * size; }
  int64_t atKey(int64_t token, int64_t queryHead) const { return (token * keyHeads + getKeyHead(queryHead)) * size; }
};
} // namespace

static LogicalResult checkStarts(RankCall &call, ArrayRef<int64_t> starts) {
  for (auto [row, start] : llvm::enumerate(starts))
    if (start < 0 || start > int64_t(row))
      return call.fail("row " + Twine(row) + " has document start " + Twine(start) + ", which is not in 0 ... " +
                       Twine(row));
  return success();
}

static double dot(ArrayRef<double> a, ArrayRef<double> b) {
  double sum = 0;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sum += x * y;
  return sum;
}

static LogicalResult evaluateAttention(AttentionOp op, RankCall &call) {
  auto query = call.read<double>(op.getQuery()), key = call.read<double>(op.getKey()),
       value = call.read<double>(op.getValue());
  auto starts = call.read<int64_t>(op.getStarts());
  if (failed(checkStarts(call, starts)))
    return failure();
  auto output = call.write<double>(op.getOutput()), lse = call.write<double>(op.getLse());
  Heads heads(op.getQuery().getType(), op.getKey().getType());
  double scale = op.getScale().convertToDouble();
  for (int64_t i = 0; i < heads.rows; ++i)
    for (int64_t h = 0; h < heads.queryHeads; ++h) {
      auto q = query.slice(heads.atQuery(i, h), heads.size);
      std::vector<double> scores; // of tokens starts[i] … i
      for (int64_t j = starts[i]; j <= i; ++j)
        scores.push_back(scale * dot(q, key.slice(heads.atKey(j, h), heads.size)));
      double largest = *llvm::max_element(scores), sum = 0;
      for (double score : scores)
        sum += std::exp(score - largest);
      double logSum = largest + std::log(sum);
      lse[i * heads.queryHeads + h] = logSum;
      auto o = output.slice(heads.atQuery(i, h), heads.size);
      for (int64_t j = starts[i]; j <= i; ++j) {
        double probability = std::exp(scores[j - starts[i]] - logSum);
        for (int64_t d = 0; d < heads.size; ++d)
          o[d] += probability * value[heads.atKey(j, h) + d];
      }
    }
  return success();
}

static LogicalResult evaluateAttentionGrad(AttentionGradOp op, RankCall &call) {
  auto cotangent = call.read<double>(op.getCotangent()), output = call.read<double>(op.getOutput());
  auto query = call.read<double>(op.getQuery()), key = call.read<double>(op.getKey()),
       value = call.read<double>(op.getValue()), lse = call.read<double>(op.getLse());
  auto starts = call.read<int64_t>(op.getStarts());
  if (failed(checkStarts(call, starts)))
    return failure();
  auto queryGrad = call.write<double>(op.getQueryGrad()), keyGrad = call.write<double>(op.getKeyGrad()),
       valueGrad = call.write<double>(op.getValueGrad());
  Heads heads(op.getQuery().getType(), op.getKey().getType());
  double scale = op.getScale().convertToDouble();
  for (int64_t i = 0; i < heads.rows; ++i)
    for (int64_t h = 0; h < heads.queryHeads; ++h) {
      int64_t atQuery = heads.atQuery(i, h);
      auto q = query.slice(atQuery, heads.size), dO = cotangent.slice(atQuery, heads.size);
      double delta = dot(dO, output.slice(atQuery, heads.size));
      for (int64_t j = starts[i]; j <= i; ++j) {
        int64_t atKey = heads.atKey(j, h);
        auto k = key.slice(atKey, heads.size), v = value.slice(atKey, heads.size);
        double probability = std::exp(scale * dot(q, k) - lse[i * heads.queryHeads + h]);
        double scoreGrad = probability * (dot(dO, v) - delta);
        for (int64_t d = 0; d < heads.size; ++d) {
          queryGrad[atQuery + d] += scale * scoreGrad * k[d];
          keyGrad[atKey + d] += scale * scoreGrad * q[d];
          valueGrad[atKey + d] += probability * dO[d];
        }
      }
    }
  return success();
}

// In exact mode a row of the output is a hash of its query and, in order, of the keys and values it sees. The gradients
// of keys and values are sums over the queries that see them, so that queries may be split; each term is a hash of its
// pair.

/// One hash for each row of `size` elements.
static std::vector<uint64_t> hashRows(ArrayRef<Field> elements, int64_t size) {
  std::vector<uint64_t> hashes;
  for (size_t begin = 0; begin < elements.size(); begin += size)
    hashes.push_back(Hash("row").add(elements.slice(begin, size)).getDigest());
  return hashes;
}

static LogicalResult evaluateAttentionExactly(AttentionOp op, RankCall &call) {
  auto starts = call.read<int64_t>(op.getStarts());
  if (failed(checkStarts(call, starts)))
    return failure();
  auto output = call.write<Field>(op.getOutput()), lse = call.write<Field>(op.getLse());
  Heads heads(op.getQuery().getType(), op.getKey().getType());
  auto queries = hashRows(call.read<Field>(op.getQuery()), heads.size);
  auto keys = hashRows(call.read<Field>(op.getKey()), heads.size);
  auto values = hashRows(call.read<Field>(op.getValue()), heads.size);
  double scale = op.getScale().convertToDouble();
  for (int64_t i = 0; i < heads.rows; ++i)
    for (int64_t h = 0; h < heads.queryHeads; ++h) {
      Hash forOutput = Hash("attention output").add(scale).add(queries[i * heads.queryHeads + h]);
      Hash forLse = Hash("attention lse").add(scale).add(queries[i * heads.queryHeads + h]);
      for (int64_t j = starts[i]; j <= i; ++j) {
        int64_t row = j * heads.keyHeads + heads.getKeyHead(h);
        forOutput.add(keys[row]).add(values[row]);
        forLse.add(keys[row]);
      }
      lse[i * heads.queryHeads + h] = forLse.toField();
      for (int64_t d = 0; d < heads.size; ++d)
        output[heads.atQuery(i, h) + d] = forOutput.at(d);
    }
  return success();
}

static LogicalResult evaluateAttentionGradExactly(AttentionGradOp op, RankCall &call) {
  auto starts = call.read<int64_t>(op.getStarts());
  if (failed(checkStarts(call, starts)))
    return failure();
  auto queryGrad = call.write<Field>(op.getQueryGrad()), keyGrad = call.write<Field>(op.getKeyGrad()),
       valueGrad = call.write<Field>(op.getValueGrad());
  Heads heads(op.getQuery().getType(), op.getKey().getType());
  auto cotangent = call.read<Field>(op.getCotangent());
  auto cotangents = hashRows(cotangent, heads.size);
  auto outputs = hashRows(call.read<Field>(op.getOutput()), heads.size);
  auto queries = hashRows(call.read<Field>(op.getQuery()), heads.size);
  auto keys = hashRows(call.read<Field>(op.getKey()), heads.size);
  auto values = hashRows(call.read<Field>(op.getValue()), heads.size);
  auto lse = call.read<Field>(op.getLse());
  double scale = op.getScale().convertToDouble();
  for (int64_t i = 0; i < heads.rows; ++i)
    for (int64_t h = 0; h < heads.queryHeads; ++h) {
      int64_t row = i * heads.queryHeads + h;
      if (isZero(cotangent.slice(row * heads.size, heads.size)))
        continue;
      // What each pair of this query takes from it.
      uint64_t shared = Hash("attention_grad")
                            .add(scale)
                            .add(cotangents[row])
                            .add(outputs[row])
                            .add(queries[row])
                            .add(lse[row])
                            .getDigest();
      Hash forQuery = Hash("attention_grad query").add(shared);
      for (int64_t j = starts[i]; j <= i; ++j) {
        int64_t keyRow = j * heads.keyHeads + heads.getKeyHead(h);
        forQuery.add(keys[keyRow]).add(values[keyRow]);
        Hash forKey = Hash("attention_grad key").add(shared).add(keys[keyRow]).add(values[keyRow]);
        Hash forValue = Hash("attention_grad value").add(shared).add(keys[keyRow]);
        for (int64_t d = 0; d < heads.size; ++d) {
          keyGrad[heads.atKey(j, h) + d] += forKey.at(d);
          valueGrad[heads.atKey(j, h) + d] += forValue.at(d);
        }
      }
      for (int64_t d = 0; d < heads.size; ++d)
        queryGrad[heads.atQuery(i, h) + d] = forQuery.at(d);
    }
  return success();
}

void interpreter::addAttentionOps(OpTable &table) {
  table.add<AttentionOp>(evaluateAttention, evaluateAttentionExactly);
  table.add<AttentionGradOp>(evaluateAttentionGrad, evaluateAttentionGradExactly);
}
