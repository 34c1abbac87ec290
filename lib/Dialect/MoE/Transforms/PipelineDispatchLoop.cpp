//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PipelineDispatchLoop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static RankedTensorType getTensor(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// The stages of an iteration: what goes to experts travels beside the products of the iteration before.
enum class Stage : int64_t { Send, Compute, Return };

/// Builds ops around those of one plan.
class PlanBuilder {
public:
  PlanBuilder(Value plan, FlatSymbolRefAttr grid)
      : builder(plan.getContext()), plan(plan), grid(grid), type(cast<PlanType>(plan.getType())) {}

  bool hasHelpers() const { return type.getHelperSlots() > 0; }

  Value buildZeros(Location loc, RankedTensorType tensor) {
    Value empty = tensor::EmptyOp::create(builder, loc, tensor.getShape(), tensor.getElementType());
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(tensor.getElementType()));
    return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  }

  /// The type for the helper slots beside `own` for the experts of the rank.
  RankedTensorType getHelperType(RankedTensorType own) const {
    SmallVector<int64_t> shape(own.getShape());
    shape[0] = type.getHelperSlots();
    return own.clone(shape);
  }

  Value buildMigration(GroupedMatmulOp matmul, Location loc) {
    RankedTensorType helpers = getHelperType(matmul.getWeights().getType());
    return MigrateExpertsOp::create(builder, loc, helpers, matmul.getWeights(), plan, grid);
  }

  /// What the sum of a gradient starts from, in f32: zero, or what the op adds it to.
  Value buildSum(GroupedMatmulGradOp op) {
    auto sum = RankedTensorType::get(op.getResult().getType().getShape(), builder.getF32Type());
    if (!op.getInit())
      return buildZeros(op.getLoc(), sum);
    return op.getInit().getType() == sum ? op.getInit()
                                         : arith::ExtFOp::create(builder, op.getLoc(), sum, op.getInit()).getResult();
  }

  /// What the gradient is once all has been added: that of the experts of this rank, in the old type.
  Value finishSum(GroupedMatmulGradOp op, Value sum, Value helperSum) {
    if (hasHelpers())
      sum = ReturnExpertGradsOp::create(builder, op.getLoc(), sum.getType(), sum, helperSum, plan, grid);
    Type result = op.getResult().getType();
    return sum.getType() == result ? sum : arith::TruncFOp::create(builder, op.getLoc(), result, sum).getResult();
  }

  OpBuilder builder;
  Value plan;
  FlatSymbolRefAttr grid;
  PlanType type;
};

class LoopBuilder : PlanBuilder {
public:
  LoopBuilder(const DispatchGroup &group, FlatSymbolRefAttr grid) : PlanBuilder(group.plan, grid), group(group) {}

  LogicalResult build(int64_t inFlight);

private:
  LogicalResult findPlace();
  void buildInits();
  void buildBody(scf::ForOp loop);
  void cloneInto(Operation *op, Stage stage);
  void replaceSinks(scf::ForOp loop);

  Location getLoc(Operation *op) const {
    return group.repeated.contains(op) ? withPhase(op->getLoc(), phase) : op->getLoc();
  }

  const DispatchGroup &group;
  Phase phase = Phase::Forward;
  llvm::MapVector<Value, Value> helpers; ///< By weights.
  SmallVector<Value> inits, yielded;
  llvm::DenseMap<Operation *, unsigned> firstInit; ///< Of each sink.
  IRMapping mapping;
  Value index;
  ValueRange carried;
};
} // namespace

