//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ElementFunction.h"
#include "Hash.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

namespace {
using Self = const ElementFunction &;
using Operands = const Cell *;

template <typename Scalar>
Scalar get(Cell cell);
template <>
double get<double>(Cell cell) {
  return cell.float64;
}
template <>
Field get<Field>(Cell cell) {
  return cell.field;
}

Cell make(double number) {
  Cell cell;
  cell.float64 = number;
  return cell;
}
Cell make(Field element) {
  Cell cell;
  cell.field = element;
  return cell;
}
Cell makeInteger(uint64_t bits, unsigned width) {
  Cell cell;
  cell.integer = normalizeInteger(bits, width);
  return cell;
}

// --- Floating-point functions that differ between the modes ---

/// A function of one number: itself in float64, a hash of the op and the number in exact mode.
template <double (*function)(double)>
Cell applyUnary(double, Self, Operands x) {
  return make(function(x[0].float64));
}
template <double (*function)(double)>
Cell applyUnary(Field, Self self, Operands x) {
  return make(Hash("unary").add(self.attribute).add(x[0].field).toField());
}

double rsqrt(double x) { return 1 / std::sqrt(x); }

double getMagnitude(double x) { return std::fabs(x); }
Field getMagnitude(Field x) { return x.getSigned() < 0 ? -x : x; }

bool isNaN(double x) { return std::isnan(x); }
bool isNaN(Field) { return false; }

bool isLess(double a, double b) { return a < b; }
bool isLess(Field a, Field b) { return a.getSigned() < b.getSigned(); }

/// arith.maximumf: a NaN wins, and +0 is greater than -0.
double getMaximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return getUndefined<double>();
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
Field getMaximum(Field a, Field b) { return isLess(a, b) ? b : a; }

/// arith.maxnumf: the other number wins over a NaN.
double getMaximumNumber(double a, double b) { return std::fmax(a, b); }
Field getMaximumNumber(Field a, Field b) { return getMaximum(a, b); }

template <typename Scalar>
bool compare(arith::CmpFPredicate predicate, Scalar a, Scalar b) {
  using P = arith::CmpFPredicate;
  bool unordered = isNaN(a) || isNaN(b), less = isLess(a, b), greater = isLess(b, a), equal = a == b;
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::OEQ:
    return equal;
  case P::OGT:
    return greater;
  case P::OGE:
    return greater || equal;
  case P::OLT:
    return less;
  case P::OLE:
    return less || equal;
  case P::ONE:
    return less || greater;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || equal;
  case P::UGT:
    return unordered || greater;
  case P::UGE:
    return unordered || greater || equal;
  case P::ULT:
    return unordered || less;
  case P::ULE:
    return unordered || less || equal;
  case P::UNE:
    return !equal;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return true;
  }
  llvm_unreachable("a predicate of arith.cmpf");
}

// --- Integers ---

/// The value an integer of `width` bits has as a signed number: an i1 is kept as 0 or 1 and counts as 0 or -1.
int64_t getSigned(int64_t integer, unsigned width) { return width == 1 ? -integer : integer; }
uint64_t getUnsigned(int64_t integer, unsigned width) {
  return static_cast<uint64_t>(integer) & (~uint64_t(0) >> (64 - width));
}

bool compare(arith::CmpIPredicate predicate, int64_t x, int64_t y, unsigned width) {
  using P = arith::CmpIPredicate;
  int64_t a = getSigned(x, width), b = getSigned(y, width);
  uint64_t ua = getUnsigned(x, width), ub = getUnsigned(y, width);
  switch (predicate) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return a < b;
  case P::sle:
    return a <= b;
  case P::sgt:
    return a > b;
  case P::sge:
    return a >= b;
  case P::ult:
    return ua < ub;
  case P::ule:
    return ua <= ub;
  case P::ugt:
    return ua > ub;
  case P::uge:
    return ua >= ub;
  }
  llvm_unreachable("a predicate of arith.cmpi");
}

Cell extendSigned(Self self, Operands x) {
  return makeInteger(getSigned(x[0].integer, self.operandWidth), self.resultWidth);
}
Cell extendUnsigned(Self self, Operands x) {
  return makeInteger(getUnsigned(x[0].integer, self.operandWidth), self.resultWidth);
}

/// Sums, differences and products wrap: they are taken modulo 2^64 first.
uint64_t bits(Cell cell) { return static_cast<uint64_t>(cell.integer); }

// --- The table ---

