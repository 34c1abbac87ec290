//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Ranks and experts: collectives, plans, and ops on rows whose number is known when the step runs.
//===----------------------------------------------------------------------===//

#include "FunctionLowering.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static_assert(static_cast<int>(Score::Softmax) == PLR_SOFTMAX &&
                  static_cast<int>(Score::TopKSoftmax) == PLR_TOP_K_SOFTMAX &&
                  static_cast<int>(Score::Sigmoid) == PLR_SIGMOID,
              "the compiler's scores are the runtime's");

Value FunctionLowering::getRowCount(Value tensor) {
  if (auto it = rowCounts.find(tensor); it != rowCounts.end())
    return it->second;
  return i64(cast<RankedTensorType>(tensor.getType()).getDimSize(0));
}

LogicalResult FunctionLowering::checkRowCounts(Operation *op) {
  Value count;
  for (Value operand : op->getOperands()) {
    Value own = rowCounts.lookup(operand);
    if (own && count && own != count)
      return op->emitOpError("has operands of two plans, whose numbers of rows are not the same when the step runs");
    count = own ? own : count;
  }
  return success();
}

FailureOr<Value> FunctionLowering::getGroup(Operation *op, FlatSymbolRefAttr symbol, ArrayRef<int64_t> axes) {
  FailureOr<Grid> grid = Grid::lookup(op, symbol);
  if (failed(grid))
    return op->emitOpError() << "is on grid " << symbol
                             << ", and there is none with static sizes of at most 2^31 - 1 ranks";
  int64_t bits = 0;
  for (int64_t axis : axes)
    bits |= int64_t(1) << axis;
  Value &group = groups[{symbol, bits}];
  if (!group) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(prologue);
    group = calls.call(loc, "plr_get_group",
                       {calls.context, calls.array(loc, grid->shape), i64(grid->shape.size()), i64(bits)},
                       calls.getPointerType());
  }
  return group;
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

LogicalResult FunctionLowering::lowerCollective(Operation *op) {
  auto collective = cast<CollectiveOpInterface>(op);
  FailureOr<Grid> grid = Grid::lookup(op, collective.getCollectiveGrid());
  int64_t dimensions = succeeded(grid) ? grid->shape.size() : 1;
  FailureOr<Value> group = getGroup(op, collective.getCollectiveGrid(), collective.getCollectiveAxes(dimensions));
  if (failed(group) || failed(checkRowCounts(op)))
    return failure();
  auto pointerOrNull = [&](Value value) { return value ? pointer(value) : calls.null(loc); };
  auto outOrNull = [&](Value value) { return value ? allocate(op, value) : calls.null(loc); };

  if (auto plan = dyn_cast<PlanOp>(op)) {
    PlanType type = plan.getPlan().getType();
    Value handle = calls.call(loc, "plr_plan_create",
                              {calls.lane, tag(op), *group, i64(type.getTokens()), i64(type.getTopK()),
                               i64(type.getExperts()), pointer(plan.getIds())},
                              calls.getPointerType());
    buffers.bind(plan.getPlan(), {buffers.add(handle, 0, /*isOwned=*/true, /*isWritable=*/false)});
    rowCounts[plan.getPlan()] = calls.call(loc, "plr_plan_rows", {handle}, builder.getI64Type());
    return success();
  }
  if (auto dispatch = dyn_cast<DispatchOp>(op)) {
    for (Value result : op->getResults())
      rowCounts[result] = rowCounts.lookup(dispatch.getPlan());
    Value input = dispatch.getInput();
    Value rows = outOrNull(dispatch.getRows()), values = outOrNull(dispatch.getRowValues());
    emit(op, "plr_dispatch",
         {pointer(dispatch.getPlan()), input ? type(input) : i32(PLR_F32),
          i64(input ? cast<RankedTensorType>(input.getType()).getDimSize(1) : 0), pointerOrNull(input),
          pointerOrNull(dispatch.getValues()), rows, values});
    return success();
  }
  if (auto combine = dyn_cast<CombineOp>(op)) {
    Value rows = combine.getRows();
    Value result = outOrNull(combine.getResult()), values = outOrNull(combine.getValues());
    emit(op, "plr_combine",
         {pointer(combine.getPlan()), rows ? type(rows) : i32(PLR_F32),
          i64(rows ? cast<RankedTensorType>(rows.getType()).getDimSize(1) : 0), pointerOrNull(rows),
          pointerOrNull(combine.getRowValues()), result, values});
    return success();
  }

  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return op->emitOpError("is not lowered to the runtime");
  if (getElementTypeOrSelf(op->getOperand(0).getType()) != getElementTypeOrSelf(op->getResult(0).getType()))
    return op->emitOpError() << "takes " << op->getOperand(0).getType() << " to " << op->getResult(0).getType()
                             << ": only results of the operand's element type are lowered";
  std::optional<plr_type> element = getCollectiveType(op->getResult(0).getType());
  if (!element)
    return op->emitOpError() << "is lowered only for f32, bf16, f64 and i32";
  auto lowerTo = [&](StringRef name, Value counted, Value result) {
    SmallVector<Value> arguments = onLane(op);
    int64_t count = cast<RankedTensorType>(counted.getType()).getNumElements();
    arguments.append({*group, i32(*element), i64(count), pointer(op->getOperand(0)), result});
    calls.call(loc, name, arguments);
    return success();
  };
  if (auto reduce = dyn_cast<shard::AllReduceOp>(op)) {
    if (reduce.getReduction() != shard::ReductionKind::Sum)
      return op->emitOpError("is lowered only for sums");
    OpOperand &operand = op->getOpOperand(0);
    bool inPlace = buffers.canTake(operand.get(), op);
    if (inPlace)
      buffers.bind(op->getResult(0), buffers.getView(operand.get()));
    else
      allocate(op, op->getResult(0));
    return lowerTo("plr_all_reduce", op->getResult(0), pointer(op->getResult(0)));
  }
  if (auto gather = dyn_cast<shard::AllGatherOp>(op)) {
    if (gather.getGatherAxis() != 0)
      return op->emitOpError("is lowered only along dimension 0");
    return lowerTo("plr_all_gather", op->getOperand(0), allocate(op, op->getResult(0)));
  }
  if (auto scatter = dyn_cast<shard::ReduceScatterOp>(op)) {
    if (scatter.getScatterAxis() != 0 || scatter.getReduction() != shard::ReductionKind::Sum)
      return op->emitOpError("is lowered only for sums, along dimension 0");
    return lowerTo("plr_reduce_scatter", op->getResult(0), allocate(op, op->getResult(0)));
  }
  return op->emitOpError("is not lowered to the runtime");
}

