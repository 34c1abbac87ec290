//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/BuildLoss.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Interfaces/Matmul.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CheckedArithmetic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::importer;

/// Labels that do not count in the loss carry this number, as in PyTorch.
static constexpr int32_t ignoreIndex = -100;

namespace {
/// One decoder layer: its parameters, and the values it reads. `inputs` are the residual stream, cosines, sines, starts
/// of documents, then the parameters.
struct Layer {
  int64_t index;
  ArrayRef<Parameter> parameters;
  ValueRange inputs;

  Value getStream() const { return inputs[0]; }
  Value getCos() const { return inputs[1]; }
  Value getSin() const { return inputs[2]; }
  Value getStarts() const { return inputs[3]; }
  /// The value of "model.layers.<index>.<name>.weight".
  Value getWeight(const Twine &name) const {
    std::string wanted = ("model.layers." + Twine(index) + "." + name + ".weight").str();
    const Parameter *found =
        llvm::find_if(parameters, [&](const Parameter &parameter) { return parameter.name == wanted; });
    return inputs[4 + (found - parameters.begin())];
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

  // The function and its arguments.
  func::FuncOp createFunction(ModuleOp module);
  Value getWeight(StringRef name) { return weights.lookup((name + ".weight").str()); }

  // The parts of the network.
  Value buildLayers(Value stream, Value cos, Value sin, Value starts);
  Value buildCheckpointed(const Layer &layer);
  Value buildLayer(const Layer &layer);
  Value buildAttention(const Layer &layer);
  Value buildFeedForward(const Layer &layer, Value stream);
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
  Value buildSwiGLU(Location loc, Value gate, Value up);

  OpBuilder builder;
  const ModelConfig &config;
  ArrayRef<Parameter> parameters;
  const LossOptions &options;
  Type working;
  llvm::StringMap<Value> weights;
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
  for (const Parameter &parameter : parameters) {
    double mean = parameter.isNorm() ? 1.0 : 0.0;
    double deviation = parameter.isNorm() ? 0.0 : config.initializerRange;
    add(getTensor(parameter.shape), "moe.parameter",
        moe::ParameterAttr::get(context, parameter.name, /*decay=*/!parameter.isNorm(), mean, deviation),
        locate(Component::Parameters, parameter.name, parameter.layer));
  }

  Type loss = getTensor({}, builder.getF32Type());
  builder.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(builder, NameLoc::get(builder.getStringAttr("loss")), "loss",
                                       builder.getFunctionType(types, loss));
  function->setAttr("moe.batch", moe::BatchAttr::get(context, options.ranks, options.tokens, options.sequence));
  function.setAllArgAttrs(attributes);
  function.setResultAttr(0, "moe.role", moe::RoleAttr::get(context, moe::Role::Loss));

  Block *body = &function.getBody().emplaceBlock();
  body->addArguments(types, locations);
  builder.setInsertionPointToStart(body);
  for (auto [parameter, argument] : llvm::zip_equal(parameters, body->getArguments().take_back(parameters.size())))
    weights[parameter.name] = argument;
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

/// silu(gate) · up with silu(g) = g / (1 + exp(min(−g, 80))). The bound changes silu by less than |g| · 2e-35 and keeps
/// the exponential finite: backward multiplies it by quotients that underflow to 0, and 0 · inf would be NaN.
Value LossBuilder::buildSwiGLU(Location loc, Value gate, Value up) {
  Value g = widen(loc, gate), u = widen(loc, up);
  auto type = cast<RankedTensorType>(g.getType());
  Value one = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, 1.0f));
  Value bound = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, 80.0f));
  Value bounded = arith::MinimumFOp::create(builder, loc, arith::NegFOp::create(builder, loc, g), bound);
  Value exponential = math::ExpOp::create(builder, loc, bounded);
  Value silu = arith::DivFOp::create(builder, loc, g, arith::AddFOp::create(builder, loc, one, exponential));
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

Value LossBuilder::buildFeedForward(const Layer &layer, Value stream) {
  auto at = [&](StringRef name) { return locate(Component::Dense, layer, name); };
  Value x = buildNorm(at("post_attention_layernorm"), stream, layer.getWeight("post_attention_layernorm"));
  Value gate = narrow(at("gate_proj"), buildLinear(at("gate_proj"), x, layer.getWeight("mlp.gate_proj")));
  Value up = narrow(at("up_proj"), buildLinear(at("up_proj"), x, layer.getWeight("mlp.up_proj")));
  Value hidden = buildSwiGLU(at("swiglu"), gate, up);
  Value output = buildLinear(at("down_proj"), hidden, layer.getWeight("mlp.down_proj"));
  return arith::AddFOp::create(builder, at("dense_residual"), stream, output);
}

