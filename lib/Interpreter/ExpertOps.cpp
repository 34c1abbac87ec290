//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Hash.h"
#include "Plan.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

/// Rows of a tensor on this rank, whatever its type says.
static int64_t getRows(RankCall &call, Value value) { return call.get(value).getShape().front(); }

/// Fails unless two operands have equally many rows on this rank.
static LogicalResult checkRows(RankCall &call, Value a, Value b) {
  if (getRows(call, a) != getRows(call, b))
    return call.fail("has operands of " + Twine(getRows(call, a)) + " and of " + Twine(getRows(call, b)) + " rows");
  return success();
}

// --- Products ---

/// The rows of `value` in the iteration that the op names; fails unless it has as many.
template <typename OpTy>
static FailureOr<std::vector<PlanRow>> readOwnRows(OpTy op, RankCall &call, Value value) {
  FailureOr<int64_t> iteration = readIteration(call, op.getPlan(), op.getIndex());
  if (failed(iteration))
    return failure();
  return readRowsFor(call, op.getPlan(), *iteration, value);
}

/// result[r, o] = Σ_i rows[r, i] · weights[expert of r, i, o]; transposed: weights[expert of r, o, i]; with those of
/// `helpers` behind the rank's own
template <typename Scalar>
static LogicalResult evaluateGroupedMatmul(GroupedMatmulOp op, RankCall &call) {
  auto plan = readOwnRows(op, call, op.getRows());
  if (failed(plan))
    return failure();
  auto rows = call.read<Scalar>(op.getRows());
  std::vector<Scalar> weights = call.read<Scalar>(op.getWeights()).vec();
  if (op.getHelpers())
    llvm::append_range(weights, call.read<Scalar>(op.getHelpers()));
  int64_t inputs = op.getRows().getType().getDimSize(1), outputs = op.getResult().getType().getDimSize(1);
  int64_t inputStride = op.getTranspose() ? 1 : outputs, outputStride = op.getTranspose() ? inputs : 1;
  auto result = call.write<Scalar>(op.getResult(), {static_cast<int64_t>(plan->size()), outputs});
  for (auto [r, row] : llvm::enumerate(*plan)) {
    auto matrix = ArrayRef(weights).slice(row.expert * inputs * outputs, inputs * outputs);
    for (int64_t o = 0; o < outputs; ++o) {
      Scalar sum = Scalar();
      for (int64_t i = 0; i < inputs; ++i)
        sum += rows[r * inputs + i] * matrix[i * inputStride + o * outputStride];
      result[r * outputs + o] = sum;
    }
  }
  return success();
}

/// result[e, i, j] = init[e, i, j] + Σ a[r, i] · b[r, j] over the rows r of expert e; helper_result likewise
template <typename Scalar>
static LogicalResult evaluateGroupedMatmulGrad(GroupedMatmulGradOp op, RankCall &call) {
  auto plan = readOwnRows(op, call, op.getA());
  if (failed(plan) || failed(checkRows(call, op.getA(), op.getB())))
    return failure();
  auto a = call.read<Scalar>(op.getA()), b = call.read<Scalar>(op.getB());
  int64_t aColumns = op.getA().getType().getDimSize(1), bColumns = op.getB().getType().getDimSize(1);
  int64_t localExperts = op.getPlan().getType().getLocalExperts();
  auto result = call.write<Scalar>(op.getResult());
  MutableArrayRef<Scalar> helperResult;
  if (op.getInit())
    llvm::copy(call.read<Scalar>(op.getInit()), result.begin());
  if (op.getHelperResult())
    helperResult = call.write<Scalar>(op.getHelperResult());
  if (op.getHelperInit())
    llvm::copy(call.read<Scalar>(op.getHelperInit()), helperResult.begin());
  for (auto [r, row] : llvm::enumerate(*plan)) {
    bool helps = row.expert >= localExperts;
    MutableArrayRef<Scalar> matrices = helps ? helperResult : result;
    int64_t expert = helps ? row.expert - localExperts : row.expert;
    for (int64_t i = 0; i < aColumns; ++i)
      for (int64_t j = 0; j < bColumns; ++j)
        matrices[(expert * aColumns + i) * bColumns + j] += a[r * aColumns + i] * b[r * bColumns + j];
  }
  return success();
}

// --- SwiGLU ---

static LogicalResult evaluateSwiGLU(SwiGLUOp op, RankCall &call) {
  auto input = call.read<double>(op.getInput());
  int64_t rows = getRows(call, op.getInput()), columns = op.getResult().getType().getDimSize(1);
  auto result = call.write<double>(op.getResult(), {rows, columns});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      double gate = input[r * 2 * columns + c], up = input[r * 2 * columns + columns + c];
      result[r * columns + c] = gate / (1 + std::exp(-gate)) * up;
    }
  return success();
}

