//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/Config.h"
#include "Fields.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"
#include <cmath>
#include <limits>

using namespace mlir::plateau::importer;
using llvm::StringRef;
using llvm::Twine;

/// Row and column counts are i32 in the ABI of kernels.
static constexpr int64_t maxSize = std::numeric_limits<int32_t>::max();
/// Far beyond any model, and the program of so many layers still fits in memory.
static constexpr int64_t maxLayers = 4096;

/// Fields that say nothing about the training step.
static bool isIrrelevant(StringRef name) {
  return llvm::StringSwitch<bool>(name)
      // Who wrote the file, with what, and how the weights are stored.
      .Cases({"_name_or_path", "auto_map", "dtype", "torch_dtype", "transformers_version"}, true)
      // Text generation.
      .Cases({"bos_token_id", "eos_token_id", "pad_token_id", "use_cache"}, true)
      // Windows of attention, unused while use_sliding_window is false.
      .Cases({"max_window_layers", "sliding_window"}, true)
      // The factor of the loss that evens out experts, unused while output_router_logits is false.
      .Cases({"router_aux_loss_coef"}, true)
      .Default(false);
}

/// The class name that goes with a model type; empty for a type this version does not import.
static StringRef getArchitecture(StringRef modelType) {
  return llvm::StringSwitch<StringRef>(modelType)
      .Case("qwen3", "Qwen3ForCausalLM")
      .Case("qwen3_moe", "Qwen3MoeForCausalLM")
      .Default("");
}

static void checkArchitecture(Fields &fields, StringRef modelType) {
  StringRef architecture = getArchitecture(modelType);
  if (architecture.empty())
    return fields.wrong("model_type", "\"qwen3\" or \"qwen3_moe\", the models this version imports");
  fields.array("architectures", "[\"" + architecture + "\"], which goes with model_type \"" + modelType + "\"",
               [&](const JsonValue &element) {
                 const auto *name = element.as<std::string>();
                 return name && *name == architecture;
               });
}

/// Refuses what would change the step: each of these fields has one value that this version computes.
static void checkUnsupported(Fields &fields, StringRef modelType, int64_t layers) {
  if (fields.string("hidden_act", "silu") != "silu")
    fields.wrong("hidden_act", "\"silu\"");
  if (fields.boolean("attention_bias", false))
    fields.wrong("attention_bias", "false: biases are not imported");
  fields.number("attention_dropout", [](double value) { return value == 0; }, "0: dropout is not imported", 0);
  if (modelType != "qwen3_moe" && fields.boolean("output_router_logits", false))
    fields.wrong("output_router_logits", "false for model_type \"" + modelType + "\", which has no routers");
  if (fields.boolean("use_sliding_window", false))
    fields.wrong("use_sliding_window", "false: attention windows are not imported");
  for (StringRef name : {"rope_scaling", "rope_parameters"})
    if (const JsonValue *value = fields.find(name); value && !value->isNull())
      fields.wrong(name, "null: rotary embeddings are imported unscaled, with rope_theta");
  int64_t types = 0;
  fields.array("layer_types", "\"full_attention\" for each of " + Twine(layers) + " layers",
               [&](const JsonValue &element) {
                 const auto *type = element.as<std::string>();
                 return type && *type == "full_attention" && ++types <= layers;
               });
  if (types && types < layers)
    fields.wrong("layer_types",
                 "as long as there are layers: it has " + Twine(types) + " entries for " + Twine(layers));
}

/// Which layers have experts: those of every `decoder_sparse_step`, but for the first dense ones and those listed.
static std::vector<bool> readSparseLayers(Fields &fields, int64_t layers) {
  int64_t sparseStep = fields.integer("decoder_sparse_step", 1, maxSize, 1);
  int64_t firstDense = fields.integer("first_k_dense_replace", 0, maxSize, 0);
  std::vector<bool> listed(layers), sparse(layers);
  fields.array("mlp_only_layers", "an array of layer numbers in 0.." + Twine(layers - 1),
               [&](const JsonValue &element) {
                 const auto *layer = element.as<int64_t>();
                 bool inRange = layer && *layer >= 0 && *layer < layers;
                 if (inRange)
                   listed[*layer] = true;
                 return inRange;
               });
  for (int64_t layer = firstDense; layer < layers; ++layer)
    sparse[layer] = (layer + 1) % sparseStep == 0 && !listed[layer];
  return sparse;
}

static Scoring readScoring(Fields &fields) {
  std::string name = fields.string("scoring_func", "softmax");
  if (name == "sigmoid")
    return Scoring::Sigmoid;
  if (name == "top_k_softmax")
    return Scoring::TopKSoftmax;
  if (name != "softmax")
    fields.wrong("scoring_func", "\"softmax\", \"top_k_softmax\" or \"sigmoid\"");
  return Scoring::Softmax;
}

