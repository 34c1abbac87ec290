//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEATTACHOPTIMIZER
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
struct AttachOptimizer : moe::impl::MoEAttachOptimizerBase<AttachOptimizer> {
  using MoEAttachOptimizerBase::MoEAttachOptimizerBase;

  void runOnOperation() override {
    if (failed(attach()))
      signalPassFailure();
  }

private:
  LogicalResult attach();
  LogicalResult verifyOptions(Operation *op);
  /// The layout of the parameters among the arguments of `gradients`; fails when there are none or they have two types.
  FailureOr<LayoutAttr> getLayout(func::FuncOp gradients, Type &element);
  /// The batch of a step of `microBatches` times the loss's.
  FailureOr<BatchAttr> getBatch(func::FuncOp gradients);
};

/// One evaluation of the loss and its gradients: the ops of the differentiated function, on some of a step's tokens.
struct Evaluation {
  func::FuncOp gradients;
  SmallVector<unsigned> data; ///< Arguments that hold tokens and what belongs to them.
  std::optional<unsigned> labelCount;
  SmallVector<unsigned> bufferArguments; ///< Arguments that hold state with a rule of its own.
  SmallVector<Value> parameters, buffers;

  static bool isForEachToken(func::FuncOp function, unsigned index);
  SmallVector<Value> build(OpBuilder &builder, ValueRange data, Value labelCount);
  /// The sums over all micro-batches of what build gives, in f32; of integers, in their type.
  SmallVector<Value> buildLoop(OpBuilder &builder, ValueRange data, Value labelCount, int64_t microBatches);
};

/// Which ranks hold the same part of each parameter, and the sums over them.
class Ranks {
public:
  /// Fails when a parameter is divided by a grid that is not one of all the ranks.
  static FailureOr<Ranks> get(func::FuncOp gradients, LayoutAttr layout);

  /// The sum over all ranks.
  Value sumOverAll(OpBuilder &builder, Location loc, Value value) const {
    return sum(builder, loc, value, world, {0}, ranks);
  }
  /// A parameter's gradient, summed over the ranks that share the parameter.
  Value sumGradient(OpBuilder &builder, Location loc, Value gradient, ParameterAttr parameter) const;
  /// Sums of squares of the gradients in `packed`, each parameter counted once over all ranks.
  SmallVector<Value> sumSquares(OpBuilder &builder, Location loc, Value packed, LayoutAttr layout) const;

private:
  Value sum(OpBuilder &builder, Location loc, Value value, FlatSymbolRefAttr grid, ArrayRef<int64_t> axes,
            int64_t size) const;

  int64_t ranks = 1;
  FlatSymbolRefAttr world;
  llvm::MapVector<Attribute, Grid> grids; ///< By symbol.
};

/// Adds arguments and results to a function that is being built, each pair of a group donated.
struct Signature {
  MLIRContext *context;
  SmallVector<Type> arguments, results;
  SmallVector<DictionaryAttr> argumentAttrs, resultAttrs;

  DictionaryAttr describe(Role role, LayoutAttr layout, std::optional<unsigned> donated) {
    NamedAttrList attrs;
    attrs.append("moe.role", RoleAttr::get(context, role));
    if (layout)
      attrs.append("moe.layout", layout);
    if (donated)
      attrs.append("moe.donated", IntegerAttr::get(IntegerType::get(context, 64), *donated));
    return attrs.getDictionary(context);
  }

  void addArgument(Type type, DictionaryAttr attrs) {
    arguments.push_back(type);
    argumentAttrs.push_back(attrs);
  }

  unsigned addResult(Type type, Role role) {
    results.push_back(type);
    resultAttrs.push_back(describe(role, {}, std::nullopt));
    return results.size() - 1;
  }

  void addBuffer(Type type, StringAttr name) {
    results.push_back(type);
    resultAttrs.push_back(DictionaryAttr::get(context));
    NamedAttrList attrs;
    attrs.append("moe.buffer", name);
    attrs.append("moe.donated", IntegerAttr::get(IntegerType::get(context, 64), results.size() - 1));
    addArgument(type, attrs.getDictionary(context));
  }

