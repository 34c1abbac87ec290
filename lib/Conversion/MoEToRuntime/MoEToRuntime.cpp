

#include "FunctionLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "plateau/Conversion/Passes.h"
#include "plateau/Interfaces/Matmul.h"
#include "plateau/runtime.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::plateau {
#define GEN_PASS_DEF_CONVERTMOETORUNTIME
#include "plateau/Conversion/Passes.h.inc"
} // namespace mlir::plateau

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
struct MoEToRuntime : plateau::impl::ConvertMoEToRuntimeBase<MoEToRuntime> {
  void runOnOperation() override {
    KernelBuilder kernels(getOperation());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      if (function.isPublic() && failed(FunctionLowering(function, getOperation(), kernels).run()))
        return signalPassFailure();
      function.erase();
    }
    for (auto grid : llvm::make_early_inc_range(getOperation().getOps<shard::GridOp>()))
      grid.erase(); // The calls have what they need of it.
  }
};
} // namespace

/// (offset, length) or (offset, length, decay) of each tensor of a layout, neighbours of one kind merged.
static SmallVector<int64_t> getRanges(LayoutAttr layout, bool hasDecay) {
  SmallVector<int64_t> ranges;
  unsigned stride = hasDecay ? 3 : 2;
  for (MemberAttr member : layout.getMembers()) {
    bool decay = member.getParameter().getDecay();
    size_t last = ranges.size() - stride;
    if (!ranges.empty() && ranges[last] + ranges[last + 1] == member.getOffset() &&
        (!hasDecay || ranges[last + 2] == decay)) {
      ranges[last + 1] += member.getElements();
      continue;
    }
    ranges.append({member.getOffset(), member.getElements()});
    if (hasDecay)
      ranges.push_back(decay);
  }
  return ranges;
}

static int64_t dim(Value tensor, unsigned index) { return cast<RankedTensorType>(tensor.getType()).getDimSize(index); }

/// Rows of a tensor whose last dimension is a row.
static int64_t getRows(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return ShapedType::getNumElements(type.getShape().drop_back());
}

/// Whether `use` is that of constant zeros by a moe.pack that stores them: it zeroes the place.
static bool isKnownZeros(OpOperand &use) {
  auto pack = dyn_cast<PackOp>(use.getOwner());
  return pack && use.get() != pack.getInto() && matchPattern(use.get(), m_AnyZeroFloat());
}

/// A constant stands in the program, whose sections and relocations have 32 bits.
static constexpr int64_t maxConstantBytes = int64_t(1) << 30;

Value FunctionLowering::allocateBytes(Operation *op, Value bytes, bool isWorkspace) {
  return calls.call(loc, "plr_allocate", {calls.context, i32(PLR_DEVICE), bytes, calls.tag(op, isWorkspace)},
                    calls.getPointerType());
}

Value FunctionLowering::allocate(Operation *op, Value result) {
  if (std::optional<Buffers::Place> place = buffers.getPlace(result)) {
    buffers.bind(result, {buffers.getView(place->group).buffer, place->offsetBytes});
    return pointer(result);
  }
  int64_t bytes = getTensorBytes(result.getType());
  Value size = i64(bytes);
  auto type = cast<RankedTensorType>(result.getType());
  if (!type.hasStaticShape()) {
    int64_t rowBytes = ShapedType::getNumElements(type.getShape().drop_front()) * type.getElementTypeBitWidth() / 8;
    size = LLVM::MulOp::create(builder, loc, getRowCount(result), i64(rowBytes));
  }
  Value memory = allocateBytes(op, size);
  buffers.bind(result, {buffers.add(memory, bytes, /*isOwned=*/true, /*isWritable=*/true)});
  return memory;
}