template <typename S>
const llvm::StringMap<ElementFunction::Pointer> &getFunctions() {
  static const llvm::StringMap<ElementFunction::Pointer> functions = {
      {"arith.addf", [](Self, Operands x) { return make(get<S>(x[0]) + get<S>(x[1])); }},
      {"arith.subf", [](Self, Operands x) { return make(get<S>(x[0]) - get<S>(x[1])); }},
      {"arith.mulf", [](Self, Operands x) { return make(get<S>(x[0]) * get<S>(x[1])); }},
      {"arith.divf", [](Self, Operands x) { return make(get<S>(x[0]) / get<S>(x[1])); }},
      {"arith.negf", [](Self, Operands x) { return make(-get<S>(x[0])); }},
      {"arith.extf", [](Self, Operands x) { return x[0]; }},
      {"arith.truncf", [](Self, Operands x) { return x[0]; }},
      {"arith.maximumf", [](Self, Operands x) { return make(getMaximum(get<S>(x[0]), get<S>(x[1]))); }},
      {"arith.minimumf", [](Self, Operands x) { return make(-getMaximum(-get<S>(x[0]), -get<S>(x[1]))); }},
      {"arith.maxnumf", [](Self, Operands x) { return make(getMaximumNumber(get<S>(x[0]), get<S>(x[1]))); }},
      {"arith.minnumf", [](Self, Operands x) { return make(-getMaximumNumber(-get<S>(x[0]), -get<S>(x[1]))); }},
      {"arith.cmpf",
       [](Self self, Operands x) {
         auto predicate = static_cast<arith::CmpFPredicate>(self.attribute);
         return makeInteger(compare(predicate, get<S>(x[0]), get<S>(x[1])), 1);
       }},
      {"arith.select", [](Self, Operands x) { return x[0].integer ? x[1] : x[2]; }},
      {"arith.sitofp",
       [](Self self, Operands x) {
         int64_t integer = getSigned(x[0].integer, self.operandWidth);
         if constexpr (std::is_same_v<S, Field>)
           return make(Field::fromInteger(integer)); // all 64 bits count
         else
           return make(static_cast<double>(integer));
       }},

      {"math.absf", [](Self, Operands x) { return make(getMagnitude(get<S>(x[0]))); }},
      {"math.exp", [](Self self, Operands x) { return applyUnary<std::exp>(S(), self, x); }},
      {"math.log", [](Self self, Operands x) { return applyUnary<std::log>(S(), self, x); }},
      {"math.sqrt", [](Self self, Operands x) { return applyUnary<std::sqrt>(S(), self, x); }},
      {"math.rsqrt", [](Self self, Operands x) { return applyUnary<rsqrt>(S(), self, x); }},
      {"math.tanh", [](Self self, Operands x) { return applyUnary<std::tanh>(S(), self, x); }},

      {"arith.addi", [](Self self, Operands x) { return makeInteger(bits(x[0]) + bits(x[1]), self.resultWidth); }},
      {"arith.subi", [](Self self, Operands x) { return makeInteger(bits(x[0]) - bits(x[1]), self.resultWidth); }},
      {"arith.muli", [](Self self, Operands x) { return makeInteger(bits(x[0]) * bits(x[1]), self.resultWidth); }},
      {"arith.andi", [](Self self, Operands x) { return makeInteger(bits(x[0]) & bits(x[1]), self.resultWidth); }},
      {"arith.ori", [](Self self, Operands x) { return makeInteger(bits(x[0]) | bits(x[1]), self.resultWidth); }},
      {"arith.xori", [](Self self, Operands x) { return makeInteger(bits(x[0]) ^ bits(x[1]), self.resultWidth); }},
      {"arith.cmpi",
       [](Self self, Operands x) {
         auto predicate = static_cast<arith::CmpIPredicate>(self.attribute);
         return makeInteger(compare(predicate, x[0].integer, x[1].integer, self.operandWidth), 1);
       }},
      {"arith.index_cast", extendSigned},
      {"arith.extsi", extendSigned},
      {"arith.extui", extendUnsigned},
      {"arith.trunci", extendUnsigned},
  };
  return functions;
}

const llvm::StringMap<ElementFunction::Pointer> &getFunctions(Mode mode) {
  return mode == Mode::Float64 ? getFunctions<double>() : getFunctions<Field>();
}
} // namespace

SmallVector<StringRef> interpreter::getElementwiseOpNames() {
  return llvm::to_vector(getFunctions(Mode::Float64).keys());
}

std::optional<ElementFunction> interpreter::getElementFunction(Operation *op, Mode mode) {
  auto it = getFunctions(mode).find(op->getName().getStringRef());
  if (it == getFunctions(mode).end())
    return std::nullopt;
  uint64_t attribute = Hash(op->getName().getStringRef()).getDigest();
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    attribute = static_cast<uint64_t>(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    attribute = static_cast<uint64_t>(compare.getPredicate());
  return ElementFunction{it->second, attribute, getIntegerWidth(op->getOperand(0).getType()),
                         getIntegerWidth(op->getResult(0).getType())};
}
