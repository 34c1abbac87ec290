//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/BuildLoss.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Interfaces/Matmul.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::importer;

/// Labels that do not count in the loss carry this number, as in PyTorch.
static constexpr int32_t ignoreIndex = -100;

namespace {
/// One decoder layer: its parameters, and the values it reads. `inputs` are the residual stream, cosines, sines, starts
/// of documents, then the parameters, then the number of tokens where a layer with experts needs it.
struct Layer {
  int64_t index;
  ArrayRef<Parameter> parameters;
  ValueRange inputs;

  Value getStream() const { return inputs[0]; }
  Value getCos() const { return inputs[1]; }
  Value getSin() const { return inputs[2]; }
  Value getStarts() const { return inputs[3]; }
  /// Null when all rows are tokens.
  Value getTokenCount() const { return inputs.size() > 4 + parameters.size() ? inputs.back() : Value(); }
  /// The value of "model.layers.<index>.<name>.weight".
  Value getWeight(const Twine &name) const { return getTensor(name + ".weight"); }
  /// The value of "model.layers.<index>.<name>".
  Value getTensor(const Twine &name) const {
    std::string wanted = ("model.layers." + Twine(index) + "." + name).str();
    const Parameter *found =
        llvm::find_if(parameters, [&](const Parameter &parameter) { return parameter.name == wanted; });
    return inputs[4 + (found - parameters.begin())];
  }
};

/// What a layer gives: the residual stream; the rank's share of its router's losses, and how many of the rank's tokens
/// chose each expert, null where there is none.
struct LayerResults {
  Value stream, loss, counts;

  SmallVector<Value> list() const {
    SmallVector<Value> values = {stream};
    for (Value value : {loss, counts})
      if (value)
        values.push_back(value);
    return values;
  }
};

class LossBuilder {
public:
  LossBuilder(MLIRContext *context, const ModelConfig &config, ArrayRef<Parameter> parameters,
              const LossOptions &options)
      : builder(context), config(config), parameters(parameters), options(options),
        working(options.workingType == WorkingType::F32 ? Type(builder.getF32Type()) : Type(builder.getBF16Type())) {}

  OwningOpRef<ModuleOp> build();

private:
  // Types and locations.
  RankedTensorType getTensor(ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); }
  RankedTensorType getTensor(ArrayRef<int64_t> shape) { return getTensor(shape, working); }
  Location locate(Component component, const Twine &name, std::optional<int64_t> layer = std::nullopt);
  /// "layers.3.q_proj".
  Location locate(Component component, const Layer &layer, StringRef name) {
    return locate(component, "layers." + Twine(layer.index) + "." + name, layer.index);
  }

  // The grids of ranks, the function and its arguments.
  void createGrids(ModuleOp module);
  /// The grid that divides the tables of the vocabulary, or a parameter; null when every rank has all of it.
  FlatSymbolRefAttr getVocabularyGrid() const;
  FlatSymbolRefAttr getGrid(const Parameter &parameter) const;
  /// Shape of a rank's part of a parameter.
  SmallVector<int64_t> getPartShape(const Parameter &parameter) const;
  int64_t getParts(const Parameter &parameter) const;
  func::FuncOp createFunction(ModuleOp module);
  Value getWeight(StringRef name) { return weights.lookup((name + ".weight").str()); }

  // The parts of the network.
  /// Adds the layers' losses to `losses` and their counts to `counts`.
  Value buildLayers(Value stream, Value cos, Value sin, Value starts, SmallVector<Value> &losses,
                    SmallVector<Value> &counts);
  LayerResults buildCheckpointed(const Layer &layer);
  LayerResults buildLayer(const Layer &layer);
  Value buildAttention(const Layer &layer);
  LayerResults buildFeedForward(const Layer &layer, Value stream);
  /// The experts' output as the stream.
  LayerResults buildExperts(const Layer &layer, Value x);
  Value buildRouterLoss(const Layer &layer, Value logits, moe::RouteOp route);
  Value buildBalanceLoss(const Layer &layer, Value logits, moe::RouteOp route);
  Value buildSharedExpert(const Layer &layer, Value x);
  Value buildVocabularyLoss(Value stream, Value labels);