/// Whether another operand of the op has bytes of `operand`, which the op would then overwrite before or while it reads
/// them. The tensors that a pack finds in their places are no such operands.
static bool isReadBeside(OpOperand &operand, const Buffers &buffers) {
  View view = buffers.getView(operand.get());
  int64_t end = view.offsetBytes + getTensorBytes(operand.get().getType());
  auto pack = dyn_cast<PackOp>(operand.getOwner());
  return llvm::any_of(operand.getOwner()->getOpOperands(), [&](OpOperand &other) {
    if (other.getOperandNumber() == operand.getOperandNumber() || !buffers.isBound(other.get()))
      return false;
    View otherView = buffers.getView(other.get());
    int64_t otherEnd = otherView.offsetBytes + getTensorBytes(other.get().getType());
    if (otherView.buffer != view.buffer || otherView.offsetBytes >= end || otherEnd <= view.offsetBytes)
      return false;
    if (!pack)
      return true;
    MemberAttr member = pack.getLayout().getMembers()[other.getOperandNumber() - 1];
    int64_t elementBytes = pack.getInto().getType().getElementTypeBitWidth() / 8;
    return otherView.offsetBytes != view.offsetBytes + member.getOffset() * elementBytes;
  });
}

Value FunctionLowering::take(OpOperand &operand, Value result) {
  Operation *op = operand.getOwner();
  if (buffers.canTake(operand.get(), op) && !isReadBeside(operand, buffers)) {
    buffers.bind(result, buffers.getView(operand.get()));
    return pointer(result);
  }
  Value memory = allocate(op, result);
  SmallVector<Value> arguments = onLane(op);
  arguments.append({memory, pointer(operand.get()), i64(getTensorBytes(operand.get().getType()))});
  calls.call(loc, "plr_copy", arguments);
  return memory;
}

Value FunctionLowering::reuse(OpOperand &operand, Value result) {
  View view = buffers.getView(operand.get());
  if (operand.get().getType() != result.getType() || !buffers.isOwned(view.buffer) || buffers.getPlace(result) ||
      !buffers.canTake(operand.get(), operand.getOwner()) || isReadBeside(operand, buffers))
    return allocate(operand.getOwner(), result);
  buffers.bind(result, view);
  return pointer(result);
}

void FunctionLowering::emit(Operation *op, StringRef name, ValueRange arguments) {
  SmallVector<Value> all = onLane(op);
  all.append(arguments.begin(), arguments.end());
  int64_t bytes = cast<FootprintOpInterface>(op).getWorkspaceBytes();
  if (bytes == 0) {
    calls.call(loc, name, all);
    return;
  }
  Value workspace = allocateBytes(op, i64(bytes), /*isWorkspace=*/true);
  all.append({workspace, i64(bytes)});
  calls.call(loc, name, all);
  release(workspace);
}

LogicalResult FunctionLowering::lowerMatmul(linalg::MatmulOp op) {
  FailureOr<MatmulForm> form = MatmulForm::get(op);
  Value a = op.getInputs()[0], b = op.getInputs()[1], result = op.getResult(0);
  auto isWorking = [](Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    return element.isF32() || element.isBF16();
  };
  if (failed(form) || getElementTypeOrSelf(a.getType()) != getElementTypeOrSelf(b.getType()) || !isWorking(a) ||
      !isWorking(result))
    return op.emitOpError("is lowered only for plain or transposed operands of one type, f32 or bf16");
  bool onZeros = isOnZeros(op);
  Value c = onZeros ? allocate(op, result) : take(op.getOutputsMutable()[0], result);
  int64_t k = dim(a, form->transposeA ? 0 : 1);
  SmallVector<Value> arguments = onLane(op);
  arguments.append({i32(form->transposeA), i32(form->transposeB), i32(!onZeros), type(a), type(result),
                    i64(dim(result, 0)), i64(dim(result, 1)), i64(k), pointer(a), pointer(b), c});
  calls.call(loc, "plr_gemm", arguments);
  return success();
}

Value FunctionLowering::pointerArray(ValueRange pointers) {
  Value array = [&] {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(prologue);
    return LLVM::AllocaOp::create(builder, loc, calls.getPointerType(), calls.getPointerType(), i64(pointers.size()));
  }();
  for (auto [index, value] : llvm::enumerate(pointers))
    LLVM::StoreOp::create(builder, loc, value,
                          LLVM::GEPOp::create(builder, loc, calls.getPointerType(), calls.getPointerType(), array,
                                              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)}));
  return array;
}