/// Behind the last value that the group reads. What reads the group's results and stands before that moves behind: none
/// of it is read by the group, since groups do not wait for themselves.
LogicalResult LoopBuilder::findPlace() {
  Block *block = group.ops.front()->getBlock();
  llvm::SmallPtrSet<Operation *, 16> own(group.ops.begin(), group.ops.end());
  Operation *last = nullptr;
  auto consider = [&](Value value) {
    Operation *source = value.getDefiningOp();
    if (source && source->getBlock() == block && !own.contains(source) && (!last || last->isBeforeInBlock(source)))
      last = source;
  };
  for (Operation *op : group.ops)
    for (Value operand : op->getOperands())
      if (!isRoutedType(operand.getType()))
        consider(operand);
  if (!last) {
    builder.setInsertionPointToStart(block);
    return success();
  }
  llvm::SetVector<Operation *> late;
  auto isLate = [&](Operation &op) {
    bool reads = false;
    auto check = [&](Value value) {
      Operation *source = value.getDefiningOp();
      Operation *ancestor = source ? block->findAncestorOpInBlock(*source) : nullptr;
      reads |= ancestor && (late.contains(ancestor) || (own.contains(ancestor) && isSink(ancestor)));
    };
    llvm::for_each(op.getOperands(), check);
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op.getRegions(), captured);
    llvm::for_each(captured, check);
    return reads;
  };
  for (Operation &op : llvm::make_range(block->begin(), std::next(last->getIterator()))) {
    if (own.contains(&op) || !isLate(op))
      continue;
    if (!isMemoryEffectFree(&op))
      return op.emitOpError("reads what experts give, and has to move behind ")
             << last->getName() << ", on which the experts wait; it has effects, so it cannot";
    late.insert(&op);
  }
  Operation *behind = last;
  for (Operation *op : late) {
    op->moveAfter(behind);
    behind = op;
  }
  builder.setInsertionPointAfter(last);
  return success();
}

void LoopBuilder::buildInits() {
  for (Operation *op : group.ops) {
    firstInit[op] = inits.size();
    Location loc = getLoc(op);
    if (auto combine = dyn_cast<CombineOp>(op)) {
      for (Value result : combine->getResults())
        inits.push_back(buildZeros(loc, getTensor(result)));
    } else if (auto grad = dyn_cast<GroupedMatmulGradOp>(op)) {
      Value sum = buildSum(grad);
      inits.push_back(sum);
      if (hasHelpers())
        inits.push_back(buildZeros(loc, getHelperType(getTensor(sum))));
    } else if (auto matmul = dyn_cast<GroupedMatmulOp>(op); matmul && hasHelpers()) {
      Value &helper = helpers[matmul.getWeights()];
      if (!helper)
        helper = buildMigration(matmul, loc);
    }
  }
}

void LoopBuilder::cloneInto(Operation *op, Stage stage) {
  Operation *created = nullptr;
  unsigned first = firstInit.lookup(op);
  if (auto grad = dyn_cast<GroupedMatmulGradOp>(op)) {
    Value helperSum = hasHelpers() ? carried[first + 1] : Value();
    created = GroupedMatmulGradOp::create(builder, getLoc(op), carried[first].getType(),
                                          helperSum ? helperSum.getType() : Type(), mapping.lookup(grad.getA()),
                                          mapping.lookup(grad.getB()), plan, carried[first], helperSum, index);
    for (auto [number, result] : llvm::enumerate(created->getResults()))
      yielded[first + number] = result;
  } else {
    created = builder.clone(*op, mapping);
    created->setLoc(getLoc(op));
    if (auto dispatch = dyn_cast<DispatchOp>(created)) {
      dispatch.getIndexMutable().assign(index);
    } else if (auto combine = dyn_cast<CombineOp>(created)) {
      combine.getIndexMutable().assign(index);
      unsigned number = first;
      if (combine.getResult())
        combine.getInitMutable().assign(carried[number++]);
      if (combine.getValues())
        combine.getValuesInitMutable().assign(carried[number]);
      for (auto [offset, result] : llvm::enumerate(created->getResults()))
        yielded[first + offset] = result;
    } else if (auto matmul = dyn_cast<GroupedMatmulOp>(created)) {
      matmul.getIndexMutable().assign(index);
      if (hasHelpers())
        matmul.getHelpersMutable().assign(helpers.lookup(matmul.getWeights()));
    }
  }
  created->setAttr("moe.stage", builder.getI64IntegerAttr(static_cast<int64_t>(stage)));
}