  // Small pieces.
  /// `input` · `weight`ᵀ, summed in f32 and left there; nn.Linear keeps its weight as [out, in]. Each product rounds
  /// `input` for itself, so that the cotangents of an input of several are added in f32.
  Value buildLinear(Location loc, Value input, Value weight);
  /// A norm in f32, whatever the working type.
  Value buildNorm(Location loc, Value input, Value weight);
  /// [N, heads · head size] as [N, heads, head size], and back.
  Value splitHeads(Location loc, Value rows, int64_t heads);
  Value joinHeads(Location loc, Value heads);
  /// Activations are f32. What a matrix product reads is rounded to the working type, and so are gate and up, the
  /// largest values that the backward pass reads.
  Value widen(Location loc, Value value);
  Value narrow(Location loc, Value value);
  /// The sum over all ranks.
  Value sumOverRanks(Location loc, Value value);
  Value buildSwiGLU(Location loc, Value gate, Value up);
  /// 1 + exp(min(−value, 80)), in f32: a sigmoid's reciprocal.
  Value buildBoundedExponential(Location loc, Value value);

  double getBalanceLoss() const { return options.balanceLoss.value_or(config.experts.balanceLoss); }
  /// Whether the layer has a router with a loss of its own.
  bool hasRouterLoss(int64_t layer) const {
    return config.isSparse(layer) && (getBalanceLoss() > 0 || options.zLoss > 0);
  }
  bool hasBias(int64_t layer) const { return config.isSparse(layer) && config.experts.correctionBias; }

  OpBuilder builder;
  const ModelConfig &config;
  ArrayRef<Parameter> parameters;
  const LossOptions &options;
  Type working;
  llvm::StringMap<Value> weights;
  Value tokenCount; ///< Null when all rows are tokens.
};
} // namespace

Location LossBuilder::locate(Component component, const Twine &name, std::optional<int64_t> layer) {
  MLIRContext *context = builder.getContext();
  return moe::withScope(NameLoc::get(builder.getStringAttr(name)),
                        moe::ScopeAttr::get(context, Phase::Forward, component, layer));
}

//===----------------------------------------------------------------------===//
// The function and its arguments
//===----------------------------------------------------------------------===//

static constexpr StringRef worldGrid = "world", expertGrid = "experts", vocabularyGrid = "vocab";

void LossBuilder::createGrids(ModuleOp module) {
  builder.setInsertionPointToEnd(module.getBody());
  auto add = [&](StringRef name, ArrayRef<int64_t> shape) {
    shard::GridOp::create(builder, NameLoc::get(builder.getStringAttr(name)), name, shape);
  };
  // The last axis divides; ranks along the one before it hold copies.
  auto addDivided = [&](StringRef name, int64_t parts) {
    if (parts == options.ranks)
      add(name, {parts});
    else
      add(name, {options.ranks / parts, parts});
  };
  if (options.ranks > 1)
    add(worldGrid, {options.ranks});
  if (!config.sparse.empty())
    addDivided(expertGrid, options.expertRanks);
  if (options.vocabularyRanks > 1)
    addDivided(vocabularyGrid, options.vocabularyRanks);
}

int64_t LossBuilder::getParts(const Parameter &parameter) const {
  return parameter.shard == Shard::Experts      ? options.expertRanks
         : parameter.shard == Shard::Vocabulary ? options.vocabularyRanks
                                                : 1;
}

FlatSymbolRefAttr LossBuilder::getVocabularyGrid() const {
  if (options.vocabularyRanks == 1)
    return {};
  return FlatSymbolRefAttr::get(builder.getContext(), vocabularyGrid);
}

FlatSymbolRefAttr LossBuilder::getGrid(const Parameter &parameter) const {
  if (parameter.shard == Shard::Vocabulary)
    return getVocabularyGrid();
  if (getParts(parameter) == 1)
    return {};
  return FlatSymbolRefAttr::get(builder.getContext(), expertGrid);
}

SmallVector<int64_t> LossBuilder::getPartShape(const Parameter &parameter) const {
  SmallVector<int64_t> shape = llvm::to_vector(ArrayRef<int64_t>(parameter.shape));
  shape[0] = llvm::divideCeil(shape[0], getParts(parameter));
  return shape;
}

