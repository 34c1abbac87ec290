//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Expressions and their normal form. TensorExpressionReader.cpp makes them of ops.
//===----------------------------------------------------------------------===//

#include "TensorExpression.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::plateau::moe;

TensorExpressions::TensorExpressions() {
  one = intern({Kind::One, "", {}, {}, {}});
  row = intern({Kind::Row, "", {}, {}, {}});
  column = intern({Kind::Column, "", {}, {}, {}});
  accumulator = intern({Kind::Accumulator, "", {}, {}, {}});
}

Expression TensorExpressions::intern(Node node) {
  Key key(node.kind, node.name.str(), node.value.getAsOpaquePointer(),
          std::vector<Expression>(node.operands.begin(), node.operands.end()),
          std::vector<double>(node.factors.begin(), node.factors.end()));
  auto [it, isNew] = numbers.try_emplace(std::move(key), static_cast<Expression>(nodes.size()));
  if (isNew) {
    node.name = std::get<1>(it->first); // The map's copy stays where it is.
    nodes.push_back(std::move(node));
  }
  return it->second;
}

Terms TensorExpressions::getTerms(Expression expression) const {
  const Node &node = nodes[expression];
  if (node.kind != Kind::Sum)
    return {{expression, 1.0}};
  Terms terms;
  for (auto [operand, factor] : llvm::zip_equal(node.operands, node.factors))
    terms.emplace_back(operand, factor);
  return terms;
}

Expression TensorExpressions::makeSum(Terms terms) {
  llvm::sort(terms);
  Node node = {Kind::Sum, "", {}, {}, {}};
  for (auto [operand, factor] : terms) {
    if (node.operands.empty() || node.operands.back() != operand) {
      node.operands.push_back(operand);
      node.factors.push_back(factor);
    } else {
      node.factors.back() += factor;
    }
    if (node.factors.back() == 0) {
      node.operands.pop_back();
      node.factors.pop_back();
    }
  }
  if (node.operands.size() == 1 && node.factors[0] == 1)
    return node.operands[0];
  return intern(std::move(node));
}

Expression TensorExpressions::makeConstant(double number) { return makeSum({{one, number}}); }

std::optional<double> TensorExpressions::getConstant(Expression expression) const {
  Terms terms = getTerms(expression);
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms[0].first == one)
    return terms[0].second;
  return std::nullopt;
}

Expression TensorExpressions::addScaled(Expression a, Expression b, double factor) {
  Terms terms = getTerms(a);
  for (auto [operand, own] : getTerms(b))
    terms.emplace_back(operand, own * factor);
  return makeSum(std::move(terms));
}

Expression TensorExpressions::divide(Expression expression, double divisor) {
  Terms terms = getTerms(expression);
  for (auto &[operand, factor] : terms)
    factor /= divisor;
  return makeSum(std::move(terms));
}

Expression TensorExpressions::makeApply(StringRef name, ArrayRef<Expression> operands) {
  return intern({Kind::Apply, name, {}, SmallVector<Expression>(operands), {}});
}

static bool isApply(const TensorExpressions::Node &node, StringRef name) {
  return node.kind == TensorExpressions::Kind::Apply && node.name == name;
}

std::optional<std::array<Expression, 3>> TensorExpressions::getSelect(Expression expression) const {
  const Node &node = nodes[expression];
  if (!isApply(node, "select"))
    return std::nullopt;
  return std::array<Expression, 3>{node.operands[0], node.operands[1], node.operands[2]};
}

Expression TensorExpressions::makeEqual(Expression a, Expression b) {
  return makeApply("equal", {std::min(a, b), std::max(a, b)});
}

Expression TensorExpressions::makeSelect(Expression condition, Expression then, Expression otherwise) {
  if (isApply(nodes[condition], "not"))
    return makeSelect(nodes[condition].operands[0], otherwise, then);
  return then == otherwise ? then : makeApply("select", {condition, then, otherwise});
}

Expression TensorExpressions::makeProduct(Expression a, Expression b) {
  if (getConstant(a))
    std::swap(a, b);
  if (std::optional<double> factor = getConstant(b))
    return addScaled(makeConstant(0), a, *factor);
  // A number that is 0 or 1 by a condition chooses.
  for (auto [choice, other] : {std::pair(a, b), std::pair(b, a)})
    if (auto select = getSelect(choice)) {
      auto [condition, then, otherwise] = *select;
      if (getConstant(then) && getConstant(otherwise))
        return makeSelect(condition, makeProduct(other, then), makeProduct(other, otherwise));
    }
  return makeApply("product", {std::min(a, b), std::max(a, b)});
}

Expression TensorExpressions::makeLogarithm(Expression of) {
  Node node = nodes[of];
  if (isApply(node, "exp"))
    return node.operands[0];
  if (isApply(node, "quotient") || isApply(node, "product"))
    return addScaled(makeLogarithm(node.operands[0]), makeLogarithm(node.operands[1]),
                     isApply(node, "product") ? 1 : -1);
  return makeApply("log", {of});
}