LogicalResult FunctionLowering::lowerGeneric(linalg::GenericOp op) {
  FailureOr<LLVM::LLVMFuncOp> kernel = kernels.getKernel(op);
  if (failed(kernel))
    return failure();
  SmallVector<Value> pointers = llvm::map_to_vector(op.getInputs(), [&](Value input) { return pointer(input); });
  llvm::DenseSet<unsigned> taken;
  for (Value result : op.getResults()) {
    if (Value carried = getCarried(op, result)) {
      buffers.bind(result, buffers.getView(carried));
      pointers.push_back(pointer(result));
      continue;
    }
    // Element i is read before element i is written, so an input of the same size that dies here gives its buffer.
    Value source;
    if (!buffers.getPlace(result))
      for (Value input : op.getInputs()) {
        unsigned buffer = buffers.getView(input).buffer;
        if (buffers.isOwned(buffer) && !taken.contains(buffer) && buffers.canTake(input, op) &&
            buffers.getBytes(buffer) == getTensorBytes(result.getType()) &&
            getTensorBytes(input.getType()) == getTensorBytes(result.getType())) {
          source = input;
          taken.insert(buffer);
          break;
        }
      }
    if (source)
      buffers.bind(result, buffers.getView(source));
    else
      allocate(op, result);
    pointers.push_back(pointer(result));
  }
  SmallVector<Value> arguments = onLane(op);
  arguments.append({LLVM::AddressOfOp::create(builder, loc, *kernel), pointerArray(pointers), i64(pointers.size())});
  calls.call(loc, "plr_launch", arguments);
  return success();
}

LogicalResult FunctionLowering::lowerConstant(Operation *op) {
  Value result = op->getResult(0);
  DenseElementsAttr values;
  if (!matchPattern(op, m_Constant(&values))) {
    if (isa<TensorType>(result.getType()))
      return op->emitOpError("is lowered only for dense elements");
    return success(); // A scalar: read only by fills and kernels, which have it in themselves.
  }
  if (llvm::all_of(op->getUses(), isKnownZeros))
    return success(); // lowerPack zeroes the place.
  Value memory = allocate(op, result);
  SmallVector<Value> arguments = onLane(op);
  int64_t bytes = getTensorBytes(result.getType());
  if (values.isSplat() && (matchPattern(result, m_AnyZeroFloat()) || matchPattern(result, m_Zero()))) {
    arguments.append({memory, i64(bytes)});
    calls.call(loc, "plr_zero", arguments);
    return success();
  }
  if (bytes > maxConstantBytes)
    return op->emitOpError() << "has " << bytes << " bytes: constants of more than 2^30 bytes are not lowered";
  if (values.isSplat())
    values = DenseElementsAttr::get(values.getType(), SmallVector<Attribute>(values.getValues<Attribute>()));
  arguments.append({memory, calls.data(loc, values), i64(bytes)});
  calls.call(loc, "plr_copy", arguments);
  return success();
}

LogicalResult FunctionLowering::lowerFill(linalg::FillOp op) {
  bool isZero = matchPattern(op.getInputs()[0], m_AnyZeroFloat());
  auto isOverwritten = [](OpOperand &use) {
    auto matmul = dyn_cast<linalg::MatmulOp>(use.getOwner());
    return matmul && matmul.isDpsInit(&use);
  };
  if (isZero && llvm::all_of(op->getUses(), isOverwritten))
    return success(); // The product overwrites its result.
  if (!isZero)
    return op.emitOpError("is lowered only for zeros");
  Value memory = allocate(op, op.getResult(0));
  SmallVector<Value> arguments = onLane(op);
  arguments.append({memory, i64(getTensorBytes(op.getResult(0).getType()))});
  calls.call(loc, "plr_zero", arguments);
  return success();
}

LogicalResult FunctionLowering::lowerUnpack(UnpackOp op) {
  View group = buffers.getView(op.getGroup());
  int64_t elementBytes = op.getGroup().getType().getElementTypeBitWidth() / 8;
  for (auto [tensor, member] : llvm::zip_equal(op.getTensors(), op.getLayout().getMembers()))
    buffers.bind(tensor, {group.buffer, group.offsetBytes + member.getOffset() * elementBytes});
  return success();
}

