//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Ops of one rank: what each becomes.
//===----------------------------------------------------------------------===//

#include "FunctionConversion.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Matchers.h"
#include "plateau/Interfaces/Matmul.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

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
/// An array of addresses among the arguments of a call.
static Attribute pointers(ArrayRef<Attribute> elements) {
  MLIRContext *context = elements.front().getContext();
  return sched::PointersAttr::get(context, ArrayAttr::get(context, elements));
}
LogicalResult FunctionConversion::lowerMatmul(linalg::MatmulOp op) {
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
  Call call(*this, op);
  Attribute c;
  if (onZeros) {
    c = call.out(result);
  } else {
    take(op.getOutputsMutable()[0], result);
    c = call.update(result);
  }
  int64_t m = dim(result, 0), n = dim(result, 1), k = dim(a, form->transposeA ? 0 : 1);
  auto getType = [](Value value) { return getElementTypeOrSelf(value.getType()).isBF16() ? PLR_BF16 : PLR_F32; };
  SmallVector<Attribute> arguments = {i32(form->transposeA),
                                      i32(form->transposeB),
                                      i32(!onZeros),
                                      type(a),
                                      type(result),
                                      i64(m),
                                      i64(n),
                                      i64(k),
                                      call.read(a),
                                      call.read(b),
                                      c};
  int64_t scratch = plr_gemm_workspace_bytes(gemm, form->transposeA, form->transposeB, !onZeros, getType(a),
                                             getType(result), m, n, k);
  if (scratch < 0)
    return op.emitOpError() << "is a product of " << m << " x " << n << " x " << k << " that the library does not have";
  call.addScratch(arguments, scratch);
  call.emit("plr_gemm", arguments);
  return success();
}

LogicalResult FunctionConversion::lowerGeneric(linalg::GenericOp op) {
  FailureOr<LLVM::LLVMFuncOp> kernel = kernels.getKernel(op);
  if (failed(kernel))
    return failure();
  Call call(*this, op);
  SmallVector<Attribute> addresses = llvm::map_to_vector(op.getInputs(), [&](Value input) { return call.read(input); });
  llvm::DenseSet<unsigned> taken;
  for (Value result : op.getResults()) {
    if (Value carried = getCarried(op, result)) {
      buffers.bind(result, buffers.getView(carried));
      addresses.push_back(call.write(result));
      continue;
    }
    // Element i is read before element i is written, so an input of the same size that dies here gives its buffer.
    Value source;
    if (!buffers.getPlace(result))
      for (Value input : op.getInputs()) {
        View view = buffers.getView(input);
        if (buffers.isOwned(view.buffer) && view.offsetBytes == 0 && !taken.contains(view.buffer) &&
            buffers.canTake(input, op) && buffers.getBytes(view.buffer) == getTensorBytes(result.getType()) &&
            getTensorBytes(input.getType()) == getTensorBytes(result.getType())) {
          source = input;
          taken.insert(view.buffer);
          break;
        }
      }
    if (source)
      buffers.bind(result, buffers.getView(source));
    else
      allocate(op, result);
    addresses.push_back(call.write(result));
  }
  int64_t count = addresses.size();
  call.emit("plr_launch", {FlatSymbolRefAttr::get(*kernel), pointers(addresses), i64(count)});
  return success();
}

LogicalResult FunctionConversion::lowerConstant(Operation *op) {
  Value result = op->getResult(0);
  DenseElementsAttr values;
  if (!matchPattern(op, m_Constant(&values))) {
    if (isa<TensorType>(result.getType()))
      return op->emitOpError("is lowered only for dense elements");
    return success(); // A scalar: read only by fills and kernels, which have it in themselves.
  }
  if (llvm::all_of(op->getUses(), isKnownZeros))
    return success(); // lowerPack zeroes the place.
  int64_t bytes = getTensorBytes(result.getType());
  if (values.isSplat() && (matchPattern(result, m_AnyZeroFloat()) || matchPattern(result, m_Zero()))) {
    Call call(*this, op);
    Attribute place = call.out(result);
    call.emit("plr_zero", {place, i64(bytes)});
    return success();
  }
  if (bytes > maxConstantBytes)
    return op->emitOpError() << "has " << bytes << " bytes: constants of more than 2^30 bytes are not lowered";
  MemRefType type = getMemory(result);
  if (values.isSplat())
    values = DenseElementsAttr::get(values.getType(), SmallVector<Attribute>(values.getValues<Attribute>()));
  Value constant = sched::ConstantOp::create(builder, op->getLoc(), type, values);
  allocate(op, result);
  setContent(result, copy(op, constant, getPlace(buffers.getView(result), type)));
  return success();
}

