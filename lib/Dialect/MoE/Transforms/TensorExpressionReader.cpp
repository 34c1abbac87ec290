//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Ops as expressions.
//===----------------------------------------------------------------------===//

#include "TensorExpression.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Interfaces/Matmul.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

Expression TensorExpressions::read(Value tensor, ArrayRef<Expression> coordinates) {
  std::pair key(tensor.getAsOpaquePointer(), std::vector<Expression>(coordinates.begin(), coordinates.end()));
  if (auto it = known.find(key); it != known.end())
    return it->second;
  Expression expression = readElement(tensor, coordinates);
  known[key] = expression;
  return expression;
}

Expression TensorExpressions::readElement(Value tensor, ArrayRef<Expression> coordinates) {
  Expression itself = intern({Kind::Element, "", tensor, SmallVector<Expression>(coordinates), {}});
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return itself;
  DenseElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)) && elements.isSplat()) {
    if (auto number = dyn_cast<FloatAttr>(elements.getSplatValue<Attribute>()))
      return makeConstant(number.getValueAsDouble());
    if (auto number = dyn_cast<IntegerAttr>(elements.getSplatValue<Attribute>()))
      return makeConstant(static_cast<double>(number.getInt()));
  }
  std::optional<Expression> found;
  if (auto matmul = dyn_cast<linalg::MatmulOp>(op)) {
    if (isOnZeros(matmul))
      return itself;
    found = addScaled(itself, read(matmul.getOutputs()[0], coordinates), 1);
  } else if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
    if (softmax.getDimension() == coordinates.size() - 1 && coordinates.size() == 2)
      found = readSoftmax(softmax, coordinates);
  } else if (auto softmax = dyn_cast<LogSoftmaxOp>(op)) {
    VocabularyAttr vocabulary = softmax.getVocabulary();
    bool isPlain = !softmax.getBias() && !vocabulary.hasSoftcap() &&
                   vocabulary.getSize() == softmax.getInput().getType().getDimSize(1);
    if (isPlain && tensor == softmax.getResult()) {
      Expression all =
          makeReduction("add", column, makeApply("exp", {read(softmax.getInput(), {coordinates[0], column})}));
      found = addScaled(read(softmax.getInput(), coordinates), makeLogarithm(all), -1);
    }
  } else if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    found = readStructured(structured, cast<OpResult>(tensor).getResultNumber(), coordinates);
  } else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op)) {
    found = readReshape(op, coordinates);
  } else if (op->getNumResults() == 1 && OpTrait::hasElementwiseMappableTraits(op)) {
    found = makeElementwise(
        op, llvm::map_to_vector(op->getOperands(), [&](Value operand) { return read(operand, coordinates); }));
  }
  if (!found)
    return itself;
  visited.insert(op);
  return *found;
}

Expression TensorExpressions::readSoftmax(linalg::SoftmaxOp op, ArrayRef<Expression> coordinates) {
  Expression own = makeApply("exp", {read(op.getInput(), coordinates)});
  Expression all = makeReduction("add", column, makeApply("exp", {read(op.getInput(), {coordinates[0], column})}));
  return makeApply("quotient", {own, all});
}

/// Dimensions of 1 come and go.
std::optional<Expression> TensorExpressions::readReshape(Operation *op, ArrayRef<Expression> coordinates) {
  Value source = op->getOperand(0);
  if (isa<tensor::CastOp>(op))
    return read(source, coordinates);
  auto type = cast<RankedTensorType>(source.getType()), result = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<Expression> inner;
  unsigned next = 0;
  auto isUnit = [](RankedTensorType of, unsigned index) { return of.getDimSize(index) == 1; };
  for (unsigned index = 0; index < type.getRank(); ++index) {
    if (isUnit(type, index)) {
      inner.push_back(makeConstant(0));
      continue;
    }
    while (next < result.getRank() && isUnit(result, next))
      ++next;
    if (next == result.getRank() || result.getDimSize(next) != type.getDimSize(index))
      return std::nullopt;
    inner.push_back(coordinates[next++]);
  }
  while (next < result.getRank() && isUnit(result, next))
    ++next;
  if (next != result.getRank())
    return std::nullopt;
  return read(source, inner);
}