  void addGroup(Type type, Role role, LayoutAttr layout) {
    unsigned result = addResult(type, role);
    addArgument(type, describe(role, layout, result));
  }
};
} // namespace

FailureOr<Ranks> Ranks::get(func::FuncOp gradients, LayoutAttr layout) {
  Ranks result;
  if (auto batch = gradients->getAttrOfType<BatchAttr>("moe.batch"))
    result.ranks = batch.getRanks();
  for (MemberAttr member : layout.getMembers()) {
    FlatSymbolRefAttr symbol = member.getParameter().getShard();
    if (!symbol)
      continue;
    FailureOr<Grid> grid = Grid::lookup(gradients, symbol);
    if (failed(grid))
      return gradients.emitError() << "parameter '" << member.getParameter().getName() << "' is divided by grid "
                                   << symbol << ", and there is none with static sizes: add shard.grid " << symbol;
    if (grid->getRanks() != result.ranks)
      return gradients.emitError() << "parameter '" << member.getParameter().getName() << "' is divided by grid "
                                   << symbol << " of " << grid->getRanks() << " ranks, and moe.batch says "
                                   << result.ranks;
    auto fail = [&] { return gradients.emitError(); };
    if (!member.getShape().empty() &&
        failed(member.getParameter().verifyParts(fail, grid->getShards(), member.getShape().front())))
      return failure();
    result.grids.insert({symbol, *grid});
  }
  if (result.ranks == 1)
    return result;
  result.world = FlatSymbolRefAttr::get(gradients.getContext(), "world");
  FailureOr<Grid> world = Grid::lookup(gradients, result.world);
  if (succeeded(world)) {
    if (world->shape.size() != 1 || world->getRanks() != result.ranks)
      return gradients.emitError() << "shard.grid @world must have the shape " << result.ranks
                                   << ", the ranks of moe.batch";
    return result;
  }
  OpBuilder builder = OpBuilder::atBlockBegin(gradients->getParentOfType<ModuleOp>().getBody());
  shard::GridOp::create(builder, gradients.getLoc(), "world", ArrayRef<int64_t>{result.ranks});
  return result;
}

Value Ranks::sum(OpBuilder &builder, Location loc, Value value, FlatSymbolRefAttr grid, ArrayRef<int64_t> axes,
                 int64_t size) const {
  if (size == 1)
    return value;
  MLIRContext *context = builder.getContext();
  auto narrow = llvm::map_to_vector(axes, [](int64_t axis) { return static_cast<shard::GridAxis>(axis); });
  return shard::AllReduceOp::create(builder, loc, value.getType(), grid, shard::GridAxesAttr::get(context, narrow),
                                    value, shard::ReductionKindAttr::get(context, shard::ReductionKind::Sum));
}

Value Ranks::sumGradient(OpBuilder &builder, Location loc, Value gradient, ParameterAttr parameter) const {
  if (matchPattern(gradient, m_AnyZeroFloat())) // On every rank: no path leads to the parameter.
    return gradient;
  FlatSymbolRefAttr shard = parameter.getShard();
  if (!shard)
    return sumOverAll(builder, loc, gradient);
  const Grid &grid = grids.find(shard)->second;
  SmallVector<int64_t> axes = grid.getReplicaAxes();
  return sum(builder, loc, gradient, shard, axes, grid.getSize(axes));
}

SmallVector<Value> Ranks::sumSquares(OpBuilder &builder, Location loc, Value packed, LayoutAttr layout) const {
  llvm::MapVector<Attribute, SmallVector<MemberAttr>> classes; // by shard
  for (MemberAttr member : layout.getMembers())
    classes[member.getParameter().getShard()].push_back(member);
  SmallVector<Value> squares;
  for (auto &[shard, members] : classes) {
    auto part = LayoutAttr::get(builder.getContext(), members);
    Value square = SumSquaresOp::create(builder, loc, packed, part);
    if (shard) {
      const Grid &grid = grids.find(shard)->second;
      square = sum(builder, loc, square, cast<FlatSymbolRefAttr>(shard), {static_cast<int64_t>(grid.shape.size()) - 1},
                   grid.getShards());
    }
    squares.push_back(square);
  }
  return squares;
}

