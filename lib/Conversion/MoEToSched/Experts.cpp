//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Ranks and experts: collectives, plans, and ops on rows whose number is known when the step runs.
//===----------------------------------------------------------------------===//

#include "FunctionConversion.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "plateau/runtime_footprint.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static_assert(static_cast<int>(Score::Softmax) == PLR_SOFTMAX &&
                  static_cast<int>(Score::TopKSoftmax) == PLR_TOP_K_SOFTMAX &&
                  static_cast<int>(Score::Sigmoid) == PLR_SIGMOID,
              "the compiler's scores are the runtime's");

/// The iteration that an op names; null for none.
static Value getIteration(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<DispatchOp, CombineOp, GroupedMatmulOp, GroupedMatmulGradOp>([](auto routed) { return routed.getIndex(); })
      .Default(Value());
}

LogicalResult FunctionConversion::checkPlans(Operation *op) {
  std::optional<PlanRows> all;
  for (Value operand : op->getOperands()) {
    PlanRows rows = getPlanRows(operand);
    if (isa<PlanType>(operand.getType()))
      rows = {operand, getIteration(op)};
    if (!rows.plan)
      continue;
    if (all && all->plan != rows.plan)
      return op->emitOpError("has operands of two plans, whose numbers of rows are not the same when the step runs");
    if (all && !(*all == rows))
      return op->emitOpError("has rows of another iteration of the plan than its own");
    all = rows;
  }
  return success();
}

/// The element type of a collective; none when the runtime has no such.
static std::optional<plr_type> getCollectiveType(Type tensor) {
  Type element = getElementTypeOrSelf(tensor);
  if (element.isF32())
    return PLR_F32;
  if (element.isBF16())
    return PLR_BF16;
  if (element.isInteger(32))
    return PLR_I32;
  if (element.isF64())
    return PLR_F64;
  return std::nullopt;
}

LogicalResult FunctionConversion::lowerPlan(PlanOp op) {
  PlanType type = op.getPlan().getType();
  int64_t hostBytes = plr_footprint_plan_host(type.getRanks(), type.getExperts(), type.getHelperSlots(),
                                              type.getChunks(), type.getLeaves()),
          deviceBytes = plr_footprint_plan_device(type.getTokens(), type.getTopK());
  auto makeSlot = [&](sched::Space space, int64_t bytes) -> Value {
    return sched::SlotOp::create(builder, op.getLoc(), MemRefType::get({bytes}, builder.getI8Type()), space,
                                 getTag(op));
  };
  Value host = makeSlot(sched::Space::Host, hostBytes), device = makeSlot(sched::Space::Device, deviceBytes);
  LeastLoadedAttr balance = op.getBalanceAttr();
  // plr_plan_shape
  SmallVector<Attribute> shape = {i64(type.getTokens()),
                                  i64(type.getTopK()),
                                  i64(type.getExperts()),
                                  i64(type.getHelperSlots()),
                                  i64(type.getChunks()),
                                  i64(type.getLeaves()),
                                  i64(type.getCapacity()),
                                  i64(balance ? balance.getAlphaNumerator() : 0),
                                  i64(balance ? balance.getAlphaDenominator() : 1),
                                  i64(balance ? balance.getMinRows() : 1),
                                  i64(balance ? balance.getThresholdNumerator() : 1),
                                  i64(balance ? balance.getThresholdDenominator() : 1)};
  Call call(*this, op);
  Attribute hostPlace = call.writePlace(host), devicePlace = call.writePlace(device);
  call.emit("plr_plan_fill", {sched::GroupArgumentAttr::get(op.getContext()),
                              sched::StructAttr::get(op.getContext(), builder.getArrayAttr(shape)),
                              call.read(op.getIds()), hostPlace, i64(hostBytes), devicePlace, i64(deviceBytes)});
  ResultRange results = call.getCreated()->getResults();
  planTables[op.getPlan()] = {results[1], results[2]};
  sched::FenceOp::create(builder, op.getLoc(), results[0]);
  return success();
}