/// Each element is a hash of its whole row, and so in the adjoint.
static LogicalResult evaluateSwiGLUExactly(SwiGLUOp op, RankCall &call) {
  auto input = call.read<Field>(op.getInput());
  int64_t rows = getRows(call, op.getInput()), columns = op.getResult().getType().getDimSize(1);
  auto result = call.write<Field>(op.getResult(), {rows, columns});
  for (int64_t r = 0; r < rows; ++r) {
    Hash row = Hash("swiglu").add(input.slice(r * 2 * columns, 2 * columns));
    for (int64_t c = 0; c < columns; ++c)
      result[r * columns + c] = row.at(c);
  }
  return success();
}

static LogicalResult evaluateSwiGLUGrad(SwiGLUGradOp op, RankCall &call) {
  if (failed(checkRows(call, op.getCotangent(), op.getInput())))
    return failure();
  auto cotangent = call.read<double>(op.getCotangent()), input = call.read<double>(op.getInput());
  int64_t rows = getRows(call, op.getInput()), columns = op.getCotangent().getType().getDimSize(1);
  auto result = call.write<double>(op.getResult(), {rows, 2 * columns});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      int64_t gateAt = r * 2 * columns + c, upAt = gateAt + columns;
      double gate = input[gateAt], up = input[upAt], d = cotangent[r * columns + c];
      double s = 1 / (1 + std::exp(-gate));
      result[gateAt] = d * up * s * (1 + gate * (1 - s));
      result[upAt] = d * gate * s;
    }
  return success();
}

static LogicalResult evaluateSwiGLUGradExactly(SwiGLUGradOp op, RankCall &call) {
  if (failed(checkRows(call, op.getCotangent(), op.getInput())))
    return failure();
  auto cotangent = call.read<Field>(op.getCotangent()), input = call.read<Field>(op.getInput());
  int64_t rows = getRows(call, op.getInput()), columns = op.getCotangent().getType().getDimSize(1);
  auto result = call.write<Field>(op.getResult(), {rows, 2 * columns});
  for (int64_t r = 0; r < rows; ++r) {
    if (isZero(cotangent.slice(r * columns, columns)))
      continue;
    Hash row = Hash("swiglu_grad").add(cotangent.slice(r * columns, columns));
    row.add(input.slice(r * 2 * columns, 2 * columns));
    for (int64_t c = 0; c < 2 * columns; ++c)
      result[r * 2 * columns + c] = row.at(c);
  }
  return success();
}

// --- Rows and numbers ---

/// result[r, :] = factors[r] · input[r, :]
template <typename Scalar>
static LogicalResult evaluateScaleRows(ScaleRowsOp op, RankCall &call) {
  if (failed(checkRows(call, op.getInput(), op.getFactors())))
    return failure();
  auto input = call.read<Scalar>(op.getInput()), factors = call.read<Scalar>(op.getFactors());
  int64_t rows = getRows(call, op.getInput()), columns = op.getInput().getType().getDimSize(1);
  auto result = call.write<Scalar>(op.getResult(), {rows, columns});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[r * columns + c] = factors[r] * input[r * columns + c];
  return success();
}

/// result[r] = Σ_c a[r, c] · b[r, c]
template <typename Scalar>
static LogicalResult evaluateRowDot(RowDotOp op, RankCall &call) {
  if (failed(checkRows(call, op.getA(), op.getB())))
    return failure();
  auto a = call.read<Scalar>(op.getA()), b = call.read<Scalar>(op.getB());
  int64_t rows = getRows(call, op.getA()), columns = op.getA().getType().getDimSize(1);
  auto result = call.write<Scalar>(op.getResult(), {rows});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[r] += a[r * columns + c] * b[r * columns + c];
  return success();
}

template <typename OpTy>
static void addRouted(OpTable &table, LogicalResult (*float64)(OpTy, RankCall &),
                      LogicalResult (*exact)(OpTy, RankCall &)) {
  table.add<OpTy>(float64, exact, Access::Computes, Shapes::Routed);
}

void interpreter::addExpertOps(OpTable &table) {
  addRouted<GroupedMatmulOp>(table, evaluateGroupedMatmul<double>, evaluateGroupedMatmul<Field>);
  addRouted<GroupedMatmulGradOp>(table, evaluateGroupedMatmulGrad<double>, evaluateGroupedMatmulGrad<Field>);
  addRouted<SwiGLUOp>(table, evaluateSwiGLU, evaluateSwiGLUExactly);
  addRouted<SwiGLUGradOp>(table, evaluateSwiGLUGrad, evaluateSwiGLUGradExactly);
  addRouted<ScaleRowsOp>(table, evaluateScaleRows<double>, evaluateScaleRows<Field>);
  addRouted<RowDotOp>(table, evaluateRowDot<double>, evaluateRowDot<Field>);
}