func::FuncOp LossBuilder::createFunction(ModuleOp module) {
  MLIRContext *context = builder.getContext();
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Location> locations;
  auto add = [&](Type type, StringRef name, Attribute attribute, Location loc) {
    types.push_back(type);
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(name, attribute)));
    locations.push_back(loc);
  };
  for (moe::Role role : {moe::Role::Tokens, moe::Role::Labels, moe::Role::Positions, moe::Role::Starts})
    add(getTensor({options.tokens}, builder.getI32Type()), "moe.role", moe::RoleAttr::get(context, role),
        NameLoc::get(builder.getStringAttr(stringifyRole(role))));
  SmallVector<Type> results = {getTensor({}, builder.getF32Type())};
  for (const Parameter &parameter : parameters) {
    if (!parameter.isTrained) {
      ArrayRef<int64_t> shape = parameter.shape;
      add(getTensor(shape, builder.getF32Type()), "moe.buffer", builder.getStringAttr(parameter.name),
          locate(Component::Parameters, parameter.name, parameter.layer));
      results.push_back(getTensor(shape, builder.getI32Type()));
      continue;
    }
    double mean = parameter.isNorm() ? 1.0 : 0.0;
    double deviation = parameter.isNorm() ? 0.0 : config.initializerRange;
    SmallVector<int64_t> shape = getPartShape(parameter);
    std::optional<int64_t> rows; // Where the parts hold more.
    if (getParts(parameter) * shape[0] > parameter.shape[0])
      rows = parameter.shape[0];
    add(getTensor(shape), "moe.parameter",
        moe::ParameterAttr::get(context, parameter.name, /*decay=*/!parameter.isNorm(), mean, deviation,
                                getGrid(parameter), rows),
        locate(Component::Parameters, parameter.name, parameter.layer));
  }

  if (options.padded)
    add(getTensor({}, builder.getI32Type()), "moe.role", moe::RoleAttr::get(context, moe::Role::TokenCount),
        NameLoc::get(builder.getStringAttr("token_count")));
  if (options.takesLabelCount)
    add(results.front(), "moe.role", moe::RoleAttr::get(context, moe::Role::LabelCount),
        NameLoc::get(builder.getStringAttr("label_count")));
  builder.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(builder, NameLoc::get(builder.getStringAttr("loss")), "loss",
                                       builder.getFunctionType(types, results));
  function->setAttr("moe.batch", moe::BatchAttr::get(context, options.ranks, options.tokens, options.sequence));
  function.setAllArgAttrs(attributes);
  function.setResultAttr(0, "moe.role", moe::RoleAttr::get(context, moe::Role::Loss));
  for (unsigned index = 1; index < results.size(); ++index)
    function.setResultAttr(index, "moe.role", moe::RoleAttr::get(context, moe::Role::ExpertCounts));

  Block *body = &function.getBody().emplaceBlock();
  body->addArguments(types, locations);
  builder.setInsertionPointToStart(body);
  for (auto [parameter, argument] : llvm::zip_equal(parameters, body->getArguments().slice(4, parameters.size())))
    weights[parameter.name] = argument;
  if (options.padded)
    tokenCount = body->getArgument(4 + parameters.size());
  return function;
}

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Value LossBuilder::buildLinear(Location loc, Value input, Value weight) {
  return createMatmul(builder, loc, narrow(loc, input), weight, {/*transposeA=*/false, /*transposeB=*/true});
}

Value LossBuilder::buildNorm(Location loc, Value input, Value weight) {
  auto type = cast<RankedTensorType>(input.getType());
  Type inverse = getTensor(type.getShape().drop_back(), builder.getF32Type());
  return moe::RMSNormOp::create(builder, loc, TypeRange{type, inverse}, input, widen(loc, weight),
                                builder.getF32FloatAttr(float(config.rmsNormEpsilon)))
      .getOutput();
}

Value LossBuilder::splitHeads(Location loc, Value rows, int64_t heads) {
  SmallVector<ReassociationIndices> groups = {{0}, {1, 2}};
  Type element = cast<RankedTensorType>(rows.getType()).getElementType();
  return tensor::ExpandShapeOp::create(builder, loc, getTensor({options.tokens, heads, config.headDim}, element), rows,
                                       groups);
}

Value LossBuilder::joinHeads(Location loc, Value heads) {
  SmallVector<ReassociationIndices> groups = {{0}, {1, 2}};
  auto type = cast<RankedTensorType>(heads.getType());
  return tensor::CollapseShapeOp::create(
      builder, loc, getTensor({type.getDimSize(0), type.getDimSize(1) * type.getDimSize(2)}, type.getElementType()),
      heads, groups);
}

