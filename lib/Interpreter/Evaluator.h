//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Walks a function op by op, each op on all ranks, with a table that says how each op is evaluated.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_EVALUATOR_H
#define PLATEAU_LIB_INTERPRETER_EVALUATOR_H

#include "plateau/Interpreter/Interpreter.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <functional>

namespace mlir::plateau::interpreter {

using Mode = Interpreter::Mode;
/// One value on each rank.
using RankValues = SmallVector<Tensor>;

class Evaluator;

/// One op on one rank: reads what it uses, takes its results.
class RankCall {
public:
  RankCall(Evaluator &evaluator, Operation *op, int rank)
      : evaluator(evaluator), op(op), rank(rank), results(op->getNumResults()) {}

  /// The value of an operand, or of any other SSA value that the op's regions use.
  const Tensor &get(Value value) const;
  template <typename Scalar>
  ArrayRef<Scalar> read(Value value) const {
    return get(value).get<Scalar>();
  }

  void set(Value result, Tensor tensor) { results[cast<OpResult>(result).getResultNumber()] = std::move(tensor); }
  /// Makes a result of its type's shape, filled with zeros, and gives its elements to write.
  template <typename Scalar>
  MutableArrayRef<Scalar> write(Value result) {
    return write<Scalar>(result, cast<RankedTensorType>(result.getType()).getShape());
  }
  /// The same with `shape`, for a type that leaves the rows open.
  template <typename Scalar>
  MutableArrayRef<Scalar> write(Value result, ArrayRef<int64_t> shape) {
    set(result, Tensor::make(shape, Scalar()));
    return results[cast<OpResult>(result).getResultNumber()].getMutable<Scalar>();
  }
  Tensor takeResult(unsigned index) { return std::move(results[index]); }

  int getRank() const { return rank; }

  /// Emits an error at the op that names the rank.
  LogicalResult fail(const Twine &message) const;
  /// Fails when an element of `value` is undefined. In exact mode only: NaN shows by itself.
  LogicalResult checkDefined(Value value) const;

private:
  Evaluator &evaluator;
  Operation *op;
  int rank;
  SmallVector<Tensor> results;
};

/// Evaluates an op on all ranks.
using OpFunction = std::function<LogicalResult(Evaluator &, Operation *)>;
/// Evaluates an op on one rank.
using RankFunction = std::function<LogicalResult(Operation *, RankCall &)>;
/// Evaluates an op on all ranks, in rank order.
using RanksFunction = std::function<LogicalResult(Operation *, MutableArrayRef<RankCall>)>;

/// Whether an op computes with the elements of its operands, or only moves them: undefined ones too.
enum class Access { Computes, Moves };

/// What types an op works on: static tensors and scalars, or also what follows from the data of a step: tensors whose
/// number of rows each rank has for itself, and plans.
enum class Shapes { Static, Routed };

/// Null when the interpreter can hold a value of `type`, otherwise why it cannot.
const char *getObstacle(Type type, Shapes shapes = Shapes::Static);

/// `function` on all ranks at once.
OpFunction onAllRanks(RanksFunction function, Access access, Shapes shapes = Shapes::Static);
/// `function` on each rank alone.
OpFunction onEachRank(RankFunction function, Access access, Shapes shapes = Shapes::Static);

/// How each op is evaluated in one mode.
class OpTable {
public:
  explicit OpTable(Mode mode) : mode(mode) {}

  Mode getMode() const { return mode; }

  /// An op that sees the values of all ranks.
  void add(StringRef name, OpFunction function) { functions[name] = std::move(function); }
  /// An op of which each rank needs nothing of the others, on doubles and on field elements.
  template <typename OpTy>
  void add(LogicalResult (*float64)(OpTy, RankCall &), LogicalResult (*exact)(OpTy, RankCall &),
           Access access = Access::Computes, Shapes shapes = Shapes::Static) {
    auto function = mode == Mode::Float64 ? float64 : exact;
    add(OpTy::getOperationName(),
        onEachRank([function](Operation *op, RankCall &call) { return function(cast<OpTy>(op), call); }, access,
                   shapes));
  }
  /// An op in which each rank needs what others have, likewise.
  template <typename OpTy>
  void add(LogicalResult (*float64)(OpTy, MutableArrayRef<RankCall>),
           LogicalResult (*exact)(OpTy, MutableArrayRef<RankCall>), Access access = Access::Computes,
           Shapes shapes = Shapes::Static) {
    auto function = mode == Mode::Float64 ? float64 : exact;
    add(OpTy::getOperationName(),
        onAllRanks(
            [function](Operation *op, MutableArrayRef<RankCall> calls) { return function(cast<OpTy>(op), calls); },
            access, shapes));
  }
  /// All ops that `contains` accepts and that have no entry of their own.
  void addFamily(std::function<bool(Operation *)> contains, OpFunction function) {
    families.emplace_back(std::move(contains), std::move(function));
  }
  /// Null when the interpreter does not know the op.
  const OpFunction *find(Operation *op) const;

private:
  Mode mode;
  llvm::StringMap<OpFunction> functions;
  SmallVector<std::pair<std::function<bool(Operation *)>, OpFunction>> families;
};

void addControlOps(OpTable &table);
void addConstantOps(OpTable &table);
void addElementwiseOps(OpTable &table);
void addTensorOps(OpTable &table);
void addLinalgOps(OpTable &table);
void addEmbeddingOps(OpTable &table);
void addNormOps(OpTable &table);
void addRotaryOps(OpTable &table);
void addAttentionOps(OpTable &table);
void addVocabularyOps(OpTable &table);
void addVocabularyTileOps(OpTable &table);
void addOptimizerOps(OpTable &table);
void addRoutingOps(OpTable &table);
void addBalanceOps(OpTable &table);
void addPlanOps(OpTable &table);
void addDispatchOps(OpTable &table);
void addHelperOps(OpTable &table);
void addExpertOps(OpTable &table);
void addCollectiveOps(OpTable &table);

class Evaluator {
public:
  /// `interrupted`, when not null, is looked at before each op.
  Evaluator(int ranks, Mode mode, const std::atomic<bool> *interrupted = nullptr);

  int getRanks() const { return ranks; }
  Mode getMode() const { return mode; }

  /// The results of a function, or of a region of one block, from the values of its arguments.
  FailureOr<SmallVector<RankValues>> evaluateFunction(func::FuncOp function, ArrayRef<RankValues> arguments);
  FailureOr<SmallVector<RankValues>> evaluateRegion(Region &region, ArrayRef<RankValues> arguments);

  const RankValues &get(Value value) const { return values.find(value)->second; }
  void set(Value value, RankValues tensors) { values[value] = std::move(tensors); }

  /// Emits an error at `op`; the first one is kept for getError.
  LogicalResult fail(Operation *op, const Twine &message);
  StringRef getError() const { return error; }

private:
  int ranks;
  Mode mode;
  const std::atomic<bool> *interrupted;
  OpTable table;
  llvm::DenseMap<Value, RankValues> values;
  SmallVector<func::FuncOp> active; // functions being evaluated, outermost first
  std::string error;
};

/// A function on all ranks of `evaluator`; `arguments[rank][index]`, and the results likewise.
FailureOr<SmallVector<SmallVector<Tensor>>> evaluateOnRanks(Evaluator &evaluator, func::FuncOp function,
                                                            ArrayRef<SmallVector<Tensor>> arguments);

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_EVALUATOR_H