LogicalResult FunctionLowering::lowerExperts(Operation *op) {
  if (failed(checkRowCounts(op)))
    return failure();
  auto columns = [](Value tensor) { return cast<RankedTensorType>(tensor.getType()).getDimSize(1); };
  /// The result of an op on rows has as many.
  auto follow = [&](Value rows) {
    if (auto it = rowCounts.find(rows); it != rowCounts.end())
      for (Value result : op->getResults())
        if (ShapedType::isDynamic(cast<RankedTensorType>(result.getType()).getDimSize(0)))
          rowCounts[result] = it->second;
  };
  /// A struct of these fields, on the stack.
  auto store = [&](ArrayRef<Value> fields) -> Value {
    auto pointerType = calls.getPointerType();
    auto structType = LLVM::LLVMStructType::getLiteral(
        builder.getContext(), llvm::map_to_vector(fields, [](Value field) { return field.getType(); }));
    Value memory = [&] {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfter(prologue);
      return LLVM::AllocaOp::create(builder, loc, pointerType, structType, i64(1));
    }();
    for (auto [index, value] : llvm::enumerate(fields))
      LLVM::StoreOp::create(builder, loc, value,
                            LLVM::GEPOp::create(builder, loc, pointerType, structType, memory,
                                                ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(index)}));
    return memory;
  };
  auto f32 = [&](const APFloat &value) { return calls.f32(loc, value.convertToFloat()); };
  auto pointerOrNull = [&](Value value) { return value ? pointer(value) : calls.null(loc); };
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
        Value ids = allocate(op, o.getIds()), weights = allocate(op, o.getWeights()),
              counts = allocate(op, o.getCounts());
        emit(op, "plr_route",
             {routing(o.getRouting(), columns(o.getLogits())), getRowCount(o.getLogits()), pointer(o.getLogits()),
              pointerOrNull(o.getBias()), pointerOrNull(o.getTokenCount()), ids, weights, counts});
        return success();
      })
      .Case<RouteGradOp>([&](RouteGradOp o) {
        Value result = allocate(op, o.getResult());
        emit(op, "plr_route_grad",
             {routing(o.getRouting(), columns(o.getLogits())), getRowCount(o.getLogits()), pointer(o.getCotangent()),
              pointer(o.getLogits()), pointer(o.getIds()), result});
        return success();
      })
      .Case<BalanceLossOp>([&](BalanceLossOp o) {
        Value result = allocate(op, o.getResult());
        emit(op, "plr_balance_loss",
             {balance(o), getRowCount(o.getLogits()), pointer(o.getLogits()), pointerOrNull(o.getCounts()),
              pointerOrNull(o.getIds()), result});
        return success();
      })
      .Case<BalanceLossGradOp>([&](BalanceLossGradOp o) {
        Value result = allocate(op, o.getResult());
        emit(op, "plr_balance_loss_grad",
             {balance(o), getRowCount(o.getLogits()), pointer(o.getCotangent()), pointer(o.getLogits()),
              pointerOrNull(o.getCounts()), pointerOrNull(o.getIds()), result});
        return success();
      })
      .Case<ZLossOp>([&](ZLossOp o) {
        Value result = allocate(op, o.getResult());
        emit(op, "plr_z_loss",
             {getRowCount(o.getLogits()), i64(columns(o.getLogits())), i64(o.getTokens()), f32(o.getCoefficient()),
              pointer(o.getLogits()), result});
        return success();
      })
      .Case<ZLossGradOp>([&](ZLossGradOp o) {
        Value result = allocate(op, o.getResult());
        emit(op, "plr_z_loss_grad",
             {getRowCount(o.getLogits()), i64(columns(o.getLogits())), i64(o.getTokens()), f32(o.getCoefficient()),
              pointer(o.getCotangent()), pointer(o.getLogits()), result});
        return success();
      })
      .Case<UpdateBiasOp>([&](UpdateBiasOp o) {
        Value bias = take(o.getBiasMutable(), o.getResult());
        emit(op, "plr_update_bias",
             {i64(o.getBias().getType().getNumElements()), f32(o.getRate()), pointer(o.getCounts()),
              pointer(o.getFactor()), bias});
        return success();
      })
      .Case<GroupedMatmulOp>([&](GroupedMatmulOp o) {
        follow(o.getRows());
        Value result = allocate(op, o.getResult());
        emit(op, "plr_grouped_gemm",
             {pointer(o.getPlan()), i32(o.getTranspose()), type(o.getRows()), i64(columns(o.getResult())),
              i64(columns(o.getRows())), pointer(o.getRows()), pointer(o.getWeights()), result});
        return success();
      })
      .Case<GroupedMatmulGradOp>([&](GroupedMatmulGradOp o) {
        Value result = o.getInit() ? take(o.getInitMutable()[0], o.getResult()) : allocate(op, o.getResult());
        emit(op, "plr_grouped_gemm_grad",
             {pointer(o.getPlan()), i32(o.getInit() != nullptr), type(o.getA()), type(o.getResult()),
              i64(columns(o.getA())), i64(columns(o.getB())), pointer(o.getA()), pointer(o.getB()), result});
        return success();
      })
      .Case<SwiGLUOp>([&](SwiGLUOp o) {
        follow(o.getInput());
        Value result = allocate(op, o.getResult());
        emit(op, "plr_swiglu",
             {type(o.getInput()), getRowCount(o.getInput()), i64(columns(o.getResult())), pointer(o.getInput()),
              result});
        return success();
      })
      .Case<SwiGLUGradOp>([&](SwiGLUGradOp o) {
        follow(o.getInput());
        Value result = allocate(op, o.getResult());
        emit(op, "plr_swiglu_grad",
             {type(o.getInput()), getRowCount(o.getInput()), i64(columns(o.getCotangent())), pointer(o.getCotangent()),
              pointer(o.getInput()), result});
        return success();
      })
      .Case<ScaleRowsOp>([&](ScaleRowsOp o) {
        follow(o.getInput());
        Value result = reuse(o.getInputMutable(), o.getResult());
        emit(op, "plr_scale_rows",
             {type(o.getInput()), getRowCount(o.getInput()), i64(columns(o.getInput())), pointer(o.getInput()),
              pointer(o.getFactors()), result});
        return success();
      })
      .Case<RowDotOp>([&](RowDotOp o) {
        follow(o.getA());
        Value result = allocate(op, o.getResult());
        emit(op, "plr_row_dot",
             {type(o.getA()), getRowCount(o.getA()), i64(columns(o.getA())), pointer(o.getA()), pointer(o.getB()),
              result});
        return success();
      })
      .Default([&](Operation *) { return op->emitOpError("is not lowered to the runtime"); });
}