Value LossBuilder::widen(Location loc, Value value) {
  if (working.isF32())
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  return arith::ExtFOp::create(builder, loc, type.clone(builder.getF32Type()), value);
}

Value LossBuilder::narrow(Location loc, Value value) {
  if (working.isF32())
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  return arith::TruncFOp::create(builder, loc, type.clone(working), value);
}

Value LossBuilder::sumOverRanks(Location loc, Value value) {
  if (options.ranks == 1)
    return value;
  MLIRContext *context = builder.getContext();
  return shard::AllReduceOp::create(builder, loc, value.getType(), FlatSymbolRefAttr::get(context, worldGrid),
                                    shard::GridAxesAttr::get(context, ArrayRef<shard::GridAxis>{0}), value,
                                    shard::ReductionKindAttr::get(context, shard::ReductionKind::Sum));
}

Value LossBuilder::buildBoundedExponential(Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value one = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, 1.0f));
  Value bound = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, 80.0f));
  Value bounded = arith::MinimumFOp::create(builder, loc, arith::NegFOp::create(builder, loc, value), bound);
  return arith::AddFOp::create(builder, loc, one, math::ExpOp::create(builder, loc, bounded));
}

/// silu(gate) · up with silu(g) = g / (1 + exp(min(−g, 80))). The bound changes silu by less than |g| · 2e-35 and keeps
/// the exponential finite: backward multiplies it by quotients that underflow to 0, and 0 · inf would be NaN.
Value LossBuilder::buildSwiGLU(Location loc, Value gate, Value up) {
  Value g = widen(loc, gate), u = widen(loc, up);
  Value silu = arith::DivFOp::create(builder, loc, g, buildBoundedExponential(loc, g));
  return arith::MulFOp::create(builder, loc, silu, u);
}

//===----------------------------------------------------------------------===//
// The network
//===----------------------------------------------------------------------===//

Value LossBuilder::buildAttention(const Layer &layer) {
  auto at = [&](StringRef name) { return locate(Component::Attention, layer, name); };
  Value x = buildNorm(at("input_layernorm"), layer.getStream(), layer.getWeight("input_layernorm"));
  auto project = [&](StringRef name, int64_t heads) {
    return splitHeads(at(name), buildLinear(at(name), x, layer.getWeight("self_attn." + name)), heads);
  };
  auto turn = [&](StringRef norm, StringRef rotary, Value heads) -> Value {
    Value scaled = buildNorm(at(norm), heads, layer.getWeight("self_attn." + norm));
    return moe::RotaryOp::create(builder, at(rotary), scaled.getType(), scaled, layer.getCos(), layer.getSin(),
                                 /*inverse=*/false);
  };
  Value query = turn("q_norm", "q_rotary", project("q_proj", config.heads));
  Value key = turn("k_norm", "k_rotary", project("k_proj", config.keyValueHeads));
  Value value = project("v_proj", config.keyValueHeads);

  Type lse = getTensor({options.tokens, config.heads}, builder.getF32Type());
  FloatAttr scale = builder.getF32FloatAttr(float(1.0 / std::sqrt(double(config.headDim))));
  auto attention = moe::AttentionOp::create(builder, at("attention"), TypeRange{query.getType(), lse}, query, key,
                                            value, layer.getStarts(), scale);
  Value rows = joinHeads(at("attention"), attention.getOutput());
  Value output = buildLinear(at("o_proj"), rows, layer.getWeight("self_attn.o_proj"));
  return arith::AddFOp::create(builder, at("attention_residual"), layer.getStream(), output);
}

/// The balance loss of a layer, of its share of the step: `coefficient` when the loads are even. With micro-batches the
/// mean over them, of which each has the counts of all ranks; of sequences the mean over all of them.
Value LossBuilder::buildBalanceLoss(const Layer &layer, Value logits, moe::RouteOp route) {
  Location loc = locate(Component::Routing, layer, "balance_loss");
  Type scalar = getTensor({}, builder.getF32Type());
  if (options.balanceKind == BalanceKind::Sequence) {
    int64_t sequences = options.ranks * options.microBatches * (options.tokens / options.sequence);
    return moe::BalanceLossOp::create(builder, loc, scalar, logits, /*counts=*/Value(), route.getIds(),
                                      builder.getI64IntegerAttr(options.sequence), builder.getI64IntegerAttr(sequences),
                                      builder.getF32FloatAttr(float(getBalanceLoss())), route.getRouting());
  }
  Value counts = sumOverRanks(locate(Component::Routing, layer, "balance_counts"), route.getCounts());
  return moe::BalanceLossOp::create(builder, loc, scalar, logits, counts, /*ids=*/Value(), IntegerAttr(), IntegerAttr(),
                                    builder.getF32FloatAttr(float(getBalanceLoss() / double(options.microBatches))),
                                    route.getRouting());
}