Expression TensorExpressions::makeReduction(StringRef name, Expression variable, Expression body) {
  if (name == "add") {
    // Σ over columns of what only one of them has.
    if (auto select = getSelect(body); select && getConstant((*select)[2]) == 0.0) {
      const Node &equal = nodes[(*select)[0]];
      if (isApply(equal, "equal") && llvm::is_contained(equal.operands, variable)) {
        Expression other = equal.operands[0] == variable ? equal.operands[1] : equal.operands[0];
        if (!contains(other, variable))
          return substitute((*select)[1], variable, other);
      }
    }
    Terms terms = getTerms(body);
    if (terms.size() == 1 && terms[0].second != 1 && terms[0].first != one)
      return addScaled(makeConstant(0), makeReduction(name, variable, terms[0].first), terms[0].second);
  }
  return intern({Kind::Reduce, name, {}, {variable, body}, {}});
}

bool TensorExpressions::contains(Expression expression, Expression variable) const {
  if (expression == variable)
    return true;
  const Node &node = nodes[expression];
  if (node.kind == Kind::Reduce && node.operands[0] == variable)
    return false;
  return llvm::any_of(node.operands, [&](Expression operand) { return contains(operand, variable); });
}

Expression TensorExpressions::substitute(Expression expression, Expression variable, Expression replacement) {
  if (expression == variable)
    return replacement;
  Node node = nodes[expression];
  if (!contains(expression, variable))
    return expression;
  SmallVector<Expression> operands = llvm::map_to_vector(
      node.operands, [&](Expression operand) { return substitute(operand, variable, replacement); });
  switch (node.kind) {
  case Kind::Sum: {
    Expression sum = makeConstant(0);
    for (auto [operand, factor] : llvm::zip_equal(operands, node.factors))
      sum = addScaled(sum, operand, factor);
    return sum;
  }
  case Kind::Reduce:
    return makeReduction(node.name, operands[0], operands[1]);
  case Kind::Apply:
    if (node.name == "equal")
      return makeEqual(operands[0], operands[1]);
    if (node.name == "product")
      return makeProduct(operands[0], operands[1]);
    [[fallthrough]];
  default:
    node.operands = operands;
    return intern(node);
  }
}

Expression TensorExpressions::makeElementwise(Operation *op, ArrayRef<Expression> operands) {
  StringRef name = op->getName().getStringRef();
  if (name == "arith.addf" || name == "arith.addi")
    return addScaled(operands[0], operands[1], 1);
  if (name == "arith.subf" || name == "arith.subi")
    return addScaled(operands[0], operands[1], -1);
  if (name == "arith.negf")
    return addScaled(makeConstant(0), operands[0], -1);
  if (name == "arith.mulf" || name == "arith.muli")
    return makeProduct(operands[0], operands[1]);
  if (name == "arith.divf") {
    std::optional<double> divisor = getConstant(operands[1]);
    return divisor && *divisor != 0 ? makeProduct(operands[0], makeConstant(1 / *divisor))
                                    : makeApply("quotient", operands);
  }
  if (name == "math.exp")
    return makeApply("exp", operands);
  if (name == "math.log")
    return makeLogarithm(operands[0]);
  if (name == "math.tanh")
    return makeApply("tanh", operands);
  if (name == "arith.maximumf" || name == "arith.maxnumf")
    return makeApply("max", {std::min(operands[0], operands[1]), std::max(operands[0], operands[1])});
  if (name == "arith.select")
    return makeSelect(operands[0], operands[1], operands[2]);
  // A number of 0 or 1 is a choice between them; other integers are themselves in each type.
  auto isCondition = [&](Expression of) { return isApply(nodes[of], "equal") || isApply(nodes[of], "not"); };
  bool isSigned = name == "arith.sitofp" || name == "arith.extsi" || name == "arith.index_cast";
  if (isSigned || ((name == "arith.uitofp" || name == "arith.extui") && isCondition(operands[0]))) {
    if (!isCondition(operands[0]))
      return operands[0];
    return makeSelect(operands[0], makeConstant(isSigned ? -1 : 1), makeConstant(0));
  }
  if (name == "arith.cmpi") {
    // By name: eq is 0 and ne 1 among the predicates of integers.
    int64_t predicate = op->getAttrOfType<IntegerAttr>("predicate").getInt();
    if (predicate == 0)
      return makeEqual(operands[0], operands[1]);
    if (predicate == 1)
      return makeApply("not", {makeEqual(operands[0], operands[1])});
  }
  // Anything else is only itself. Attributes would tell two apart, and nothing here compares them.
  return intern({Kind::Apply, name, op->getResult(0), SmallVector<Expression>(operands), {}});
}

std::string TensorExpressions::print(Expression expression) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  const Node &node = nodes[expression];
  auto list = [&] { llvm::interleaveComma(node.operands, os, [&](Expression operand) { os << print(operand); }); };
  switch (node.kind) {
  case Kind::One:
    return "1";
  case Kind::Row:
    return "row";
  case Kind::Column:
    return "column";
  case Kind::Accumulator:
    return "what is summed so far";
  case Kind::Sum:
    if (node.operands.empty())
      return "0";
    llvm::interleave(
        llvm::zip_equal(node.operands, node.factors), os,
        [&](auto term) {
          auto [operand, factor] = term;
          if (factor != 1)
            os << llvm::format("%g", factor) << " ";
          os << print(operand);
        },
        " + ");
    return text;
  case Kind::Element:
    if (Operation *op = node.value.getDefiningOp())
      os << op->getName();
    else
      os << "argument #" << cast<BlockArgument>(node.value).getArgNumber();
    os << "[";
    list();
    os << "]";
    return text;
  case Kind::Apply:
  case Kind::Reduce:
    os << node.name << "(";
    list();
    os << ")";
    return text;
  }
  return text;
}