Expression TensorExpressions::evaluate(Value scalar, Environment &environment) {
  if (auto it = environment.find(scalar); it != environment.end())
    return it->second;
  Operation *op = scalar.getDefiningOp();
  Expression expression = intern({Kind::Element, "", scalar, {}, {}});
  Attribute constant;
  if (!op) {
  } else if (matchPattern(op, m_Constant(&constant))) {
    if (auto number = dyn_cast<FloatAttr>(constant))
      expression = makeConstant(number.getValueAsDouble());
    else if (auto number = dyn_cast<IntegerAttr>(constant))
      expression = makeConstant(static_cast<double>(number.getInt()));
  } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    expression =
        read(extract.getTensor(),
             llvm::map_to_vector(extract.getIndices(), [&](Value index) { return evaluate(index, environment); }));
  } else if (op->getNumResults() == 1 && op->getNumRegions() == 0 && OpTrait::hasElementwiseMappableTraits(op)) {
    expression = makeElementwise(
        op, llvm::map_to_vector(op->getOperands(), [&](Value operand) { return evaluate(operand, environment); }));
  }
  environment[scalar] = expression;
  return expression;
}

std::optional<Expression> TensorExpressions::readStructured(linalg::LinalgOp op, unsigned result,
                                                            ArrayRef<Expression> coordinates) {
  OpOperand *init = op.getDpsInitOperand(result);
  constexpr Expression unknown = -1;
  SmallVector<Expression> loops(op.getNumLoops(), unknown);
  AffineMap map = op.getMatchingIndexingMap(init);
  for (auto [expression, coordinate] : llvm::zip_equal(map.getResults(), coordinates)) {
    if (auto dimension = dyn_cast<AffineDimExpr>(expression))
      loops[dimension.getPosition()] = coordinate;
    else if (!isa<AffineConstantExpr>(expression))
      return std::nullopt;
  }
  Expression bound = unknown;
  for (auto [loop, kind] : llvm::zip_equal(loops, op.getIteratorTypesArray())) {
    if (loop != unknown)
      continue;
    if (kind != utils::IteratorType::reduction || bound != unknown)
      return std::nullopt;
    // Rows are summed to a scalar, columns to something for each row.
    bound = cast<RankedTensorType>(init->get().getType()).getRank() == 0 ? row : column;
    loop = bound;
  }
  if (bound != unknown)
    for (Expression coordinate : coordinates)
      if (contains(coordinate, bound))
        return std::nullopt;

  // The operands of the body, as far as their coordinates are simple.
  Environment environment;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (op.isDpsInit(&operand) && bound != unknown) {
      if (&operand == init) // What another result has so far is only itself.
        environment[argument] = accumulator;
      continue;
    }
    if (!isa<RankedTensorType>(operand.get().getType())) {
      environment[argument] = evaluate(operand.get(), environment);
      continue;
    }
    SmallVector<Expression> at;
    for (AffineExpr expression : op.getMatchingIndexingMap(&operand).getResults()) {
      if (auto dimension = dyn_cast<AffineDimExpr>(expression))
        at.push_back(loops[dimension.getPosition()]);
      else if (auto constant = dyn_cast<AffineConstantExpr>(expression))
        at.push_back(makeConstant(static_cast<double>(constant.getValue())));
      else
        return std::nullopt;
    }
    if (op.payloadUsesValueFromOperand(&operand))
      environment[argument] = read(operand.get(), at);
  }
  Block &body = op->getRegion(0).front();
  for (auto index : body.getOps<linalg::IndexOp>())
    environment[index.getResult()] = loops[index.getDim()];
  for (Operation &inner : body.without_terminator())
    if (inner.getNumRegions() > 0)
      return std::nullopt;
  Expression value = evaluate(body.getTerminator()->getOperand(result), environment);
  if (bound == unknown)
    return value;

  Expression start = read(init->get(), coordinates);
  if (Expression rest = addScaled(value, accumulator, -1); !contains(rest, accumulator))
    return addScaled(start, makeReduction("add", bound, rest), 1);
  Node node = nodes[value];
  if (node.kind == Kind::Apply && node.name == "max" && llvm::is_contained(node.operands, accumulator)) {
    Expression other = node.operands[0] == accumulator ? node.operands[1] : node.operands[0];
    if (!contains(other, accumulator)) {
      Expression largest = makeReduction("max", bound, other);
      std::optional<double> least = getConstant(start);
      return least && *least < -1e38 ? largest : makeApply("max", {std::min(largest, start), std::max(largest, start)});
    }
  }
  return std::nullopt;
}