LogicalResult FunctionLowering::lowerPack(PackOp op) {
  Value group = take(op.getIntoMutable(), op.getResult());
  View view = buffers.getView(op.getResult());
  int64_t elementBytes = op.getInto().getType().getElementTypeBitWidth() / 8;
  for (auto [tensor, member] : llvm::zip_equal(op.getTensors(), op.getLayout().getMembers())) {
    int64_t offset = member.getOffset() * elementBytes, bytes = getTensorBytes(tensor.getType());
    SmallVector<Value> arguments = onLane(op);
    if (!buffers.isBound(tensor)) { // Constant zeros.
      arguments.append({calls.offset(loc, group, offset), i64(bytes)});
      calls.call(loc, "plr_zero", arguments);
      continue;
    }
    View source = buffers.getView(tensor);
    if (source.buffer == view.buffer && source.offsetBytes == view.offsetBytes + offset)
      continue; // Computed in its place.
    arguments.append({calls.offset(loc, group, offset), pointer(tensor), i64(bytes)});
    calls.call(loc, "plr_copy", arguments);
  }
  return success();
}

LogicalResult FunctionLowering::lowerAdamW(AdamWOp op) {
  SmallVector<int64_t> ranges = getRanges(op.getLayout(), /*hasDecay=*/true);
  Value parameters = take(op.getParametersMutable(), op.getNewParameters());
  Value first = take(op.getFirstMutable(), op.getNewFirst());
  Value second = take(op.getSecondMutable(), op.getNewSecond());
  Value master = op.getMaster() ? take(op.getMasterMutable()[0], op.getNewMaster()) : calls.null(loc);
  auto f64 = [&](const APFloat &value) { return calls.f64(loc, value.convertToDouble()); };
  emit(op, "plr_adamw",
       {type(op.getParameters()), type(op.getGradients()), i64(ranges.size() / 3), calls.array(loc, ranges),
        f64(op.getBeta1()), f64(op.getBeta2()), f64(op.getEpsilon()), f64(op.getWeightDecay()), parameters,
        pointer(op.getGradients()), first, second, master, pointer(op.getFactor()), pointer(op.getLearningRate()),
        pointer(op.getStep())});
  return success();
}

LogicalResult FunctionLowering::lowerReturn(func::ReturnOp op) {
  llvm::DenseMap<int64_t, unsigned> donors;
  for (unsigned argument = 0; argument < function.getNumArguments(); ++argument)
    if (auto donated = function.getArgAttrOfType<IntegerAttr>(argument, "moe.donated")) {
      auto [it, isNew] = donors.try_emplace(donated.getInt(), argument);
      if (!isNew)
        return function.emitError() << "arguments #" << it->second << " and #" << argument
                                    << " are donated to one result, #" << donated.getInt();
    }
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    if (!buffers.isBound(value))
      return op.emitOpError() << "returns operand #" << index << ", which is never computed (a tensor.empty?)";
    View view = buffers.getView(value);
    if (auto donor = donors.find(index); donor != donors.end()) {
      View wanted = buffers.getView(function.getArgument(donor->second));
      if (view.buffer != wanted.buffer || view.offsetBytes != 0)
        return op.emitOpError() << "argument #" << donor->second << " is donated to result #" << index
                                << ", but the result is not computed in its buffer: the old value is read again after "
                                   "its update, or the result is another value";
      continue;
    }
    SmallVector<Value> arguments = onLane(op);
    arguments.append({resultPointers[index], pointer(value), i64(getTensorBytes(value.getType()))});
    calls.call(loc, "plr_copy", arguments);
  }
  return success();
}