/// Staging of an exchange between tokens and experts: of what an iteration's tokens send.
static int64_t getStagingBytes(PlanType plan, Value rows, Value values) {
  int64_t rowBytes = 0;
  if (rows) {
    auto type = cast<RankedTensorType>(rows.getType());
    rowBytes = type.getDimSize(1) * type.getElementTypeBitWidth() / 8;
  }
  return plr_footprint_exchange(plan.getRanks(), plan.getIterationTokens() * plan.getTopK(), rowBytes,
                                values != nullptr);
}

LogicalResult FunctionConversion::lowerShift(ShiftOp op) {
  OpOperand &into = op.getIntoMutable();
  std::optional<plr_type> element = getCollectiveType(op.getResult().getType());
  if (!element)
    return op.emitOpError() << "is lowered only for f32, bf16, f64 and i32";
  // What lies at `into` is not read: without a place of its own, or with one that is still needed, the result gets
  // another.
  if (buffers.isBound(into.get()) && buffers.canTake(into.get(), op) && !isReadBeside(into, buffers))
    buffers.bind(op.getResult(), buffers.getView(into.get()));
  else
    allocate(op, op.getResult());
  Call call(*this, op);
  Attribute input = call.read(op.getInput()), result = call.write(op.getResult());
  call.emit("plr_shift", {sched::GroupArgumentAttr::get(op.getContext()), i32(*element), i64(op.getHops()),
                          i64(cast<RankedTensorType>(op.getResult().getType()).getNumElements()), input, result});
  return success();
}