Value LossBuilder::buildRouterLoss(const Layer &layer, Value logits, moe::RouteOp route) {
  Value loss;
  if (getBalanceLoss() > 0)
    loss = buildBalanceLoss(layer, logits, route);
  if (options.zLoss > 0) {
    Location loc = locate(Component::Routing, layer, "z_loss");
    Value small = moe::ZLossOp::create(builder, loc, getTensor({}, builder.getF32Type()), logits,
                                       builder.getI64IntegerAttr(options.ranks * options.microBatches * options.tokens),
                                       builder.getF32FloatAttr(float(options.zLoss)));
    loss = loss ? Value(arith::AddFOp::create(builder, loc, loss, small)) : small;
  }
  return loss;
}

LayerResults LossBuilder::buildExperts(const Layer &layer, Value x) {
  const ExpertConfig &experts = config.experts;
  auto routing = [&](StringRef name) { return locate(Component::Routing, layer, name); };
  auto dispatch = [&](StringRef name) { return locate(Component::Dispatch, layer, name); };
  auto expert = [&](StringRef name) { return locate(Component::Experts, layer, name); };
  MLIRContext *context = builder.getContext();

  Value logits = buildLinear(routing("router"), x, layer.getWeight("mlp.gate"));
  static_assert(static_cast<int>(Scoring::Sigmoid) == static_cast<int>(moe::Score::Sigmoid));
  auto choice = moe::RoutingAttr::get(context, experts.topK, static_cast<moe::Score>(experts.scoring), experts.groups,
                                      experts.keptGroups, experts.normalize,
                                      builder.getF32FloatAttr(static_cast<float>(experts.scale)));
  SmallVector<int64_t> slots = {options.tokens, experts.topK};
  Value bias = hasBias(layer.index) ? layer.getTensor("mlp.gate.e_score_correction_bias") : Value();
  auto route =
      moe::RouteOp::create(builder, routing("route"),
                           TypeRange{getTensor(slots, builder.getI32Type()), getTensor(slots, builder.getF32Type()),
                                     getTensor({experts.experts}, builder.getI32Type())},
                           logits, bias, layer.getTokenCount(), choice);

  auto grid = FlatSymbolRefAttr::get(context, expertGrid);
  auto planType = moe::PlanType::get(context, experts.experts, options.expertRanks, options.tokens, experts.topK);
  Value plan = moe::PlanOp::create(builder, routing("plan"), planType, route.getIds(), grid, moe::LeastLoadedAttr());
  auto rowsType = [&](int64_t columns) { return getTensor({ShapedType::kDynamic, columns}); };
  auto sent =
      moe::DispatchOp::create(builder, dispatch("dispatch"), rowsType(config.hiddenSize),
                              getTensor({ShapedType::kDynamic}, builder.getF32Type()), narrow(dispatch("dispatch"), x),
                              route.getWeights(), plan, /*index=*/Value(), grid);
  auto multiply = [&](StringRef name, Value rows, int64_t columns) -> Value {
    return moe::GroupedMatmulOp::create(builder, expert(name), rowsType(columns), rows,
                                        layer.getTensor("mlp.experts." + name), plan, /*helpers=*/Value(),
                                        /*index=*/Value(), /*transpose=*/true);
  };
  Value gateUp = multiply("gate_up_proj", sent.getRows(), 2 * experts.intermediateSize);
  Value hidden = moe::SwiGLUOp::create(builder, expert("swiglu"), rowsType(experts.intermediateSize), gateUp);
  Value output = multiply("down_proj", hidden, config.hiddenSize);
  Value scaled = moe::ScaleRowsOp::create(builder, expert("scale_rows"), output, sent.getRowValues());
  auto combine = moe::CombineOp::create(builder, dispatch("combine"), getTensor({options.tokens, config.hiddenSize}),
                                        Type(), scaled, Value(), plan, /*index=*/Value(), /*init=*/Value(),
                                        /*valuesInit=*/Value(), grid);
  LayerResults results;
  results.stream = widen(dispatch("combine"), combine.getResult());
  results.loss = buildRouterLoss(layer, logits, route);
  if (hasBias(layer.index))
    results.counts = route.getCounts();
  return results;
}