LogicalResult AttachOptimizer::verifyOptions(Operation *op) {
  // Norm and state are f32: a number that rounds to 0 or inf there is not what was asked for.
  auto toF32 = [](double value) { return static_cast<float>(value); };
  if (!(toF32(clipNorm) > 0) || (std::isinf(toF32(clipNorm)) && !std::isinf(clipNorm)))
    return op->emitError() << "clip-norm is " << clipNorm << ": it must be positive in f32, or inf for no clipping";
  if (!(weightDecay >= 0) || !std::isfinite(weightDecay))
    return op->emitError() << "weight-decay is " << weightDecay << ": it must be at least 0";
  if (!(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1))
    return op->emitError() << "beta1 and beta2 are " << beta1 << " and " << beta2 << ": they must be in [0, 1)";
  if (!(toF32(epsilon) > 0) || !std::isfinite(toF32(epsilon)))
    return op->emitError() << "epsilon is " << epsilon << ": it must be more than 0, and finite, in f32";
  if (!(toF32(biasUpdateRate) >= 0) || !std::isfinite(toF32(biasUpdateRate)))
    return op->emitError() << "bias-update-rate is " << biasUpdateRate << ": it must be at least 0, and finite, in f32";
  if (microBatches < 1)
    return op->emitError() << "micro-batches is " << static_cast<int64_t>(microBatches) << ": it must be at least 1";
  if (shardElements < 1 || shardElements > maxElements)
    return op->emitError() << "shard-elements is " << static_cast<int64_t>(shardElements)
                           << ": it must be in 1 ... 2^60";
  return success();
}

FailureOr<LayoutAttr> AttachOptimizer::getLayout(func::FuncOp gradients, Type &element) {
  SmallVector<MemberAttr> members;
  int64_t offset = 0;
  for (unsigned index = 0; index < gradients.getNumArguments(); ++index) {
    auto parameter = gradients.getArgAttrOfType<ParameterAttr>(index, "moe.parameter");
    if (!parameter)
      continue;
    auto type = cast<RankedTensorType>(gradients.getArgumentTypes()[index]);
    if (element && element != type.getElementType())
      return gradients.emitError() << "parameter '" << parameter.getName() << "' is " << type.getElementType()
                                   << " and others are " << element << ": a group has one element type";
    element = type.getElementType();
    members.push_back(MemberAttr::get(&getContext(), parameter, offset, type.getShape()));
    std::optional<int64_t> elements = countElements(type.getShape());
    if (!elements || offset + *elements > maxElements)
      return gradients.emitError() << "parameter '" << parameter.getName()
                                   << "' ends beyond 2^60 elements of the group";
    offset += *elements;
  }
  if (members.empty())
    return gradients.emitError() << "no argument carries moe.parameter: there is nothing to train";
  auto fail = [&] { return gradients.emitError() << "the parameters make no group: "; };
  LayoutAttr layout = LayoutAttr::getChecked(fail, &getContext(), ArrayRef<MemberAttr>(members));
  if (!layout)
    return failure();
  return layout;
}

bool Evaluation::isForEachToken(func::FuncOp function, unsigned index) {
  auto role = function.getArgAttrOfType<RoleAttr>(index, "moe.role");
  return role && llvm::is_contained({Role::Tokens, Role::Labels, Role::Positions, Role::Starts}, role.getValue());
}

SmallVector<Value> Evaluation::build(OpBuilder &builder, ValueRange values, Value count) {
  IRMapping mapping;
  for (auto [index, value] : llvm::zip_equal(data, values))
    mapping.map(gradients.getArgument(index), value);
  if (labelCount)
    mapping.map(gradients.getArgument(*labelCount), count);
  for (auto [index, buffer] : llvm::zip_equal(bufferArguments, buffers))
    mapping.map(gradients.getArgument(index), buffer);
  unsigned next = 0;
  for (BlockArgument argument : gradients.getArguments())
    if (gradients.getArgAttr(argument.getArgNumber(), "moe.parameter"))
      mapping.map(argument, parameters[next++]);
  Block &body = gradients.getBody().front();
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(body.getTerminator()->getOperands(), [&](Value value) { return mapping.lookup(value); });
}