LogicalResult FunctionConversion::lowerFill(linalg::FillOp op) {
  bool isZero = matchPattern(op.getInputs()[0], m_AnyZeroFloat());
  auto isOverwritten = [](OpOperand &use) {
    auto matmul = dyn_cast<linalg::MatmulOp>(use.getOwner());
    return matmul && matmul.isDpsInit(&use);
  };
  if (isZero && llvm::all_of(op->getUses(), isOverwritten))
    return success(); // The product overwrites its result.
  if (!isZero)
    return op.emitOpError("is lowered only for zeros");
  Call call(*this, op);
  Attribute place = call.out(op.getResult(0));
  call.emit("plr_zero", {place, i64(getTensorBytes(op.getResult(0).getType()))});
  return success();
}

LogicalResult FunctionConversion::lowerUnpack(UnpackOp op) {
  View group = buffers.getView(op.getGroup());
  Content content = contents.at(op.getGroup());
  int64_t elementBytes = op.getGroup().getType().getElementTypeBitWidth() / 8;
  for (auto [tensor, member] : llvm::zip_equal(op.getTensors(), op.getLayout().getMembers())) {
    int64_t offset = member.getOffset() * elementBytes;
    buffers.bind(tensor, {group.buffer, group.offsetBytes + offset});
    setContent(tensor, content.base, content.offsetBytes + offset);
  }
  return success();
}

LogicalResult FunctionConversion::lowerPack(PackOp op) {
  take(op.getIntoMutable(), op.getResult());
  View view = buffers.getView(op.getResult());
  int64_t elementBytes = op.getInto().getType().getElementTypeBitWidth() / 8;
  SmallVector<Value> parts;
  for (auto [tensor, member] : llvm::zip_equal(op.getTensors(), op.getLayout().getMembers())) {
    int64_t offset = member.getOffset() * elementBytes, bytes = getTensorBytes(tensor.getType());
    View wanted = {view.buffer, view.offsetBytes + offset};
    if (!buffers.isBound(tensor)) { // Constant zeros.
      Call call(*this, op);
      Attribute place = call.writePlace(getPlace(wanted, getMemory(tensor)));
      call.emit("plr_zero", {place, i64(bytes)});
      parts.push_back(call.getCreated()->getResult(1));
      continue;
    }
    View source = buffers.getView(tensor);
    bool isThere = source.buffer == wanted.buffer && source.offsetBytes == wanted.offsetBytes;
    Value content = getContent(tensor);
    parts.push_back(isThere ? content : copy(op, content, getPlace(wanted, getMemory(tensor))));
  }
  Value place = getPlace(view, getMemory(op.getResult()));
  setContent(op.getResult(), sched::JoinOp::create(builder, op.getLoc(), place.getType(), place, parts));
  return success();
}

LogicalResult FunctionConversion::lowerAdamW(AdamWOp op) {
  SmallVector<int64_t> ranges = getRanges(op.getLayout(), /*hasDecay=*/true);
  Call call(*this, op);
  auto updated = [&](OpOperand &operand, Value result) {
    take(operand, result);
    return call.update(result);
  };
  Attribute parameters = updated(op.getParametersMutable(), op.getNewParameters()),
            first = updated(op.getFirstMutable(), op.getNewFirst()),
            second = updated(op.getSecondMutable(), op.getNewSecond()),
            master = op.getMaster() ? updated(op.getMasterMutable()[0], op.getNewMaster()) : null();
  call.emit("plr_adamw", {type(op.getParameters()), type(op.getGradients()), i64(ranges.size() / 3), array(ranges),
                          f64(op.getBeta1()), f64(op.getBeta2()), f64(op.getEpsilon()), f64(op.getWeightDecay()),
                          parameters, call.read(op.getGradients()), first, second, master, call.read(op.getFactor()),
                          call.read(op.getLearningRate()), call.read(op.getStep())});
  return success();
}