Value LossBuilder::buildSharedExpert(const Layer &layer, Value x) {
  auto at = [&](StringRef name) { return locate(Component::Experts, layer, name); };
  std::string prefix = config.experts.sharedGate ? "mlp.shared_expert." : "mlp.shared_experts.";
  auto multiply = [&](StringRef name, StringRef weight, Value input) {
    return narrow(at(name), buildLinear(at(name), input, layer.getWeight(prefix + weight)));
  };
  Value gate = multiply("shared_gate_proj", "gate_proj", x), up = multiply("shared_up_proj", "up_proj", x);
  Value hidden = buildSwiGLU(at("shared_swiglu"), gate, up);
  Value output = buildLinear(at("shared_down_proj"), hidden, layer.getWeight(prefix + "down_proj"));
  if (!config.experts.sharedGate)
    return output;
  // One sigmoid a token scales the output.
  Location loc = at("shared_expert_gate");
  Value logit = buildLinear(loc, x, layer.getWeight("mlp.shared_expert_gate"));
  auto column = cast<RankedTensorType>(logit.getType());
  Value one = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(column, 1.0f));
  Value sigmoid = arith::DivFOp::create(builder, loc, one, buildBoundedExponential(loc, logit));
  Value factors = tensor::CollapseShapeOp::create(builder, loc, getTensor({options.tokens}, builder.getF32Type()),
                                                  sigmoid, ArrayRef<ReassociationIndices>{{0, 1}});
  return moe::ScaleRowsOp::create(builder, loc, output, factors);
}

LayerResults LossBuilder::buildFeedForward(const Layer &layer, Value stream) {
  auto at = [&](StringRef name) { return locate(Component::Dense, layer, name); };
  Value x = buildNorm(at("post_attention_layernorm"), stream, layer.getWeight("post_attention_layernorm"));
  if (config.isSparse(layer.index)) {
    LayerResults results = buildExperts(layer, x);
    Location residual = locate(Component::Experts, layer, "experts_residual");
    if (config.experts.sharedIntermediateSize)
      results.stream = arith::AddFOp::create(builder, residual, results.stream, buildSharedExpert(layer, x));
    results.stream = arith::AddFOp::create(builder, residual, stream, results.stream);
    return results;
  }
  Value gate = narrow(at("gate_proj"), buildLinear(at("gate_proj"), x, layer.getWeight("mlp.gate_proj")));
  Value up = narrow(at("up_proj"), buildLinear(at("up_proj"), x, layer.getWeight("mlp.up_proj")));
  Value hidden = buildSwiGLU(at("swiglu"), gate, up);
  Value output = buildLinear(at("down_proj"), hidden, layer.getWeight("mlp.down_proj"));
  return {arith::AddFOp::create(builder, at("dense_residual"), stream, output), {}, {}};
}

LayerResults LossBuilder::buildLayer(const Layer &layer) { return buildFeedForward(layer, buildAttention(layer)); }

LayerResults LossBuilder::buildCheckpointed(const Layer &layer) {
  Location loc = locate(Component::Dense, layer, "checkpoint");
  SmallVector<Type> types = {layer.getStream().getType()};
  if (hasRouterLoss(layer.index))
    types.push_back(getTensor({}, builder.getF32Type()));
  if (hasBias(layer.index))
    types.push_back(getTensor({config.experts.experts}, builder.getI32Type()));
  auto checkpoint = moe::CheckpointOp::create(builder, loc, types, layer.inputs);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&checkpoint.getBody().front());
  LayerResults inner = buildLayer({layer.index, layer.parameters, checkpoint.getBody().getArguments()});
  moe::YieldOp::create(builder, loc, inner.list());
  auto next = checkpoint->getResults().begin();
  LayerResults results = {*next++, {}, {}};
  if (inner.loss)
    results.loss = *next++;
  if (inner.counts)
    results.counts = *next++;
  return results;
}