void LoopBuilder::buildBody(scf::ForOp loop) {
  OpBuilder::InsertionGuard guard(builder);
  if (Block *body = loop.getBody(); !body->empty())
    body->getTerminator()->erase();
  builder.setInsertionPointToStart(loop.getBody());
  index = loop.getInductionVar();
  carried = loop.getRegionIterArgs();
  yielded.resize(inits.size());
  for (Stage stage : {Stage::Send, Stage::Compute, Stage::Return})
    for (Operation *op : group.ops) {
      std::optional<RoutedKind> kind = getRoutedKind(op);
      Stage own = kind == RoutedKind::Entry ? Stage::Send : kind == RoutedKind::Exit ? Stage::Return : Stage::Compute;
      if (own == stage)
        cloneInto(op, stage);
    }
  scf::YieldOp::create(builder, loop.getLoc(), yielded);
}

void LoopBuilder::replaceSinks(scf::ForOp loop) {
  builder.setInsertionPointAfter(loop);
  for (Operation *op : group.ops) {
    if (!isSink(op))
      continue;
    ResultRange results = loop.getResults().drop_front(firstInit.at(op));
    if (auto grad = dyn_cast<GroupedMatmulGradOp>(op)) {
      Value sum = finishSum(grad, results[0], hasHelpers() ? results[1] : Value());
      grad.getResult().replaceAllUsesWith(sum);
    } else {
      op->replaceAllUsesWith(results.take_front(op->getNumResults()));
    }
  }
}

LogicalResult LoopBuilder::build(int64_t inFlight) {
  Operation *firstSink = *llvm::find_if(group.ops, isSink);
  if (ScopeAttr scope = getScope(firstSink->getLoc()))
    phase = scope.getPhase();
  if (failed(findPlace()))
    return failure();
  buildInits();
  Location loc = firstSink->getLoc();
  auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); };
  Value from = number(0), to = number(type.getIterations()), step = number(1);
  auto loop = scf::ForOp::create(builder, loc, from, to, step, inits);
  if (inFlight > 1)
    loop->setAttr("moe.in_flight", builder.getI64IntegerAttr(inFlight));
  buildBody(loop);
  replaceSinks(loop);
  return success();
}

LogicalResult mlir::plateau::moe::buildDispatchLoop(const DispatchGroup &group, FlatSymbolRefAttr grid,
                                                    int64_t inFlight) {
  return LoopBuilder(group, grid).build(inFlight);
}

void mlir::plateau::moe::addHelpers(const DispatchGroup &group, FlatSymbolRefAttr grid,
                                    llvm::SmallDenseSet<Operation *> &done) {
  PlanBuilder plan(group.plan, grid);
  if (!plan.hasHelpers())
    return;
  llvm::DenseMap<Value, Value> helpers; // By weights.
  for (Operation *op : group.ops) {
    if (!done.insert(op).second)
      continue;
    plan.builder.setInsertionPoint(op);
    if (auto matmul = dyn_cast<GroupedMatmulOp>(op)) {
      Value &helper = helpers[matmul.getWeights()];
      if (!helper)
        helper = plan.buildMigration(matmul, op->getLoc());
      matmul.getHelpersMutable().assign(helper);
    } else if (auto grad = dyn_cast<GroupedMatmulGradOp>(op)) {
      Value sum = grad.getInit() ? plan.buildSum(grad) : Value(), helperSum;
      auto type = RankedTensorType::get(grad.getResult().getType().getShape(), plan.builder.getF32Type());
      RankedTensorType helperType = plan.getHelperType(type);
      if (sum)
        helperSum = plan.buildZeros(op->getLoc(), helperType);
      auto created = GroupedMatmulGradOp::create(plan.builder, op->getLoc(), type, helperType, grad.getA(), grad.getB(),
                                                 plan.plan, sum, helperSum, /*index=*/Value());
      Value result = plan.finishSum(grad, created.getResult(), created.getHelperResult());
      grad.getResult().replaceAllUsesWith(result);
    }
  }
}

void mlir::plateau::moe::eraseUnusedRows(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (hasRows(&op) && getRoutedKind(&op) && isOpTriviallyDead(&op))
      op.erase();
}