SmallVector<Value> Evaluation::buildLoop(OpBuilder &builder, ValueRange values, Value count, int64_t microBatches) {
  Type f32 = builder.getF32Type();
  Location loc = gradients.getLoc();
  auto index = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); };
  int64_t tokens = gradients->getAttrOfType<BatchAttr>("moe.batch").getTokens();
  SmallVector<Value> sums;
  for (Value result : gradients.getBody().front().getTerminator()->getOperands()) {
    if (getElementTypeOrSelf(result.getType()).isInteger()) {
      auto zeros = builder.getZeroAttr(result.getType());
      sums.push_back(arith::ConstantOp::create(builder, result.getLoc(), zeros));
      continue;
    }
    Value zero = arith::ConstantOp::create(builder, result.getLoc(), builder.getZeroAttr(f32));
    Value empty =
        tensor::EmptyOp::create(builder, result.getLoc(), cast<RankedTensorType>(result.getType()).getShape(), f32);
    sums.push_back(linalg::FillOp::create(builder, result.getLoc(), zero, empty).getResult(0));
  }
  auto loop = scf::ForOp::create(builder, loc, index(0), index(tokens * microBatches), index(tokens), sums,
                                 [&](OpBuilder &inner, Location, Value first, ValueRange carried) {
                                   SmallVector<Value> parts;
                                   for (auto [position, value] : llvm::zip_equal(data, values)) {
                                     if (!isForEachToken(gradients, position)) {
                                       parts.push_back(value);
                                       continue;
                                     }
                                     auto type = cast<RankedTensorType>(gradients.getArgumentTypes()[position]);
                                     parts.push_back(tensor::ExtractSliceOp::create(
                                         inner, value.getLoc(), type, value, ArrayRef<OpFoldResult>{first},
                                         ArrayRef<OpFoldResult>{inner.getIndexAttr(tokens)},
                                         ArrayRef<OpFoldResult>{inner.getIndexAttr(1)}));
                                   }
                                   SmallVector<Value> next;
                                   for (auto [sum, result] : llvm::zip_equal(carried, build(inner, parts, count))) {
                                     if (getElementTypeOrSelf(sum.getType()).isInteger()) {
                                       next.push_back(arith::AddIOp::create(inner, result.getLoc(), sum, result));
                                       continue;
                                     }
                                     Value wide = result;
                                     if (sum.getType() != result.getType())
                                       wide = arith::ExtFOp::create(inner, result.getLoc(), sum.getType(), result);
                                     next.push_back(arith::AddFOp::create(inner, result.getLoc(), sum, wide));
                                   }
                                   scf::YieldOp::create(inner, loc, next);
                                 });
  return loop.getResults();
}

FailureOr<BatchAttr> AttachOptimizer::getBatch(func::FuncOp gradients) {
  auto batch = gradients->getAttrOfType<BatchAttr>("moe.batch");
  if (microBatches == 1)
    return batch;
  if (!batch)
    return gradients.emitError() << "micro-batches is " << static_cast<int64_t>(microBatches)
                                 << ", and the function has no moe.batch that says how many tokens one has";
  bool hasCount = llvm::any_of(llvm::seq(gradients.getNumArguments()), [&](unsigned index) {
    auto role = gradients.getArgAttrOfType<RoleAttr>(index, "moe.role");
    return role && role.getValue() == Role::LabelCount;
  });
  if (!hasCount)
    return gradients.emitError() << "micro-batches is " << static_cast<int64_t>(microBatches)
                                 << ", and no argument has the role label_count: a loss that counts the labels it sees "
                                    "would divide each part by its own number";
  auto fail = [&] {
    return gradients.emitError() << "micro-batches is " << static_cast<int64_t>(microBatches) << ": ";
  };
  std::optional<int64_t> tokens = llvm::checkedMul<int64_t>(batch.getTokens(), microBatches);
  if (!tokens)
    return fail() << "there are more than 2^60 tokens in all";
  BatchAttr whole = BatchAttr::getChecked(fail, &getContext(), batch.getRanks(), *tokens, batch.getSequence(),
                                          static_cast<int64_t>(microBatches));
  if (!whole)
    return failure();
  return whole;
}