Value LossBuilder::buildLayers(Value stream, Value cos, Value sin, Value starts, SmallVector<Value> &losses,
                               SmallVector<Value> &counts) {
  for (int64_t index = 0; index < config.layers; ++index) {
    auto isMember = [&](const Parameter &parameter) { return parameter.layer == index; };
    ArrayRef<Parameter> members = parameters.drop_until(isMember).take_while(isMember);
    SmallVector<Value> inputs = {stream, cos, sin, starts};
    for (const Parameter &member : members)
      inputs.push_back(weights.lookup(member.name));
    if (tokenCount && config.isSparse(index))
      inputs.push_back(tokenCount);
    Layer layer = {index, members, inputs};
    LayerResults results = options.checkpoint == Checkpoint::Layer ? buildCheckpointed(layer) : buildLayer(layer);
    stream = results.stream;
    if (results.loss)
      losses.push_back(results.loss);
    if (results.counts)
      counts.push_back(results.counts);
  }
  return stream;
}

Value LossBuilder::buildVocabularyLoss(Value stream, Value labels) {
  auto at = [&](StringRef name) { return locate(Component::Vocabulary, name); };
  Value count;
  if (options.takesLabelCount)
    count = labels.getParentBlock()->getArguments().back();
  else
    count =
        sumOverRanks(at("count_labels"), moe::CountLabelsOp::create(builder, at("count_labels"), labels, ignoreIndex));
  Value x = buildNorm(at("norm"), stream, getWeight("model.norm"));
  Value table = getWeight(config.tiedEmbedding ? "model.embed_tokens" : "lm_head");
  auto vocabulary =
      moe::VocabularyAttr::get(builder.getContext(), config.vocabularySize, ignoreIndex,
                               static_cast<float>(options.labelSmoothing), static_cast<float>(options.vocabularyZLoss),
                               static_cast<float>(options.logitSoftcap.value_or(config.logitSoftcap)));
  Type rows = getTensor({options.tokens}, builder.getF32Type());
  auto loss = moe::VocabLossOp::create(builder, at("lm_head"), rows, rows, narrow(at("lm_head"), x), table, labels,
                                       /*bias=*/Value(), getVocabularyGrid(), vocabulary);
  return moe::MeanLossOp::create(builder, at("mean_loss"), loss.getLosses(), /*weights=*/Value(), count);
}

OwningOpRef<ModuleOp> LossBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  createGrids(*module);
  func::FuncOp function = createFunction(*module);
  Value tokens = function.getArgument(0), labels = function.getArgument(1);
  Value positions = function.getArgument(2), starts = function.getArgument(3);

  Type phases = getTensor({options.tokens, config.headDim / 2}, builder.getF32Type());
  auto rotary =
      moe::RotaryTableOp::create(builder, locate(Component::Attention, "rotary_table"), TypeRange{phases, phases},
                                 positions, builder.getF64FloatAttr(config.ropeTheta));
  Location embedding = locate(Component::Embedding, "embed_tokens");
  FlatSymbolRefAttr grid = getVocabularyGrid();
  Value rows = moe::EmbeddingOp::create(builder, embedding, getTensor({options.tokens, config.hiddenSize}),
                                        getWeight("model.embed_tokens"), tokens, grid,
                                        grid ? builder.getI64IntegerAttr(config.vocabularySize) : IntegerAttr());
  SmallVector<Value> losses, results;
  Value stream = buildLayers(widen(embedding, rows), rotary.getCos(), rotary.getSin(), starts, losses, results);
  Value loss = buildVocabularyLoss(stream, labels);
  for (Value more : losses)
    loss = arith::AddFOp::create(builder, locate(Component::Routing, "add_router_loss"), loss, more);
  results.insert(results.begin(), loss);
  func::ReturnOp::create(builder, function.getLoc(), results);
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void mlir::plateau::importer::registerLossDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect, moe::MoEDialect,
                  shard::ShardDialect, tensor::TensorDialect>();
}

OwningOpRef<ModuleOp> mlir::plateau::importer::buildLoss(MLIRContext *context, const ModelConfig &config,
                                                         ArrayRef<Parameter> parameters, const LossOptions &options) {
  context->loadAllAvailableDialects();
  return LossBuilder(context, config, parameters, options).build();
}
