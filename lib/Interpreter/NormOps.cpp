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

// Rows are along the last dimension; on [rows, heads, head size] each head is a row.

static LogicalResult evaluateNorm(RMSNormOp op, RankCall &call) {
  auto input = call.read<double>(op.getInput()), weight = call.read<double>(op.getWeight());
  auto output = call.write<double>(op.getOutput()), inverse = call.write<double>(op.getInverse());
  int64_t columns = weight.size();
  double epsilon = op.getEpsilon().convertToDouble();
  for (size_t r = 0; r < inverse.size(); ++r) {
    auto x = input.slice(r * columns, columns);
    double squares = 0;
    for (double element : x)
      squares += element * element;
    inverse[r] = 1 / std::sqrt(squares / columns + epsilon);
    for (int64_t c = 0; c < columns; ++c)
      output[r * columns + c] = x[c] * inverse[r] * weight[c];
  }
  return success();
}

/// A row of the output depends on the row of the input, the weight and epsilon.
static LogicalResult evaluateNormExactly(RMSNormOp op, RankCall &call) {
  auto input = call.read<Field>(op.getInput()), weight = call.read<Field>(op.getWeight());
  auto output = call.write<Field>(op.getOutput()), inverse = call.write<Field>(op.getInverse());
  int64_t columns = weight.size();
  double epsilon = op.getEpsilon().convertToDouble();
  for (size_t r = 0; r < inverse.size(); ++r) {
    auto x = input.slice(r * columns, columns);
    inverse[r] = Hash("rms_norm inverse").add(x).add(epsilon).toField();
    Hash row = Hash("rms_norm output").add(x).add(weight).add(epsilon);
    for (int64_t c = 0; c < columns; ++c)
      output[r * columns + c] = row.at(c);
  }
  return success();
}

static LogicalResult evaluateNormGrad(RMSNormGradOp op, RankCall &call) {
  auto cotangent = call.read<double>(op.getCotangent()), input = call.read<double>(op.getInput());
  auto weight = call.read<double>(op.getWeight()), inverse = call.read<double>(op.getInverse());
  auto inputGrad = call.write<double>(op.getInputGrad()), weightGrad = call.write<double>(op.getWeightGrad());
  int64_t columns = weight.size();
  for (size_t r = 0; r < inverse.size(); ++r) {
    auto x = input.slice(r * columns, columns), dy = cotangent.slice(r * columns, columns);
    double mean = 0; // of g · n, with n = x · inverse and g = dy · weight
    for (int64_t c = 0; c < columns; ++c)
      mean += dy[c] * weight[c] * x[c] * inverse[r] / columns;
    for (int64_t c = 0; c < columns; ++c) {
      double n = x[c] * inverse[r], g = dy[c] * weight[c];
      inputGrad[r * columns + c] = inverse[r] * (g - n * mean);
      weightGrad[c] += dy[c] * n;
    }
  }
  return success();
}

/// The weight's gradient is a sum over rows, so that rows may be split; each term is a hash of its row.
static LogicalResult evaluateNormGradExactly(RMSNormGradOp op, RankCall &call) {
  auto cotangent = call.read<Field>(op.getCotangent()), input = call.read<Field>(op.getInput());
  auto weight = call.read<Field>(op.getWeight()), inverse = call.read<Field>(op.getInverse());
  auto inputGrad = call.write<Field>(op.getInputGrad()), weightGrad = call.write<Field>(op.getWeightGrad());
  int64_t columns = weight.size();
  for (size_t r = 0; r < inverse.size(); ++r) {
    auto x = input.slice(r * columns, columns), dy = cotangent.slice(r * columns, columns);
    if (isZero(dy))
      continue;
    Hash forInput = Hash("rms_norm_grad input").add(dy).add(x).add(weight).add(inverse[r]);
    Hash forWeight = Hash("rms_norm_grad weight").add(dy).add(x).add(inverse[r]);
    for (int64_t c = 0; c < columns; ++c) {
      inputGrad[r * columns + c] = forInput.at(c);
      weightGrad[c] += forWeight.at(c);
    }
  }
  return success();
}

void interpreter::addNormOps(OpTable &table) {
  table.add<RMSNormOp>(evaluateNorm, evaluateNormExactly);
  table.add<RMSNormGradOp>(evaluateNormGrad, evaluateNormGradExactly);
}
