//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// linalg.matmul as a product of packed matrices; every other structured op of linalg point by point, by its maps and
// body.
//===----------------------------------------------------------------------===//

#include "ElementFunction.h"
#include "Points.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

// --- Maps ---

/// `expression` as a linear form of the loop coordinates; fails when it has a division or remainder.
static LogicalResult addTo(LinearForm &form, AffineExpr expression, int64_t factor) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expression)) {
    form.constant += factor * constant.getValue();
    return success();
  }
  if (auto dimension = dyn_cast<AffineDimExpr>(expression)) {
    form.coefficients[dimension.getPosition()] += factor;
    return success();
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  if (!binary)
    return failure();
  if (binary.getKind() == AffineExprKind::Add)
    return success(succeeded(addTo(form, binary.getLHS(), factor)) && succeeded(addTo(form, binary.getRHS(), factor)));
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (binary.getKind() != AffineExprKind::Mul || !constant)
    return failure();
  return addTo(form, binary.getLHS(), factor * constant.getValue());
}

/// Where in a row-major tensor of `shape` the element lies that `map` gives for a point of the loops.
static FailureOr<LinearForm> getPositions(AffineMap map, ArrayRef<int64_t> shape) {
  LinearForm form;
  form.coefficients.assign(map.getNumDims(), 0);
  for (auto [expression, stride] : llvm::zip_equal(map.getResults(), getStrides(shape)))
    if (failed(addTo(form, expression, stride)))
      return failure();
  return form;
}

// --- Point by point ---

namespace {
/// The body of a structured op as a list of steps on numbered cells.
class Body {
public:
  LogicalResult compile(linalg::LinalgOp op, RankCall &call, Mode mode);

  /// Runs the body at one point.
  void run(ArrayRef<int64_t> point) {
    for (auto [cell, dimension] : indices)
      cells[cell].integer = point[dimension];
    for (const Step &step : steps) {
      Cell operands[3];
      for (auto [i, operand] : llvm::enumerate(step.operands))
        operands[i] = cells[operand];
      cells[step.result] = step.function(operands);
    }
  }

  unsigned getNumber(Value value) { return numbers.try_emplace(value, numbers.size()).first->second; }
  Cell &operator[](unsigned number) { return cells[number]; }

private:
  struct Step {
    ElementFunction function;
    SmallVector<unsigned, 3> operands;
    unsigned result;
  };

  llvm::DenseMap<Value, unsigned> numbers;
  SmallVector<std::pair<unsigned, unsigned>> indices; // cell, loop
  SmallVector<Step> steps;
  SmallVector<Cell> cells;
};

LogicalResult Body::compile(linalg::LinalgOp op, RankCall &call, Mode mode) {
  Block *block = op.getBlock();
  for (BlockArgument argument : block->getArguments())
    getNumber(argument);
  SmallVector<std::pair<unsigned, Cell>> known;
  for (Operation &inner : *block) {
    for (Value operand : inner.getOperands())
      if (!numbers.contains(operand)) { // a scalar from above
        if (isa<RankedTensorType>(operand.getType()))
          return call.fail("its body uses a whole tensor");
        known.emplace_back(getNumber(operand), loadCell(getElements(call.get(operand)), 0));
      }
    if (inner.hasTrait<OpTrait::IsTerminator>())
      break;
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      indices.emplace_back(getNumber(index.getResult()), index.getDim());
    } else if (auto constant = dyn_cast<arith::ConstantOp>(inner)) {
      Cell cell;
      if (auto number = dyn_cast<FloatAttr>(constant.getValue())) {
        double float64 = number.getValue().convertToDouble();
        mode == Mode::Float64 ? (void)(cell.float64 = float64) : (void)(cell.field = Field::fromDouble(float64));
      } else if (auto number = dyn_cast<IntegerAttr>(constant.getValue())) {
        cell.integer = normalizeInteger(number.getValue().getZExtValue(), getIntegerWidth(constant.getType()));
      } else {
        return call.fail("its body has a constant that is not a number");
      }
      known.emplace_back(getNumber(constant.getResult()), cell);
    } else if (auto function = getElementFunction(&inner, mode)) {
      SmallVector<unsigned, 3> operands =
          llvm::map_to_vector<3>(inner.getOperands(), [&](Value operand) { return getNumber(operand); });
      steps.push_back({*function, operands, getNumber(inner.getResult(0))});
    } else {
      return call.fail("the interpreter does not know '" + inner.getName().getStringRef() + "' in its body");
    }
  }
  cells.resize(numbers.size());
  for (auto [number, cell] : known)
    cells[number] = cell;
  return success();
}

