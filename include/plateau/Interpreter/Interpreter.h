//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The reference interpreter of the tensor level: what a function means, computed slowly and obviously, to compare
// compiled code and rewrites with. It shares no arithmetic code with the lowering or the runtime.
//
// Ops run one at a time, each on all (virtual) ranks before the next, so an op may see the values of every rank. The
// rows that experts receive are as many on each rank as its plan says: a type that leaves the number of rows open
// stands for tensors of different sizes.
//
// Float64: floating-point values of every type are doubles and nothing is rounded to a narrower type (arith.truncf and
// arith.extf give their operand).
//
// Exact: floating-point values are integers modulo 2^61 - 1. Constants and inputs map to the field exactly (m · 2^e
// with 1/2 the inverse of 2); add, subtract, multiply, negate and divide are those of the field (division by zero gives
// zero). Ops that are nonlinear in a row are hashes of everything the row's result depends on, each op and each adjoint
// with a hash of its own; an adjoint is zero where the row's cotangent is. A router's choice is made by such a hash
// too: it follows from the row of logits, the bias and the routing alone. Sums (over rows, tokens, heads, ranks, the
// summed dimension of a product) are sums in the field. So a rewrite that only permutes, splits or reorders sums gives
// the same bits, and one that changes what is computed does not. Comparisons, minimum, maximum and absolute value take
// the representative nearest to zero: small integers behave as integers. The states of a vocabulary loss by tiles
// rescale a running sum, which no hash can do: those ops have no exact value, and say so.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERPRETER_INTERPRETER_H
#define PLATEAU_INTERPRETER_INTERPRETER_H

#include "plateau/Execution/StepExecutor.h"
#include "plateau/Interpreter/Tensor.h"
#include <atomic>

namespace mlir::plateau {

class Interpreter {
public:
  enum class Mode { Float64, Exact };
  using Tensor = interpreter::Tensor;
  using Field = interpreter::Field;

  /// Evaluates `function` once. `arguments[rank][index]`, and the result likewise. Fails with a diagnostic at the op
  /// that has no value: one the interpreter does not know, or data out of range.
  static FailureOr<SmallVector<SmallVector<Tensor>>> evaluate(func::FuncOp function, int ranks, Mode mode,
                                                              ArrayRef<SmallVector<Tensor>> arguments);

  /// The same on one rank in float64, on plain numbers; integer arguments and results as doubles too.
  static FailureOr<std::vector<std::vector<double>>> evaluate(func::FuncOp function,
                                                              ArrayRef<std::vector<double>> arguments);
};

/// Runs a function by interpretation. Buffers hold what the IR's types say, and are widened when they are written; a
/// read rounds to nearest even. What stays in a donated argument from run to run keeps all its bits (it is not rounded
/// between runs). In exact mode a read gives the representative nearest to zero, rounded.
class InterpreterExecutor : public StepExecutor {
public:
  InterpreterExecutor(func::FuncOp function, int ranks, Interpreter::Mode mode);

  llvm::Error writeArgument(int rank, unsigned index, ArrayRef<char> bytes) override;
  llvm::Error readArgument(int rank, unsigned index, MutableArrayRef<char> bytes) override;
  llvm::Error readResult(int rank, unsigned index, MutableArrayRef<char> bytes) override;
  llvm::Error run() override;
  void interrupt() override { interrupted.store(true); }

  /// The value itself. Of a result: after a run.
  const interpreter::Tensor &getArgument(int rank, unsigned index) const { return arguments[rank][index]; }
  const interpreter::Tensor &getResult(int rank, unsigned index) const { return results[rank][index]; }

  /// A hash of all elements in order and of the shape: equal digests mean equal values. Of a result, after a run.
  uint64_t getArgumentDigest(int rank, unsigned index) const;
  uint64_t getResultDigest(int rank, unsigned index) const;
  /// A hash of the elements of parts of results, one part after the other, after a run: it does not tell how elements
  /// are cut into parts.
  uint64_t getResultDigest(ArrayRef<ResultPart> parts) const;

private:
  Interpreter::Mode mode;
  SmallVector<SmallVector<interpreter::Tensor>> arguments; // by rank, then index
  SmallVector<SmallVector<interpreter::Tensor>> results;
  bool hasRun = false;
  std::atomic<bool> interrupted{false};
};

/// Null, with a diagnostic, when an argument or result is not a static tensor of i32, i64, f32, bf16 or f64, or when
/// there is no body. Arguments are undefined until they are written.
std::unique_ptr<InterpreterExecutor> createInterpreterExecutor(func::FuncOp function, int ranks,
                                                               Interpreter::Mode mode);

} // namespace mlir::plateau

#endif // PLATEAU_INTERPRETER_INTERPRETER_H
