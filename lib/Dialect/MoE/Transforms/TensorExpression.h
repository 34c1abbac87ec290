//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What an element of a tensor is, as an expression of elements of other tensors: through structured ops of linalg
// whatever their maps and bodies, elementwise ops and reshapes. So what is computed can be compared, and not how the
// ops cut it up. Expressions are kept as sums of terms; equal ones have one number. They hold for real numbers.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_TRANSFORMS_TENSOREXPRESSION_H
#define PLATEAU_DIALECT_MOE_TRANSFORMS_TENSOREXPRESSION_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include <map>

namespace mlir::linalg {
class LinalgOp;
class SoftmaxOp;
} // namespace mlir::linalg

namespace mlir::plateau::moe {

/// Number of an expression.
using Expression = int32_t;
/// Σ factor · expression, by ascending number; `one` stands for the constant.
using Terms = SmallVector<std::pair<Expression, double>>;

class TensorExpressions {
public:
  enum class Kind {
    One,        ///< The constant 1, whose multiples are constants.
    Row,        ///< A coordinate along tokens, free or bound by a sum to a scalar.
    Column,     ///< A coordinate along columns, bound by a reduction.
    Element,    ///< Of `value`, at the coordinates `operands`.
    Apply,      ///< The op `name` of `operands`.
    Reduce,     ///< `name` ("add", "max") of operands[1] over all values of the coordinate operands[0].
    Sum,        ///< Σ factors[i] · operands[i].
    Accumulator ///< What a reduction has so far; not in finished expressions.
  };
  struct Node {
    Kind kind;
    StringRef name;
    Value value;
    SmallVector<Expression> operands;
    SmallVector<double> factors;
  };

  TensorExpressions();

  /// The element of `tensor` at these coordinates; of a scalar without any.
  Expression read(Value tensor, ArrayRef<Expression> coordinates);

  const Node &get(Expression expression) const { return nodes[expression]; }
  Expression getRow() const { return row; }
  Expression getColumn() const { return column; }
  Terms getTerms(Expression expression) const;
  /// The number when the expression is constant.
  std::optional<double> getConstant(Expression expression) const;
  Expression addScaled(Expression a, Expression b, double factor);
  Expression divide(Expression expression, double divisor);
  /// `expression` with the coordinate `variable` replaced where nothing binds it.
  Expression substitute(Expression expression, Expression variable, Expression replacement);
  bool contains(Expression expression, Expression variable) const;
  /// The operands (eq(a, b), then, else) when it is a select by equality, as numbers are.
  std::optional<std::array<Expression, 3>> getSelect(Expression expression) const;
  std::string print(Expression expression) const;

  /// The ops that were read through.
  const llvm::SetVector<Operation *> &getVisited() const { return visited; }

private:
  using Environment = llvm::DenseMap<Value, Expression>;

  Expression intern(Node node);
  Expression makeConstant(double number);
  Expression makeSum(Terms terms);
  Expression makeApply(StringRef name, ArrayRef<Expression> operands);
  Expression makeProduct(Expression a, Expression b);
  Expression makeLogarithm(Expression of);
  Expression makeSelect(Expression condition, Expression then, Expression otherwise);
  Expression makeEqual(Expression a, Expression b);
  Expression makeReduction(StringRef name, Expression variable, Expression body);
  /// By the name of an op of arith or math.
  Expression makeElementwise(Operation *op, ArrayRef<Expression> operands);

  Expression readElement(Value tensor, ArrayRef<Expression> coordinates);
  std::optional<Expression> readStructured(linalg::LinalgOp op, unsigned result, ArrayRef<Expression> coordinates);
  Expression readSoftmax(linalg::SoftmaxOp op, ArrayRef<Expression> coordinates);
  std::optional<Expression> readReshape(Operation *op, ArrayRef<Expression> coordinates);
  Expression evaluate(Value scalar, Environment &environment);

  using Key = std::tuple<Kind, std::string, void *, std::vector<Expression>, std::vector<double>>;
  std::vector<Node> nodes;
  std::map<Key, Expression> numbers;
  std::map<std::pair<void *, std::vector<Expression>>, Expression> known;
  llvm::SetVector<Operation *> visited;
  Expression one, row, column, accumulator;
};

} // namespace mlir::plateau::moe

#endif // PLATEAU_DIALECT_MOE_TRANSFORMS_TENSOREXPRESSION_H