/// An operand of a structured op: the cell of the body it is loaded to, and where its elements lie.
struct Port {
  unsigned cell;
  LinearForm position;
  const void *elements;
};
} // namespace

static LogicalResult evaluateStructured(Operation *operation, RankCall &call, Mode mode) {
  auto op = cast<linalg::LinalgOp>(operation);
  Body body;
  if (failed(body.compile(op, call, mode)))
    return failure();

  SmallVector<Tensor> results;
  SmallVector<Port> loads, stores;
  for (OpOperand &operand : operation->getOpOperands()) {
    bool isInit = op.isDpsInit(&operand), isUsed = op.payloadUsesValueFromOperand(&operand);
    if (isUsed && failed(call.checkDefined(operand.get())))
      return failure();
    Tensor tensor = call.get(operand.get());
    auto position = getPositions(op.getMatchingIndexingMap(&operand), tensor.getShape());
    if (failed(position))
      return call.fail("the interpreter knows indexing maps of sums and multiples only");
    const void *elements = getElements(tensor);
    if (isInit) {
      Tensor result = tensor.copy();
      elements = getElements(result);
      Value yielded = op.getMatchingYieldValue(&operand)->get();
      stores.push_back({body.getNumber(yielded), *position, elements});
      results.push_back(std::move(result));
    }
    if (isUsed)
      loads.push_back({body.getNumber(op.getMatchingBlockArgument(&operand)), *position, elements});
  }
  SmallVector<void *> outputs = llvm::map_to_vector(results, [](Tensor &result) { return getMutableElements(result); });

  forEachPoint(op.getStaticLoopRanges(), [&](ArrayRef<int64_t> point) {
    for (const Port &port : loads)
      body[port.cell] = loadCell(port.elements, port.position(point));
    body.run(point);
    for (auto [port, output] : llvm::zip_equal(stores, outputs))
      storeCell(output, port.position(point), body[port.cell]);
  });
  for (auto [value, result] : llvm::zip_equal(operation->getResults(), results))
    call.set(value, std::move(result));
  return success();
}

// --- linalg.matmul ---

/// c[m, n] += a[m, k] · b[k, n]. Each element takes its terms in ascending order of k; only the order in which elements
/// take their turns is chosen for speed.
static void multiply(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c) {
  constexpr int64_t columns = 256, depth = 64;
  for (int64_t j0 = 0; j0 < n; j0 += columns)
    for (int64_t l0 = 0; l0 < k; l0 += depth)
      for (int64_t i = 0; i < m; ++i) {
        int64_t width = std::min(columns, n - j0), end = std::min(l0 + depth, k), l = l0;
        double *row = c + i * n + j0;
        for (; l + 4 <= end; l += 4) {
          double a0 = a[i * k + l], a1 = a[i * k + l + 1], a2 = a[i * k + l + 2], a3 = a[i * k + l + 3];
          const double *b0 = b + l * n + j0, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
          for (int64_t j = 0; j < width; ++j)
            row[j] = (((row[j] + a0 * b0[j]) + a1 * b1[j]) + a2 * b2[j]) + a3 * b3[j];
        }
        for (; l < end; ++l)
          for (int64_t j = 0; j < width; ++j)
            row[j] += a[i * k + l] * b[l * n + j0 + j];
      }
}