static void readExperts(Fields &fields, ModelConfig &config) {
  ExpertConfig &experts = config.experts;
  experts.experts = fields.integer("num_experts", 0, maxSize, 128);
  std::vector<bool> sparse = readSparseLayers(fields, config.layers);
  // What describes experts is checked even when no layer has any: the file is then wrong all the same.
  int64_t most = std::max<int64_t>(experts.experts, 1);
  experts.topK = fields.integer("num_experts_per_tok", 1, most, std::min<int64_t>(8, most));
  experts.intermediateSize = fields.integer("moe_intermediate_size", 1, maxSize, 768);
  experts.normalize = fields.boolean("norm_topk_prob", false);
  experts.scoring = readScoring(fields);
  experts.groups = fields.integer("n_group", 1, most, 1);
  experts.keptGroups = fields.integer("topk_group", 1, std::max<int64_t>(experts.groups, 1), 1);
  if (fields.valid() && experts.experts % experts.groups)
    fields.wrong("n_group", "a divisor of num_experts, which is " + Twine(experts.experts));
  if (fields.valid() && experts.experts / experts.groups * experts.keptGroups < experts.topK && experts.experts > 0)
    fields.wrong("topk_group",
                 "large enough that the groups kept have num_experts_per_tok = " + Twine(experts.topK) + " experts");
  experts.scale = fields.number(
      "routed_scaling_factor",
      [](double value) {
        return value >= std::numeric_limits<float>::min() && value <= std::numeric_limits<float>::max();
      },
      "a number > 0 that fits f32", 1);
  // Groups are scored by their two best experts, as noaux_tc does. DeepSeek's greedy method has no groups, and its
  // group_limited_greedy scores them by their best one.
  std::string method = fields.string("topk_method", "");
  if (!method.empty() && method != "greedy" && method != "noaux_tc")
    fields.wrong("topk_method", "\"greedy\" or \"noaux_tc\"");
  if (method == "greedy" && experts.groups > 1)
    fields.wrong("topk_method", "\"noaux_tc\" where n_group is more than 1, or left out");
  experts.correctionBias = method == "noaux_tc";
  if (fields.boolean("output_router_logits", false))
    experts.balanceLoss = fields.number(
        "router_aux_loss_coef", [](double value) { return value >= 0 && value <= std::numeric_limits<float>::max(); },
        "a number >= 0 that fits f32", 0.001);
  experts.sharedIntermediateSize = fields.integer("shared_expert_intermediate_size", 0, maxSize, 0);
  experts.sharedGate = experts.sharedIntermediateSize > 0;
  if (int64_t shared = fields.integer("n_shared_experts", 0, maxSize, 0)) {
    if (experts.sharedGate)
      fields.wrong("n_shared_experts", "0 beside shared_expert_intermediate_size: a layer has one shared expert");
    std::optional<int64_t> width = llvm::checkedMul(shared, experts.intermediateSize);
    if (!width || *width > maxSize)
      fields.wrong("n_shared_experts", "small enough that the shared experts' width fits 31 bits");
    experts.sharedIntermediateSize = width.value_or(0);
  }
  if (experts.experts > 0 && llvm::is_contained(sparse, true))
    config.sparse = std::move(sparse);
}

static int64_t readHeadDim(Fields &fields, StringRef modelType, const ModelConfig &config) {
  const JsonValue *value = fields.find("head_dim");
  if (value && !value->isNull()) {
    int64_t headDim = fields.integer("head_dim", 1, maxSize);
    if (headDim % 2)
      fields.wrong("head_dim", "even");
    return headDim;
  }
  if (modelType != "qwen3_moe")
    fields.wrong("head_dim", "given for model_type \"qwen3\"");
  else if (config.hiddenSize % (2 * config.heads))
    fields.wrong("head_dim", "given and even, since hidden_size / num_attention_heads, " + Twine(config.hiddenSize) +
                                 " / " + Twine(config.heads) + ", is not an even integer");
  return config.hiddenSize / config.heads;
}

llvm::Expected<ModelConfig> mlir::plateau::importer::parseConfig(const SourceText &source,
                                                                 llvm::raw_ostream &warnings) {
  llvm::Expected<JsonValue> root = parseJsonObject(source);
  if (!root)
    return root.takeError();
  Fields fields(source, *root);
  std::string modelType = fields.string("model_type");
  checkArchitecture(fields, modelType);

  ModelConfig config;
  config.vocabularySize = fields.integer("vocab_size", 1, maxSize);
  config.hiddenSize = fields.integer("hidden_size", 1, maxSize);
  config.intermediateSize = fields.integer("intermediate_size", 1, maxSize);
  config.layers = fields.integer("num_hidden_layers", 1, maxLayers);
  config.heads = fields.integer("num_attention_heads", 1, maxSize);
  config.keyValueHeads = fields.integer("num_key_value_heads", 1, maxSize);
  if (fields.valid() && config.heads % config.keyValueHeads)
    fields.wrong("num_key_value_heads", "a divisor of num_attention_heads, which is " + Twine(config.heads));
  config.headDim = readHeadDim(fields, modelType, config);
  if (int64_t positions = fields.integer("max_position_embeddings", 1, maxSize, 0))
    config.maxPositions = positions;

  // Both are constants of f32 arithmetic.
  auto fitsF32 = [](double value) { return value <= std::numeric_limits<float>::max(); };
  config.rmsNormEpsilon = fields.number(
      "rms_norm_eps", [&](double value) { return value >= 0 && fitsF32(value); }, "a number >= 0 that fits f32", 1e-6);
  config.initializerRange = fields.number(
      "initializer_range", [&](double value) { return value >= 0 && fitsF32(value); }, "a number >= 0 that fits f32",
      0.02);
  config.ropeTheta = fields.number(
      "rope_theta", [&](double value) { return value >= std::numeric_limits<float>::min() && fitsF32(value); },
      "a number > 0 that fits f32", 10000);
  config.tiedEmbedding = fields.boolean("tie_word_embeddings", false);
  config.logitSoftcap = fields.number(
      "final_logit_softcapping",
      [&](double value) { return value >= std::numeric_limits<float>::min() && fitsF32(value); },
      "a number > 0 that fits f32, or null", 0);

  checkUnsupported(fields, modelType, config.layers);
  if (modelType == "qwen3_moe")
    readExperts(fields, config);
  if (llvm::Error error = fields.takeError())
    return error;
  for (const JsonMember *member : fields.unread())
    if (!isIrrelevant(member->key))
      warnings << source.locate(member->begin) << ": warning: field '"
               << source.excerpt(member->begin + 1, member->end - 1) << "' is not known and is ignored\n";
  return config;
}