LogicalResult FunctionLowering::lower(Operation *op) {
  loc = op->getLoc();
  auto out = [&](Value result) { return allocate(op, result); };
  auto f32 = [&](const APFloat &value) { return calls.f32(loc, value.convertToFloat()); };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<linalg::MatmulOp>([&](auto o) { return lowerMatmul(o); })
      .Case<linalg::GenericOp>([&](auto o) { return lowerGeneric(o); })
      .Case<linalg::FillOp>([&](auto o) { return lowerFill(o); })
      .Case<PackOp>([&](auto o) { return lowerPack(o); })
      .Case<UnpackOp>([&](auto o) { return lowerUnpack(o); })
      .Case<AdamWOp>([&](auto o) { return lowerAdamW(o); })
      .Case<func::ReturnOp>([&](auto o) { return lowerReturn(o); })
      .Case<tensor::EmptyOp>([&](auto) { return success(); })
      .Case<tensor::ExtractSliceOp>([&](auto o) { return lowerSlice(o); })
      .Case<scf::ForOp>([&](auto o) { return lowerFor(o); })
      .Case<scf::YieldOp>([&](auto o) { return lowerYield(o); })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp>([&](auto o) {
        buffers.bind(o.getResult(), buffers.getView(o.getSrc()));
        return success();
      })
      .Case<EmbeddingOp>([&](EmbeddingOp o) {
        Value result = out(o.getResult());
        emit(op, "plr_embedding",
             {type(o.getTable()), i64(dim(o.getIds(), 0)), i64(dim(o.getTable(), 1)), i64(dim(o.getTable(), 0)),
              pointer(o.getTable()), pointer(o.getIds()), result});
        return success();
      })
      .Case<EmbeddingGradOp>([&](EmbeddingGradOp o) {
        Value result = out(o.getResult());
        emit(op, "plr_embedding_grad",
             {type(o.getCotangent()), i64(dim(o.getIds(), 0)), i64(dim(o.getResult(), 1)), i64(dim(o.getResult(), 0)),
              pointer(o.getCotangent()), pointer(o.getIds()), result});
        return success();
      })
      .Case<RMSNormOp>([&](RMSNormOp o) {
        Value output = out(o.getOutput()), inverse = out(o.getInverse());
        emit(op, "plr_rms_norm",
             {type(o.getInput()), i64(getRows(o.getInput())), i64(dim(o.getWeight(), 0)), f32(o.getEpsilon()),
              pointer(o.getInput()), pointer(o.getWeight()), output, inverse});
        return success();
      })
      .Case<RMSNormGradOp>([&](RMSNormGradOp o) {
        Value input = out(o.getInputGrad()), weight = out(o.getWeightGrad());
        emit(op, "plr_rms_norm_grad",
             {type(o.getInput()), i64(getRows(o.getInput())), i64(dim(o.getWeight(), 0)), pointer(o.getCotangent()),
              pointer(o.getInput()), pointer(o.getWeight()), pointer(o.getInverse()), input, weight});
        return success();
      })
      .Case<RotaryTableOp>([&](RotaryTableOp o) {
        Value cos = out(o.getCos()), sin = out(o.getSin());
        emit(op, "plr_rotary_table",
             {i64(dim(o.getPositions(), 0)), i64(dim(o.getCos(), 1)), calls.f64(loc, o.getTheta().convertToDouble()),
              pointer(o.getPositions()), cos, sin});
        return success();
      })
      .Case<RotaryOp>([&](RotaryOp o) {
        Value result = out(o.getResult());
        emit(op, "plr_rotary",
             {type(o.getInput()), i64(dim(o.getInput(), 0)), i64(dim(o.getInput(), 1)), i64(dim(o.getInput(), 2) / 2),
              i32(o.getInverse()), pointer(o.getInput()), pointer(o.getCos()), pointer(o.getSin()), result});
        return success();
      })
      .Case<AttentionOp>([&](AttentionOp o) {
        Value output = out(o.getOutput()), lse = out(o.getLse());
        emit(op, "plr_attention",
             {type(o.getQuery()), i64(dim(o.getQuery(), 0)), i64(dim(o.getQuery(), 1)), i64(dim(o.getKey(), 1)),
              i64(dim(o.getQuery(), 2)), f32(o.getScale()), pointer(o.getQuery()), pointer(o.getKey()),
              pointer(o.getValue()), pointer(o.getStarts()), output, lse});
        return success();
      })
      .Case<AttentionGradOp>([&](AttentionGradOp o) {
        Value query = out(o.getQueryGrad()), key = out(o.getKeyGrad()), value = out(o.getValueGrad());
        emit(op, "plr_attention_grad",
             {type(o.getQuery()), i64(dim(o.getQuery(), 0)), i64(dim(o.getQuery(), 1)), i64(dim(o.getKey(), 1)),
              i64(dim(o.getQuery(), 2)), f32(o.getScale()), pointer(o.getCotangent()), pointer(o.getQuery()),
              pointer(o.getKey()), pointer(o.getValue()), pointer(o.getStarts()), pointer(o.getOutput()),
              pointer(o.getLse()), query, key, value});
        return success();
      })
      .Case<LogSoftmaxOp>([&](LogSoftmaxOp o) {
        Value result = out(o.getResult());
        emit(op, "plr_log_softmax",
             {i64(dim(o.getInput(), 0)), i64(dim(o.getInput(), 1)), pointer(o.getInput()), result});
        return success();
      })
      .Case<LogSoftmaxGradOp>([&](LogSoftmaxGradOp o) {
        Value result = out(o.getResult());
        emit(op, "plr_log_softmax_grad",
             {i64(dim(o.getOutput(), 0)), i64(dim(o.getOutput(), 1)), pointer(o.getCotangent()), pointer(o.getOutput()),
              result});
        return success();
      })
      .Case<CountLabelsOp>([&](CountLabelsOp o) {
        Value result = out(o.getResult());
        emit(op, "plr_count_labels",
             {i64(dim(o.getLabels(), 0)), i32(static_cast<int32_t>(o.getIgnoreIndex())), pointer(o.getLabels()),
              result});
        return success();
      })
      .Case<NLLOp>([&](NLLOp o) {
        Value result = out(o.getResult());
        emit(op, "plr_nll",
             {i64(dim(o.getLogProbs(), 0)), i64(dim(o.getLogProbs(), 1)), i32(static_cast<int32_t>(o.getIgnoreIndex())),
              pointer(o.getLogProbs()), pointer(o.getLabels()), pointer(o.getCount()), result});
        return success();
      })
      .Case<NLLGradOp>([&](NLLGradOp o) {
        Value result = out(o.getResult());
        emit(op, "plr_nll_grad",
             {i64(dim(o.getResult(), 0)), i64(dim(o.getResult(), 1)), i32(static_cast<int32_t>(o.getIgnoreIndex())),
              pointer(o.getCotangent()), pointer(o.getLabels()), pointer(o.getCount()), result});
        return success();
      })
      .Case<SumSquaresOp>([&](SumSquaresOp o) {
        Value result = out(o.getResult());
        SmallVector<int64_t> ranges = getRanges(o.getLayout(), /*hasDecay=*/false);
        emit(op, "plr_sum_squares",
             {type(o.getGradients()), i64(ranges.size() / 2), calls.array(loc, ranges), pointer(o.getGradients()),
              result});
        return success();
      })
      .Case<GradNormOp>([&](GradNormOp o) {
        Value norm = out(o.getNorm());
        SmallVector<Value> squares = llvm::map_to_vector(o.getSquares(), [&](Value value) { return pointer(value); });
        emit(op, "plr_grad_norm", {i64(squares.size()), pointerArray(squares), norm});
        return success();
      })
      .Case<CollectiveOpInterface>([&](CollectiveOpInterface) { return lowerCollective(op); })
      .Case<RouteOp, RouteGradOp, BalanceLossOp, BalanceLossGradOp, ZLossOp, ZLossGradOp, UpdateBiasOp, GroupedMatmulOp,
            GroupedMatmulGradOp, SwiGLUOp, SwiGLUGradOp, ScaleRowsOp, RowDotOp>([&](auto) { return lowerExperts(op); })
      .Case<ClipFactorOp>([&](ClipFactorOp o) {
        Value factor = out(o.getFactor());
        emit(op, "plr_clip_factor", {f32(o.getMaxNorm()), pointer(o.getNorm()), factor});
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        if (op->hasTrait<OpTrait::ConstantLike>())
          return lowerConstant(op);
        return op->emitOpError("is not lowered to the runtime");
      });
}