static void multiply(int64_t m, int64_t n, int64_t k, const Field *a, const Field *b, Field *c) {
  constexpr int64_t columns = 256, depth = 63; // 63 products below 2^122 and an element are below 2^128
  Field::Wide sums[columns];
  for (int64_t j0 = 0; j0 < n; j0 += columns)
    for (int64_t l0 = 0; l0 < k; l0 += depth)
      for (int64_t i = 0; i < m; ++i) {
        int64_t width = std::min(columns, n - j0);
        for (int64_t j = 0; j < width; ++j)
          sums[j] = c[i * n + j0 + j].getValue();
        for (int64_t l = l0, end = std::min(l0 + depth, k); l < end; ++l)
          for (int64_t j = 0; j < width; ++j)
            sums[j] += Field::Wide(a[i * k + l].getValue()) * b[l * n + j0 + j].getValue();
        for (int64_t j = 0; j < width; ++j)
          c[i * n + j0 + j] = Field::fromWide(sums[j]);
      }
}

/// The elements that a matmul reads at loops (row, column), as a matrix [rows, columns].
template <typename Scalar>
static std::vector<Scalar> packMatrix(ArrayRef<Scalar> elements, const LinearForm &position, unsigned rowLoop,
                                      unsigned columnLoop, int64_t rows, int64_t columns) {
  std::vector<Scalar> matrix(rows * columns);
  int64_t rowStride = position.coefficients[rowLoop], columnStride = position.coefficients[columnLoop];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      matrix[i * columns + j] = elements[position.constant + i * rowStride + j * columnStride];
  return matrix;
}

template <typename Scalar>
static LogicalResult evaluateMatmul(linalg::MatmulOp op, RankCall &call) {
  Mode mode = std::is_same_v<Scalar, double> ? Mode::Float64 : Mode::Exact;
  auto structured = cast<linalg::LinalgOp>(op.getOperation());
  SmallVector<AffineMap> maps = structured.getIndexingMapsArray();
  bool isPlain = maps[2] == AffineMap::getMultiDimIdentityMap(3, op.getContext()).getMajorSubMap(2);
  Value a = op.getInputs()[0], b = op.getInputs()[1], c = op.getOutputs()[0];
  bool isFloat =
      llvm::all_of(op->getOperandTypes(), [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); });
  if (!isPlain || !isFloat)
    return evaluateStructured(op, call, mode);
  for (Value operand : op->getOperands())
    if (failed(call.checkDefined(operand)))
      return failure();
  auto aPosition = getPositions(maps[0], getShape(a.getType())),
       bPosition = getPositions(maps[1], getShape(b.getType()));
  if (failed(aPosition) || failed(bPosition))
    return call.fail("the interpreter knows indexing maps of sums and multiples only");
  SmallVector<int64_t> sizes = structured.getStaticLoopRanges();
  auto aMatrix = packMatrix(call.read<Scalar>(a), *aPosition, 0, 2, sizes[0], sizes[2]);
  auto bMatrix = packMatrix(call.read<Scalar>(b), *bPosition, 2, 1, sizes[2], sizes[1]);
  Tensor result = call.get(c).copy();
  multiply(sizes[0], sizes[1], sizes[2], aMatrix.data(), bMatrix.data(), result.getMutable<Scalar>().data());
  call.set(op.getResult(0), std::move(result));
  return success();
}

void interpreter::addLinalgOps(OpTable &table) {
  Mode mode = table.getMode();
  table.add<linalg::MatmulOp>(evaluateMatmul<double>, evaluateMatmul<Field>, Access::Moves);
  table.addFamily([](Operation *op) { return isa<linalg::LinalgOp>(op); },
                  onEachRank([mode](Operation *op, RankCall &call) { return evaluateStructured(op, call, mode); },
                             Access::Moves)); // which operands are read depends on the body
}