Value LossBuilder::buildLayer(const Layer &layer) { return buildFeedForward(layer, buildAttention(layer)); }

Value LossBuilder::buildCheckpointed(const Layer &layer) {
  Location loc = locate(Component::Dense, layer, "checkpoint");
  auto checkpoint = moe::CheckpointOp::create(builder, loc, TypeRange(layer.getStream().getType()), layer.inputs);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&checkpoint.getBody().front());
  Value stream = buildLayer({layer.index, layer.parameters, checkpoint.getBody().getArguments()});
  moe::YieldOp::create(builder, loc, stream);
  return checkpoint->getResult(0);
}

Value LossBuilder::buildLayers(Value stream, Value cos, Value sin, Value starts) {
  for (int64_t index = 0; index < config.layers; ++index) {
    auto isMember = [&](const Parameter &parameter) { return parameter.layer == index; };
    ArrayRef<Parameter> members = parameters.drop_until(isMember).take_while(isMember);
    SmallVector<Value> inputs = {stream, cos, sin, starts};
    for (const Parameter &member : members)
      inputs.push_back(weights.lookup(member.name));
    Layer layer = {index, members, inputs};
    stream = options.checkpoint == Checkpoint::Layer ? buildCheckpointed(layer) : buildLayer(layer);
  }
  return stream;
}

Value LossBuilder::buildVocabularyLoss(Value stream, Value labels) {
  auto at = [&](StringRef name) { return locate(Component::Vocabulary, name); };
  Value count = moe::CountLabelsOp::create(builder, at("count_labels"), labels, ignoreIndex);
  Value x = buildNorm(at("norm"), stream, getWeight("model.norm"));
  Value table = getWeight(config.tiedEmbedding ? "model.embed_tokens" : "lm_head");
  Value logits = buildLinear(at("lm_head"), x, table);
  Value logProbs = moe::LogSoftmaxOp::create(builder, at("log_softmax"), logits);
  return moe::NLLOp::create(builder, at("nll"), logProbs, labels, count, ignoreIndex);
}

OwningOpRef<ModuleOp> LossBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  func::FuncOp function = createFunction(*module);
  Value tokens = function.getArgument(0), labels = function.getArgument(1);
  Value positions = function.getArgument(2), starts = function.getArgument(3);

  Type phases = getTensor({options.tokens, config.headDim / 2}, builder.getF32Type());
  auto rotary =
      moe::RotaryTableOp::create(builder, locate(Component::Attention, "rotary_table"), TypeRange{phases, phases},
                                 positions, builder.getF64FloatAttr(config.ropeTheta));
  Location embedding = locate(Component::Embedding, "embed_tokens");
  Value rows = moe::EmbeddingOp::create(builder, embedding, getTensor({options.tokens, config.hiddenSize}),
                                        getWeight("model.embed_tokens"), tokens);
  Value stream = buildLayers(widen(embedding, rows), rotary.getCos(), rotary.getSin(), starts);
  Value loss = buildVocabularyLoss(stream, labels);
  func::ReturnOp::create(builder, function.getLoc(), loss);
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

llvm::Error mlir::plateau::importer::checkLossOptions(const ModelConfig &config, const LossOptions &options) {
  if (config.maxPositions && options.sequence > *config.maxPositions)
    return llvm::createStringError("sequences of " + Twine(options.sequence) +
                                   " tokens are longer than field 'max_position_embeddings' allows, which is " +
                                   Twine(*config.maxPositions));
  // Every value of the program is no larger than this many f32 a token.
  int64_t width = std::max({config.vocabularySize, config.hiddenSize, config.intermediateSize});
  std::optional<int64_t> heads = llvm::checkedMul(config.heads, config.headDim);
  std::optional<int64_t> elements = heads ? llvm::checkedMul(options.tokens, std::max(width, *heads)) : std::nullopt;
  if (!elements || !llvm::checkedMul<int64_t>(*elements, sizeof(float)))
    return llvm::createStringError(Twine(options.tokens) + " tokens make values of more than 2^63 bytes");
  return llvm::Error::success();
}

void mlir::plateau::importer::registerLossDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect, moe::MoEDialect,
                  tensor::TensorDialect>();
}

OwningOpRef<ModuleOp> mlir::plateau::importer::buildLoss(MLIRContext *context, const ModelConfig &config,
                                                         ArrayRef<Parameter> parameters, const LossOptions &options) {
  context->loadAllAvailableDialects();
  return LossBuilder(context, config, parameters, options).build();
}