LogicalResult FunctionConversion::lowerReturn(func::ReturnOp op) {
  llvm::DenseMap<int64_t, unsigned> donors;
  for (unsigned argument = 0; argument < function.getNumArguments(); ++argument)
    if (auto donated = function.getArgAttrOfType<IntegerAttr>(argument, "moe.donated")) {
      auto [it, isNew] = donors.try_emplace(donated.getInt(), argument);
      if (!isNew)
        return function.emitError() << "arguments #" << it->second << " and #" << argument
                                    << " are donated to one result, #" << donated.getInt();
    }
  SmallVector<Value> results;
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    if (!buffers.isBound(value))
      return op.emitOpError() << "returns operand #" << index << ", which is never computed (a tensor.empty?)";
    View view = buffers.getView(value);
    Value content = getContent(value);
    if (auto donor = donors.find(index); donor != donors.end()) {
      View wanted = buffers.getView(function.getArgument(donor->second));
      if (view.buffer != wanted.buffer || view.offsetBytes != 0)
        return op.emitOpError() << "argument #" << donor->second << " is donated to result #" << index
                                << ", but the result is not computed in its buffer: the old value is read again after "
                                   "its update, or the result is another value";
      results.push_back(content);
      continue;
    }
    results.push_back(copy(op, content, resultBuffers[index]));
  }
  sched::ReturnOp::create(builder, op.getLoc(), results);
  return success();
}

