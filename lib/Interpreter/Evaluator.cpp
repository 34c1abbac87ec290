//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

static std::string toString(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

const Tensor &RankCall::get(Value value) const { return evaluator.get(value)[rank]; }

LogicalResult RankCall::fail(const Twine &message) const {
  return evaluator.fail(op, "rank " + Twine(rank) + ": " + message);
}

LogicalResult RankCall::checkDefined(Value value) const {
  const Tensor &tensor = get(value);
  if (!tensor.holds<Field>())
    return success();
  for (auto [index, element] : llvm::enumerate(tensor.get<Field>()))
    if (element.isUndefined())
      return fail("reads element " + Twine(index) + " of a value to which nothing was stored");
  return success();
}

const char *interpreter::getObstacle(Type type, Shapes shapes) {
  constexpr int64_t mostElements = int64_t(1) << 34;
  if (shapes == Shapes::Routed && isa<moe::PlanType>(type))
    return nullptr;
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    ArrayRef<int64_t> dimensions = tensor.getShape();
    if (shapes == Shapes::Routed && !dimensions.empty() && tensor.isDynamicDim(0))
      dimensions = dimensions.drop_front();
    if (ShapedType::isDynamicShape(dimensions))
      return "the interpreter needs static shapes";
    int64_t elements = 1;
    for (int64_t dimension : dimensions)
      if (llvm::MulOverflow(elements, dimension, elements) || elements > mostElements)
        return "that is more than 2^34 elements";
    type = tensor.getElementType();
  }
  if (isa<FloatType>(type) || type.isIndex() || (type.isInteger() && type.getIntOrFloatBitWidth() <= 64))
    return nullptr;
  return "the interpreter knows tensors and scalars of floating-point type, of integers up to 64 bits, and of index";
}

OpFunction interpreter::onAllRanks(RanksFunction function, Access access, Shapes shapes) {
  return [=](Evaluator &evaluator, Operation *op) -> LogicalResult {
    for (auto [what, types] :
         {std::pair<StringRef, TypeRange>("a result", op->getResultTypes()), {"an operand", op->getOperandTypes()}})
      for (Type type : types)
        if (const char *obstacle = getObstacle(type, shapes))
          return evaluator.fail(op, "has " + what + " of type " + toString(type) + ": " + obstacle);
    SmallVector<RankCall> calls;
    for (int rank = 0; rank < evaluator.getRanks(); ++rank)
      calls.emplace_back(evaluator, op, rank);
    if (access == Access::Computes)
      for (RankCall &call : calls)
        for (Value operand : op->getOperands())
          if (failed(call.checkDefined(operand)))
            return failure();
    if (failed(function(op, calls)))
      return failure();
    for (OpResult result : op->getResults()) {
      RankValues values;
      for (RankCall &call : calls)
        values.push_back(call.takeResult(result.getResultNumber()));
      evaluator.set(result, std::move(values));
    }
    return success();
  };
}

OpFunction interpreter::onEachRank(RankFunction function, Access access, Shapes shapes) {
  return onAllRanks(
      [function = std::move(function)](Operation *op, MutableArrayRef<RankCall> calls) {
        return success(llvm::all_of(calls, [&](RankCall &call) { return succeeded(function(op, call)); }));
      },
      access, shapes);
}

const OpFunction *OpTable::find(Operation *op) const {
  auto it = functions.find(op->getName().getStringRef());
  if (it != functions.end())
    return &it->second;
  auto family = llvm::find_if(families, [&](const auto &entry) { return entry.first(op); });
  return family == families.end() ? nullptr : &family->second;
}

Evaluator::Evaluator(int ranks, Mode mode, const std::atomic<bool> *interrupted)
    : ranks(ranks), mode(mode), interrupted(interrupted), table(mode) {
  addControlOps(table);
  addConstantOps(table);
  addElementwiseOps(table);
  addTensorOps(table);
  addLinalgOps(table);
  addEmbeddingOps(table);
  addNormOps(table);
  addRotaryOps(table);
  addAttentionOps(table);
  addVocabularyOps(table);
  addVocabularyTileOps(table);
  addOptimizerOps(table);
  addRoutingOps(table);
  addBalanceOps(table);
  addPlanOps(table);
  addDispatchOps(table);
  addHelperOps(table);
  addExpertOps(table);
  addCollectiveOps(table);
}

LogicalResult Evaluator::fail(Operation *op, const Twine &message) {
  std::string text = message.str();
  if (error.empty()) {
    StringRef name = moe::getLocationName(op->getLoc());
    error =
        "'" + op->getName().getStringRef().str() + "'" + (name.empty() ? "" : " (" + name.str() + ")") + ": " + text;
  }
  return op->emitOpError(text);
}

FailureOr<SmallVector<RankValues>> Evaluator::evaluateFunction(func::FuncOp function, ArrayRef<RankValues> arguments) {
  if (function.isDeclaration())
    return fail(function, "has no body to interpret");
  // There is no control flow here that could end a recursion.
  if (llvm::is_contained(active, function))
    return fail(function, "calls itself");
  active.push_back(function);
  auto results = evaluateRegion(function.getBody(), arguments);
  active.pop_back();
  return results;
}

/// For each op of a block, the values that no later op uses: theirs are dropped after it.
static llvm::DenseMap<Operation *, SmallVector<Value>> findLastUses(Block &block) {
  llvm::DenseMap<Operation *, SmallVector<Value>> dead;
  llvm::DenseSet<Value> used;
  for (Operation &op : llvm::reverse(block)) {
    op.walk([&](Operation *inner) { // regions may use values from above
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == &block && used.insert(operand).second)
          dead[&op].push_back(operand);
    });
    for (Value result : op.getResults())
      if (!used.contains(result))
        dead[&op].push_back(result);
  }
  return dead;
}

FailureOr<SmallVector<RankValues>> Evaluator::evaluateRegion(Region &region, ArrayRef<RankValues> arguments) {
  if (!region.hasOneBlock())
    return fail(region.getParentOp(), "has several blocks: the interpreter knows no branches");
  Block &block = region.front();
  for (auto [argument, tensors] : llvm::zip_equal(block.getArguments(), arguments))
    set(argument, tensors);
  auto dead = findLastUses(block);
  for (Operation &op : block.without_terminator()) {
    if (interrupted && interrupted->load())
      return fail(&op, "interrupted before this op");
    const OpFunction *function = table.find(&op);
    if (!function)
      return fail(&op, "the interpreter does not know '" + op.getName().getStringRef() + "'");
    if (failed((*function)(*this, &op)))
      return failure();
    for (Value value : dead.lookup(&op))
      values.erase(value);
  }
  Operation *terminator = block.getTerminator();
  if (!isa<func::ReturnOp, moe::YieldOp, scf::YieldOp>(terminator))
    return fail(terminator, "the interpreter does not know '" + terminator->getName().getStringRef() + "'");
  SmallVector<RankValues> results;
  for (Value operand : terminator->getOperands())
    results.push_back(get(operand));
  for (Value value : dead.lookup(terminator))
    values.erase(value);
  return results;
}