/// Whether the op gives rows whose number is known when the step runs.
static bool hasRoutedRows(Operation *op) {
  return isa<DispatchOp, GroupedMatmulOp, SwiGLUOp, SwiGLUGradOp, ScaleRowsOp, RowDotOp>(op);
}

/// Whether memory for a tensor of this type can be asked for: its size is known, and a number of 64 bits.
static bool hasBytes(RankedTensorType type) {
  return type && type.hasStaticShape() && type.getElementType().isIntOrFloat() && type.getElementTypeBitWidth() <= 64 &&
         countElements(type.getShape());
}

LogicalResult FunctionLowering::checkTypes() {
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
    if (!hasBytes(dyn_cast<RankedTensorType>(type)))
      return function.emitError() << "@" << function.getName() << " has " << type
                                  << " in its signature: only static tensors of numbers, of at most 2^60 elements, are "
                                     "lowered";
  WalkResult walked = function.getBody().walk([&](Operation *inner) {
    Operation &op = *inner;
    if (isa<linalg::GenericOp>(op.getParentOp()))
      return WalkResult::advance();
    for (Type type : op.getResultTypes())
      if (auto tensor = dyn_cast<TensorType>(type);
          tensor && !hasRoutedRows(&op) && !hasBytes(dyn_cast<RankedTensorType>(tensor))) {
        op.emitOpError() << "has a result of type " << type
                         << ": only static tensors of numbers, of at most 2^60 elements, are lowered";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// Every tensor that a call reads has its memory. Without it are tensor.empty, which an op may only overwrite, and
/// zeros that are known where they are used.
LogicalResult FunctionLowering::checkOperands(Operation *op) {
  if (isa<func::ReturnOp, linalg::FillOp>(op))
    return success(); // Reported there; overwritten.
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<TensorType>(operand.get().getType()) || buffers.isBound(operand.get()))
      continue;
    if (auto matmul = dyn_cast<linalg::MatmulOp>(op); matmul && matmul.isDpsInit(&operand) && isOnZeros(matmul))
      continue;
    if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && generic.isDpsInit(&operand))
      continue;
    if (isKnownZeros(operand))
      continue;
    return op->emitOpError() << "reads operand #" << operand.getOperandNumber()
                             << ", which is never computed (a tensor.empty?)";
  }
  return success();
}

LogicalResult FunctionLowering::run() {
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "@" << function.getName() << " must have one block to be lowered";
  if (failed(checkTypes()))
    return failure();
  ModuleOp module = function->getParentOfType<ModuleOp>();
  builder.setInsertionPointToEnd(module.getBody());
  Type pointerType = calls.getPointerType();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(module.getContext()), {pointerType, pointerType});
  std::string name = function.getName().str();
  function.setName(name + ".tensors"); // The name passes to the lowered function.
  auto lowered = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  Block *entry = lowered.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  calls.context = entry->getArgument(0);
  calls.lane = calls.call(loc, "plr_get_lane", {calls.context, i32(PLR_COMPUTE)}, pointerType);
  prologue = calls.lane.getDefiningOp();

  auto slot = [&](int32_t index) -> Value {
    Value address = LLVM::GEPOp::create(builder, loc, pointerType, pointerType, entry->getArgument(1),
                                        ArrayRef<LLVM::GEPArg>{index});
    return LLVM::LoadOp::create(builder, loc, pointerType, address);
  };
  for (BlockArgument argument : function.getArguments()) {
    bool isDonated = static_cast<bool>(function.getArgAttr(argument.getArgNumber(), "moe.donated"));
    buffers.bind(argument, {buffers.add(slot(argument.getArgNumber()), getTensorBytes(argument.getType()),
                                        /*isOwned=*/false, /*isWritable=*/isDonated)});
  }
  for (unsigned result = 0; result < function.getNumResults(); ++result)
    resultPointers.push_back(slot(function.getNumArguments() + result));

  if (failed(lowerBlock(function.getBody().front())))
    return failure();
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return success();
}
