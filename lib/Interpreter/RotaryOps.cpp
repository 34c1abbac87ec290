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

/// The phase is an f32 number by definition; its cosine and sine are taken in float64.
static LogicalResult evaluateRotaryTable(RotaryTableOp op, RankCall &call) {
  auto positions = call.read<int64_t>(op.getPositions());
  auto cos = call.write<double>(op.getCos()), sin = call.write<double>(op.getSin());
  int64_t half = op.getCos().getType().getDimSize(1);
  double theta = op.getTheta().convertToDouble();
  for (size_t i = 0; i < positions.size(); ++i)
    for (int64_t j = 0; j < half; ++j) {
      auto frequency = static_cast<float>(std::pow(theta, -double(j) / double(half))); // -2j/D with D = 2 · half
      float phase = static_cast<float>(positions[i]) * frequency;
      cos[i * half + j] = std::cos(double(phase));
      sin[i * half + j] = std::sin(double(phase));
    }
  return success();
}

static LogicalResult evaluateRotaryTableExactly(RotaryTableOp op, RankCall &call) {
  auto positions = call.read<int64_t>(op.getPositions());
  auto cos = call.write<Field>(op.getCos()), sin = call.write<Field>(op.getSin());
  int64_t half = op.getCos().getType().getDimSize(1);
  double theta = op.getTheta().convertToDouble();
  for (size_t i = 0; i < positions.size(); ++i)
    for (int64_t j = 0; j < half; ++j) {
      cos[i * half + j] = Hash("rotary_table cos").add(theta).add(half).add(positions[i]).at(j);
      sin[i * half + j] = Hash("rotary_table sin").add(theta).add(half).add(positions[i]).at(j);
    }
  return success();
}

/// (a·cos − b·sin, b·cos + a·sin) for the halves a and b of each head. Linear, so the same in both modes.
template <typename Scalar>
static LogicalResult evaluateRotary(RotaryOp op, RankCall &call) {
  auto input = call.read<Scalar>(op.getInput()), cos = call.read<Scalar>(op.getCos()),
       sin = call.read<Scalar>(op.getSin());
  auto result = call.write<Scalar>(op.getResult());
  RankedTensorType type = op.getInput().getType();
  int64_t rows = type.getDimSize(0), heads = type.getDimSize(1), half = type.getDimSize(2) / 2;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t j = 0; j < half; ++j) {
        int64_t first = (i * heads + h) * 2 * half + j, second = first + half;
        Scalar a = input[first], b = input[second], c = cos[i * half + j], s = sin[i * half + j];
        if (op.getInverse())
          s = -s;
        result[first] = a * c - b * s;
        result[second] = b * c + a * s;
      }
  return success();
}

void interpreter::addRotaryOps(OpTable &table) {
  table.add<RotaryTableOp>(evaluateRotaryTable, evaluateRotaryTableExactly);
  table.add<RotaryOp>(evaluateRotary<double>, evaluateRotary<Field>);
}