LogicalResult FunctionConversion::lower(Operation *op) {
  loc = op->getLoc();
  Call call(*this, op);
  auto read = [&](Value tensor) { return call.read(tensor); };
  auto out = [&](Value result) { return call.out(result); };
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
      .Case<tensor::InsertSliceOp>([&](auto o) { return lowerInsert(o); })
      .Case<tensor::ConcatOp>([&](auto o) { return lowerConcat(o); })
      .Case<arith::AddIOp, arith::SubIOp>([&](auto) { return lowerIndex(op); })
      .Case<scf::ForOp>([&](auto o) { return lowerFor(o); })
      .Case<scf::YieldOp>([&](auto o) { return lowerYield(o); })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp>([&](auto o) {
        buffers.bind(o.getResult(), buffers.getView(o.getSrc()));
        contents[o.getResult()] = contents.lookup(o.getSrc());
        return success();
      })
      .Case<EmbeddingOp>([&](EmbeddingOp o) {
        Attribute result = out(o.getResult());
        call.emit("plr_embedding", {type(o.getTable()), i64(dim(o.getIds(), 0)), i64(dim(o.getTable(), 1)),
                                    i64(dim(o.getTable(), 0)), read(o.getTable()), read(o.getIds()), result});
        return success();
      })
      .Case<EmbeddingGradOp>([&](EmbeddingGradOp o) {
        Attribute result = out(o.getResult());
        call.emit("plr_embedding_grad", {type(o.getCotangent()), i64(dim(o.getIds(), 0)), i64(dim(o.getResult(), 1)),
                                         i64(dim(o.getResult(), 0)), read(o.getCotangent()), read(o.getIds()), result});
        return success();
      })
      .Case<RMSNormOp>([&](RMSNormOp o) {
        Attribute output = out(o.getOutput()), inverse = out(o.getInverse());
        call.emit("plr_rms_norm", {type(o.getInput()), i64(getRows(o.getInput())), i64(dim(o.getWeight(), 0)),
                                   f32(o.getEpsilon()), read(o.getInput()), read(o.getWeight()), output, inverse});
        return success();
      })
      .Case<RMSNormGradOp>([&](RMSNormGradOp o) {
        Attribute input = out(o.getInputGrad()), weight = out(o.getWeightGrad());
        call.emit("plr_rms_norm_grad",
                  {type(o.getInput()), i64(getRows(o.getInput())), i64(dim(o.getWeight(), 0)), read(o.getCotangent()),
                   read(o.getInput()), read(o.getWeight()), read(o.getInverse()), input, weight});
        return success();
      })
      .Case<RotaryTableOp>([&](RotaryTableOp o) {
        Attribute cos = out(o.getCos()), sin = out(o.getSin());
        call.emit("plr_rotary_table", {i64(dim(o.getPositions(), 0)), i64(dim(o.getCos(), 1)), f64(o.getTheta()),
                                       read(o.getPositions()), cos, sin});
        return success();
      })
      .Case<RotaryOp>([&](RotaryOp o) {
        Attribute result = out(o.getResult());
        call.emit("plr_rotary", {type(o.getInput()), i64(dim(o.getInput(), 0)), i64(dim(o.getInput(), 1)),
                                 i64(dim(o.getInput(), 2) / 2), i32(o.getInverse()), read(o.getInput()),
                                 read(o.getCos()), read(o.getSin()), result});
        return success();
      })
      .Case<AttentionOp>([&](AttentionOp o) {
        Attribute output = out(o.getOutput()), lse = out(o.getLse());
        call.emit("plr_attention",
                  {type(o.getQuery()), i64(dim(o.getQuery(), 0)), i64(dim(o.getQuery(), 1)), i64(dim(o.getKey(), 1)),
                   i64(dim(o.getQuery(), 2)), f32(o.getScale()), read(o.getQuery()), read(o.getKey()),
                   read(o.getValue()), read(o.getStarts()), output, lse});
        return success();
      })
      .Case<AttentionGradOp>([&](AttentionGradOp o) {
        Attribute query = out(o.getQueryGrad()), key = out(o.getKeyGrad()), value = out(o.getValueGrad());
        call.emit("plr_attention_grad",
                  {type(o.getQuery()), i64(dim(o.getQuery(), 0)), i64(dim(o.getQuery(), 1)), i64(dim(o.getKey(), 1)),
                   i64(dim(o.getQuery(), 2)), f32(o.getScale()), read(o.getCotangent()), read(o.getQuery()),
                   read(o.getKey()), read(o.getValue()), read(o.getStarts()), read(o.getOutput()), read(o.getLse()),
                   query, key, value});
        return success();
      })
      .Case<CountLabelsOp>([&](CountLabelsOp o) {
        Attribute result = out(o.getResult());
        call.emit("plr_count_labels", {i64(dim(o.getLabels(), 0)), i32(static_cast<int32_t>(o.getIgnoreIndex())),
                                       read(o.getLabels()), result});
        return success();
      })
      .Case<SumSquaresOp>([&](SumSquaresOp o) {
        Attribute result = out(o.getResult());
        SmallVector<int64_t> ranges = getRanges(o.getLayout(), /*hasDecay=*/false);
        call.emit("plr_sum_squares",
                  {type(o.getGradients()), i64(ranges.size() / 2), array(ranges), read(o.getGradients()), result});
        return success();
      })
      .Case<GradNormOp>([&](GradNormOp o) {
        Attribute norm = out(o.getNorm());
        SmallVector<Attribute> squares = llvm::map_to_vector(o.getSquares(), [&](Value value) { return read(value); });
        call.emit("plr_grad_norm", {i64(squares.size()), pointers(squares), norm});
        return success();
      })
      .Case<CollectiveOpInterface>([&](CollectiveOpInterface) { return lowerCollective(op); })
      .Case<RouteOp, RouteGradOp, BalanceLossOp, BalanceLossGradOp, ZLossOp, ZLossGradOp, UpdateBiasOp, GroupedMatmulOp,
            GroupedMatmulGradOp, SwiGLUOp, SwiGLUGradOp, ScaleRowsOp, RowDotOp>([&](auto) { return lowerExperts(op); })
      .Case<LogSoftmaxOp, LogSoftmaxGradOp, NLLOp, NLLGradOp, MeanLossOp, MeanLossGradOp, ShardStartOp, FoldLogitsOp,
            MergeStatesOp, FinishLossesOp, LogitsGradOp, ColumnSumsOp, EmbeddingShardOp, EmbeddingShardGradOp>(
          [&](auto) { return lowerVocabulary(op); })
      .Case<ClipFactorOp>([&](ClipFactorOp o) {
        Attribute factor = out(o.getFactor());
        call.emit("plr_clip_factor", {f32(o.getMaxNorm()), read(o.getNorm()), factor});
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        if (op->hasTrait<OpTrait::ConstantLike>())
          return lowerConstant(op);
        return op->emitOpError("is not lowered to the runtime");
      });
}
/// Every tensor that a call reads has its memory. Without it are tensor.empty, which an op may only overwrite, and
/// zeros that are known where they are used.
LogicalResult FunctionConversion::checkOperands(Operation *op) {
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
    if (auto shift = dyn_cast<ShiftOp>(op); shift && &operand == &shift.getIntoMutable())
      continue;
    return op->emitOpError() << "reads operand #" << operand.getOperandNumber()
                             << ", which is never computed (a tensor.empty?)";
  }
  return success();
}