LogicalResult AttachOptimizer::attach() {
  ModuleOp module = getOperation();
  MLIRContext *context = &getContext();
  auto gradients = module.lookupSymbol<func::FuncOp>(function + "_and_gradients");
  if (!gradients)
    return module.emitError() << "there is no function @" << function << "_and_gradients: run moe-differentiate first";
  if (module.lookupSymbol("step"))
    return module.emitError() << "there is a @step already";
  Type element;
  FailureOr<LayoutAttr> found = getLayout(gradients, element);
  if (failed(verifyOptions(gradients)) || failed(found))
    return failure();
  LayoutAttr layout = *found;
  FailureOr<Ranks> ranks = Ranks::get(gradients, layout);
  if (failed(ranks))
    return failure();

  OpBuilder builder(context);
  Type f32 = builder.getF32Type();
  auto scalar = RankedTensorType::get({}, f32), counter = RankedTensorType::get({}, builder.getI32Type());
  int64_t size = llvm::alignTo(layout.getExtent(), shardElements);
  auto group = RankedTensorType::get({size}, element), state = RankedTensorType::get({size}, f32);
  bool hasMaster = !element.isF32();

  FailureOr<BatchAttr> batch = getBatch(gradients);
  if (failed(batch))
    return failure();
  // Parts of a sum are added in f32, and so is what they are parts of.
  auto gradientGroup = microBatches > 1 ? state : group;

  Signature signature{context, {}, {}, {}, {}};
  Evaluation evaluation{gradients, {}, std::nullopt, {}, {}, {}};
  std::optional<unsigned> labels;
  for (unsigned index = 0; index < gradients.getNumArguments(); ++index) {
    if (gradients.getArgAttr(index, "moe.parameter"))
      continue;
    auto role = gradients.getArgAttrOfType<RoleAttr>(index, "moe.role");
    if (role && role.getValue() == Role::LabelCount) {
      evaluation.labelCount = index;
      continue;
    }
    if (gradients.getArgAttr(index, "moe.buffer")) {
      evaluation.bufferArguments.push_back(index);
      continue;
    }
    if (role && role.getValue() == Role::Labels)
      labels = evaluation.data.size();
    evaluation.data.push_back(index);
    auto type = cast<RankedTensorType>(gradients.getArgumentTypes()[index]);
    if (microBatches > 1 && Evaluation::isForEachToken(gradients, index))
      type = type.clone({batch->getTokens()});
    signature.addArgument(type, DictionaryAttr::get(context, function_interface_impl::getArgAttrs(gradients, index)));
  }
  if (evaluation.labelCount && !labels)
    return gradients.emitError() << "has an argument with the role label_count and none with the role labels to count";
  signature.addArgument(scalar, signature.describe(Role::LearningRate, {}, std::nullopt));
  signature.addArgument(counter, signature.describe(Role::Step, {}, std::nullopt));
  signature.addResult(scalar, Role::Loss);
  signature.addResult(scalar, Role::GradientNorm);
  unsigned firstGroup = signature.arguments.size();
  signature.addGroup(group, Role::Parameters, layout);
  signature.addGroup(gradientGroup, Role::Gradients, layout);
  signature.addGroup(state, Role::FirstMoment, layout);
  signature.addGroup(state, Role::SecondMoment, layout);
  if (hasMaster)
    signature.addGroup(state, Role::Master, layout);
  size_t buffers = evaluation.bufferArguments.size();
  if (gradients.getNumResults() != 1 + layout.getMembers().size() + buffers)
    return gradients.emitError() << "has " << gradients.getNumResults() << " results: they must be the loss, "
                                 << layout.getMembers().size() << " gradients and counts for " << buffers << " buffers";
  for (unsigned index : evaluation.bufferArguments)
    signature.addBuffer(gradients.getArgumentTypes()[index],
                        gradients.getArgAttrOfType<StringAttr>(index, "moe.buffer"));

  builder.setInsertionPoint(gradients);
  Location loc = withScope(NameLoc::get(builder.getStringAttr("optimizer")),
                           ScopeAttr::get(context, Phase::Optimizer, Component::Optimizer, std::nullopt));
  auto step = func::FuncOp::create(builder, gradients.getLoc(), "step",
                                   builder.getFunctionType(signature.arguments, signature.results));
  for (NamedAttribute attribute : gradients->getDiscardableAttrs())
    step->setDiscardableAttr(attribute.getName(), attribute.getValue());
  if (*batch)
    step->setDiscardableAttr("moe.batch", *batch);
  step.setAllArgAttrs(signature.argumentAttrs);
  step.setAllResultAttrs(signature.resultAttrs);
  Block *body = step.addEntryBlock();
  builder.setInsertionPointToStart(body);
  ValueRange arguments = body->getArguments();
  ValueRange groups = arguments.drop_front(firstGroup);

  SmallVector<Type> tensors = llvm::map_to_vector(layout.getMembers(), [&](MemberAttr member) -> Type {
    return RankedTensorType::get(member.getShape(), element);
  });
  Location views = withScope(NameLoc::get(builder.getStringAttr("parameters")),
                             ScopeAttr::get(context, Phase::Forward, Component::Parameters, std::nullopt));
  auto unpack = UnpackOp::create(builder, views, tensors, groups[0], layout);
  evaluation.parameters = llvm::to_vector_of<Value>(unpack.getResults());
  evaluation.buffers = llvm::to_vector_of<Value>(arguments.take_back(buffers));
  ValueRange values = arguments.take_front(evaluation.data.size());
  Value count;
  if (evaluation.labelCount) {
    int32_t ignoreIndex = -100;
    gradients.walk([&](VocabLossOp op) { ignoreIndex = op.getVocabulary().getIgnoreIndex(); });
    gradients.walk([&](NLLOp op) { ignoreIndex = op.getVocabulary().getIgnoreIndex(); });
    Location place = withScope(NameLoc::get(builder.getStringAttr("count_labels")),
                               ScopeAttr::get(context, Phase::Forward, Component::Vocabulary, std::nullopt));
    count = CountLabelsOp::create(builder, place, values[*labels], ignoreIndex);
    count = ranks->sumOverAll(builder, place, count);
  }
  SmallVector<Value> results = microBatches > 1 ? evaluation.buildLoop(builder, values, count, microBatches)
                                                : evaluation.build(builder, values, count);
  MutableArrayRef<Value> parts = MutableArrayRef(results).slice(1, layout.getMembers().size());
  for (auto [gradient, member] : llvm::zip_equal(parts, layout.getMembers()))
    gradient = ranks->sumGradient(builder, gradient.getLoc(), gradient, member.getParameter());
  results[0] = ranks->sumOverAll(builder, results[0].getLoc(), results[0]);

  Location pack = withScope(NameLoc::get(builder.getStringAttr("gradients")),
                            ScopeAttr::get(context, Phase::Backward, Component::Gradients, std::nullopt));
  Value packed = PackOp::create(builder, pack, groups[1], parts, layout);
  Value norm = GradNormOp::create(builder, loc, scalar, ranks->sumSquares(builder, loc, packed, layout));
  Value factor = ClipFactorOp::create(builder, loc, scalar, norm, builder.getF32FloatAttr(clipNorm));
  auto update =
      AdamWOp::create(builder, loc, group, state, state, hasMaster ? Type(state) : Type(), groups[0], packed, groups[2],
                      groups[3], hasMaster ? groups[4] : Value(), factor, arguments[firstGroup - 2],
                      arguments[firstGroup - 1], builder.getF64FloatAttr(beta1), builder.getF64FloatAttr(beta2),
                      builder.getF64FloatAttr(epsilon), builder.getF64FloatAttr(weightDecay), layout);
  SmallVector<Value> returned = {results[0],           norm, update.getNewParameters(), packed, update.getNewFirst(),
                                 update.getNewSecond()};
  if (hasMaster)
    returned.push_back(update.getNewMaster());
  for (auto [buffer, counts] : llvm::zip_equal(evaluation.buffers, ArrayRef(results).take_back(buffers))) {
    Value all = ranks->sumOverAll(builder, loc, counts);
    returned.push_back(UpdateBiasOp::create(builder, loc, buffer.getType(), buffer, all, factor,
                                            builder.getF32FloatAttr(biasUpdateRate)));
  }
  func::ReturnOp::create(builder, loc, returned);

  gradients.erase();
  if (auto loss = module.lookupSymbol<func::FuncOp>(function))
    loss.erase();
  return success();
}