LogicalResult FunctionConversion::lowerCollective(Operation *op) {
  auto collective = cast<CollectiveOpInterface>(op);
  if (failed(Grid::lookup(op, collective.getCollectiveGrid())))
    return op->emitOpError() << "is on grid " << collective.getCollectiveGrid()
                             << ", and there is none with static sizes of at most 2^31 - 1 ranks";
  if (failed(checkPlans(op)))
    return failure();
  Call call(*this, op);
  auto columns = [&](Value rows) { return i64(rows ? cast<RankedTensorType>(rows.getType()).getDimSize(1) : 0); };
  auto typeOf = [&](Value rows) { return rows ? type(rows) : i32(PLR_F32); };

  if (auto plan = dyn_cast<PlanOp>(op))
    return lowerPlan(plan);
  if (auto dispatch = dyn_cast<DispatchOp>(op)) {
    for (Value result : op->getResults())
      planRows[result] = {dispatch.getPlan(), dispatch.getIndex()};
    FailureOr<Attribute> iteration = call.iteration(dispatch.getIndex());
    if (failed(iteration))
      return failure();
    Value input = dispatch.getInput(), values = dispatch.getValues();
    Attribute rows = call.out(dispatch.getRows()), rowValues = call.out(dispatch.getRowValues());
    SmallVector<Attribute> arguments = {call.plan(dispatch.getPlan()),
                                        *iteration,
                                        typeOf(input),
                                        columns(input),
                                        call.read(input),
                                        call.read(values),
                                        rows,
                                        rowValues};
    call.addScratch(arguments, getStagingBytes(dispatch.getPlan().getType(), input, values), /*isWorkspace=*/false);
    call.emit("plr_dispatch", arguments);
    return success();
  }
  if (auto combine = dyn_cast<CombineOp>(op)) {
    Value rows = combine.getRows(), values = combine.getRowValues();
    FailureOr<Attribute> iteration = call.iteration(combine.getIndex());
    if (failed(iteration))
      return failure();
    // An iteration writes its tokens alone: the result is what it was put into, with some rows written again.
    auto place = [&](MutableOperandRange init, Value result) {
      if (init.empty())
        return call.out(result);
      take(init[0], result);
      return call.update(result);
    };
    Attribute result = place(combine.getInitMutable(), combine.getResult()),
              tokenValues = place(combine.getValuesInitMutable(), combine.getValues());
    SmallVector<Attribute> arguments = {call.plan(combine.getPlan()),
                                        *iteration,
                                        typeOf(rows),
                                        columns(rows),
                                        call.read(rows),
                                        call.read(values),
                                        result,
                                        tokenValues};
    call.addScratch(arguments, getStagingBytes(combine.getPlan().getType(), rows, values), /*isWorkspace=*/false);
    call.emit("plr_combine", arguments);
    return success();
  }

  if (auto migrate = dyn_cast<MigrateExpertsOp>(op)) {
    Attribute result = call.out(migrate.getResult());
    int64_t count = migrate.getWeights().getType().getNumElements() / migrate.getPlan().getType().getLocalExperts();
    call.emit("plr_migrate_experts", {call.plan(migrate.getPlan()), type(migrate.getWeights()), i64(count),
                                      call.read(migrate.getWeights()), result});
    return success();
  }
  if (auto back = dyn_cast<ReturnExpertGradsOp>(op)) {
    take(back.getGradsMutable(), back.getResult());
    Attribute result = call.update(back.getResult());
    int64_t count = back.getGrads().getType().getNumElements() / back.getPlan().getType().getLocalExperts();
    call.emit("plr_return_expert_grads",
              {call.plan(back.getPlan()), i64(count), call.read(back.getHelperGrads()), result});
    return success();
  }
  if (auto shift = dyn_cast<ShiftOp>(op))
    return lowerShift(shift);
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return op->emitOpError("is not lowered to the runtime");
  Value operand = op->getOperand(0), result = op->getResult(0);
  if (getElementTypeOrSelf(operand.getType()) != getElementTypeOrSelf(result.getType()))
    return op->emitOpError() << "takes " << operand.getType() << " to " << result.getType()
                             << ": only results of the operand's element type are lowered";
  std::optional<plr_type> element = getCollectiveType(result.getType());
  if (!element)
    return op->emitOpError() << "is lowered only for f32, bf16, f64 and i32";
  auto emitAs = [&](StringRef name, Value counted, Attribute place) {
    int64_t count = cast<RankedTensorType>(counted.getType()).getNumElements();
    call.emit(name,
              {sched::GroupArgumentAttr::get(op->getContext()), i32(*element), i64(count), call.read(operand), place});
    return success();
  };
  if (auto reduce = dyn_cast<shard::AllReduceOp>(op)) {
    if (reduce.getReduction() != shard::ReductionKind::Sum)
      return op->emitOpError("is lowered only for sums");
    if (!buffers.canTake(operand, op))
      return emitAs("plr_all_reduce", result, call.out(result));
    buffers.bind(result, buffers.getView(operand));
    return emitAs("plr_all_reduce", result, call.write(result));
  }
  if (auto gather = dyn_cast<shard::AllGatherOp>(op)) {
    if (gather.getGatherAxis() != 0)
      return op->emitOpError("is lowered only along dimension 0");
    return emitAs("plr_all_gather", operand, call.out(result));
  }
  if (auto scatter = dyn_cast<shard::ReduceScatterOp>(op)) {
    if (scatter.getScatterAxis() != 0 || scatter.getReduction() != shard::ReductionKind::Sum)
      return op->emitOpError("is lowered only for sums, along dimension 0");
    return emitAs("plr_reduce_scatter", result, call.out(result));
  }
  return op->emitOpError("is not lowered to the runtime");
}

LogicalResult FunctionConversion::lowerExperts(Operation *op) {
  if (failed(checkPlans(op)))
    return failure();
  Call call(*this, op);
  auto columns = [](Value tensor) { return cast<RankedTensorType>(tensor.getType()).getDimSize(1); };
  auto tokens = [&](Value logits) { return i64(cast<RankedTensorType>(logits.getType()).getDimSize(0)); };
  Attribute rows; // Of all operands alike.
  if (isa<SwiGLUOp, SwiGLUGradOp, ScaleRowsOp, RowDotOp>(op)) {
    FailureOr<Attribute> found = call.rows(op->getOperand(0));
    if (failed(found))
      return failure();
    rows = *found;
  }
  /// The result of an op on rows has as many.
  auto follow = [&](Value rows) {
    if (PlanRows own = getPlanRows(rows); own.plan)
      for (Value result : op->getResults())
        if (isRoutedType(result.getType()))
          planRows[result] = own;
  };
  auto getType = [](Value value) { return getElementTypeOrSelf(value.getType()).isBF16() ? PLR_BF16 : PLR_F32; };
  /// A struct of these fields.
  auto store = [&](ArrayRef<Attribute> fields) -> Attribute {
    return sched::StructAttr::get(op->getContext(), builder.getArrayAttr(fields));
  };
  /// plr_routing
  auto routing = [&](RoutingAttr attr, int64_t experts) {
    return store({i64(experts), i64(attr.getTopK()), i64(attr.getGroups()), i64(attr.getKeptGroups()),
                  i32(static_cast<int32_t>(attr.getScore())), i32(attr.getNormalize()),
                  f32(attr.getScale().getValue())});
  };
  /// plr_balance
  auto balance = [&](auto o) {
    return store({i64(columns(o.getLogits())), i64(o.getRouting().getTopK()), i64(o.getSequence().value_or(0)),
                  i64(o.getSequences().value_or(0)), i32(static_cast<int32_t>(o.getRouting().getScore())),
                  f32(o.getCoefficient())});
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<RouteOp>([&](RouteOp o) {
        Attribute ids = call.out(o.getIds()), weights = call.out(o.getWeights()), counts = call.out(o.getCounts());
        call.emit("plr_route",
                  {routing(o.getRouting(), columns(o.getLogits())), tokens(o.getLogits()), call.read(o.getLogits()),
                   call.read(o.getBias()), call.read(o.getTokenCount()), ids, weights, counts});
        return success();
      })
      .Case<RouteGradOp>([&](RouteGradOp o) {
        Attribute result = call.out(o.getResult());
        call.emit("plr_route_grad",
                  {routing(o.getRouting(), columns(o.getLogits())), tokens(o.getLogits()), call.read(o.getCotangent()),
                   call.read(o.getLogits()), call.read(o.getIds()), result});
        return success();
      })
      .Case<BalanceLossOp>([&](BalanceLossOp o) {
        Attribute result = call.out(o.getResult());
        call.emit("plr_balance_loss", {balance(o), tokens(o.getLogits()), call.read(o.getLogits()),
                                       call.read(o.getCounts()), call.read(o.getIds()), result});
        return success();
      })
      .Case<BalanceLossGradOp>([&](BalanceLossGradOp o) {
        Attribute result = call.out(o.getResult());
        call.emit("plr_balance_loss_grad",
                  {balance(o), tokens(o.getLogits()), call.read(o.getCotangent()), call.read(o.getLogits()),
                   call.read(o.getCounts()), call.read(o.getIds()), result});
        return success();
      })
      .Case<ZLossOp>([&](ZLossOp o) {
        Attribute result = call.out(o.getResult());
        call.emit("plr_z_loss", {tokens(o.getLogits()), i64(columns(o.getLogits())), i64(o.getTokens()),
                                 f32(o.getCoefficient()), call.read(o.getLogits()), result});
        return success();
      })
      .Case<ZLossGradOp>([&](ZLossGradOp o) {
        Attribute result = call.out(o.getResult());
        call.emit("plr_z_loss_grad",
                  {tokens(o.getLogits()), i64(columns(o.getLogits())), i64(o.getTokens()), f32(o.getCoefficient()),
                   call.read(o.getCotangent()), call.read(o.getLogits()), result});
        return success();
      })
      .Case<UpdateBiasOp>([&](UpdateBiasOp o) {
        take(o.getBiasMutable(), o.getResult());
        Attribute bias = call.update(o.getResult());
        call.emit("plr_update_bias", {i64(o.getBias().getType().getNumElements()), f32(o.getRate()),
                                      call.read(o.getCounts()), call.read(o.getFactor()), bias});
        return success();
      })
      .Case<GroupedMatmulOp>([&](GroupedMatmulOp o) {
        follow(o.getRows());
        FailureOr<Attribute> iteration = call.iteration(o.getIndex());
        if (failed(iteration))
          return failure();
        Attribute result = call.out(o.getResult());
        int64_t n = columns(o.getResult()), k = columns(o.getRows());
        SmallVector<Attribute> arguments = {call.plan(o.getPlan()),
                                            *iteration,
                                            i32(o.getTranspose()),
                                            type(o.getRows()),
                                            i64(n),
                                            i64(k),
                                            call.read(o.getRows()),
                                            call.read(o.getWeights()),
                                            call.read(o.getHelpers()),
                                            result};
        int64_t mostRows = o.getPlan().getType().getMaxRows();
        call.addScratch(arguments,
                        plr_grouped_gemm_workspace_bytes(gemm, o.getTranspose(), getType(o.getRows()), mostRows, n, k));
        call.emit("plr_grouped_gemm", arguments);
        return success();
      })
      .Case<GroupedMatmulGradOp>([&](GroupedMatmulGradOp o) {
        FailureOr<Attribute> iteration = call.iteration(o.getIndex());
        if (failed(iteration))
          return failure();
        bool accumulates = o.getInit() != nullptr;
        auto place = [&](MutableOperandRange init, Value result) {
          if (init.empty())
            return call.out(result);
          take(init[0], result);
          return call.update(result);
        };
        Attribute result = place(o.getInitMutable(), o.getResult()),
                  helperResult = place(o.getHelperInitMutable(), o.getHelperResult());
        int64_t m = columns(o.getA()), n = columns(o.getB()), mostRows = o.getPlan().getType().getMaxRows();
        SmallVector<Attribute> arguments = {call.plan(o.getPlan()), *iteration, i32(accumulates), type(o.getA()),
                                            type(o.getResult()),    i64(m),     i64(n),           call.read(o.getA()),
                                            call.read(o.getB()),    result,     helperResult};
        call.addScratch(arguments, plr_grouped_gemm_grad_workspace_bytes(gemm, accumulates, getType(o.getA()),
                                                                         getType(o.getResult()), mostRows, m, n));
        call.emit("plr_grouped_gemm_grad", arguments);
        return success();
      })
      .Case<SwiGLUOp>([&](SwiGLUOp o) {
        follow(o.getInput());
        Attribute result = call.out(o.getResult());
        call.emit("plr_swiglu",
                  {type(o.getInput()), rows, i64(columns(o.getResult())), call.read(o.getInput()), result});
        return success();
      })
      .Case<SwiGLUGradOp>([&](SwiGLUGradOp o) {
        follow(o.getInput());
        Attribute result = call.out(o.getResult());
        call.emit("plr_swiglu_grad", {type(o.getInput()), rows, i64(columns(o.getCotangent())),
                                      call.read(o.getCotangent()), call.read(o.getInput()), result});
        return success();
      })
      .Case<ScaleRowsOp>([&](ScaleRowsOp o) {
        follow(o.getInput());
        reuse(o.getInputMutable(), o.getResult());
        Attribute result = call.write(o.getResult());
        call.emit("plr_scale_rows", {type(o.getInput()), rows, i64(columns(o.getInput())), call.read(o.getInput()),
                                     call.read(o.getFactors()), result});
        return success();
      })
      .Case<RowDotOp>([&](RowDotOp o) {
        follow(o.getA());
        Attribute result = call.out(o.getResult());
        call.emit("plr_row_dot",
                  {type(o.getA()), rows, i64(columns(o.getA())), call.read(o.getA()), call.read(o.getB()), result});
        return success();
      })
      .Default([&](Operation *) { return op->emitOpError("is not lowered to the runtime"); });
}
