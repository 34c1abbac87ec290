//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/Model.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <set>

using namespace mlir::plateau::importer;
using llvm::StringRef;
using llvm::Twine;

StringRef mlir::plateau::importer::getName(ParameterGroup group) {
  switch (group) {
  case ParameterGroup::Embedding:
    return "embedding";
  case ParameterGroup::LmHead:
    return "lm_head";
  case ParameterGroup::Attention:
    return "attention";
  case ParameterGroup::Router:
    return "router";
  case ParameterGroup::Experts:
    return "experts";
  case ParameterGroup::SharedExperts:
    return "shared_experts";
  case ParameterGroup::DenseFfn:
    return "dense_ffn";
  case ParameterGroup::Norms:
    return "norms";
  }
  llvm_unreachable("all groups are named");
}

int64_t Parameter::getElements() const {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

/// The bytes of all tensors in f32, or none when they do not fit 63 bits.
static std::optional<int64_t> countBytes(llvm::ArrayRef<Parameter> parameters) {
  int64_t total = 0;
  for (const Parameter &parameter : parameters) {
    std::optional<int64_t> bytes = sizeof(float);
    for (int64_t size : parameter.shape)
      if (bytes)
        bytes = llvm::checkedMul(*bytes, size);
    std::optional<int64_t> sum = bytes ? llvm::checkedAdd(total, *bytes) : std::nullopt;
    if (!sum)
      return std::nullopt;
    total = *sum;
  }
  return total;
}

llvm::Expected<std::vector<Parameter>> mlir::plateau::importer::listParameters(const ModelConfig &config) {
  std::vector<Parameter> parameters;
  auto add = [&](const Twine &name, llvm::ArrayRef<int64_t> shape, ParameterGroup group,
                 std::optional<int64_t> layer = std::nullopt) {
    parameters.push_back({name.str() + ".weight", llvm::SmallVector<int64_t, 3>(shape), group, layer});
  };
  const ExpertConfig &experts = config.experts;
  int64_t hidden = config.hiddenSize, intermediate = config.intermediateSize, headDim = config.headDim;
  int64_t query = config.heads * headDim, keyValue = config.keyValueHeads * headDim;

  add("model.embed_tokens", {config.vocabularySize, hidden}, ParameterGroup::Embedding);
  parameters.back().shard = Shard::Vocabulary;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    auto addToLayer = [&](const Twine &name, llvm::ArrayRef<int64_t> shape, ParameterGroup group) {
      add("model.layers." + Twine(layer) + "." + name, shape, group, layer);
    };
    addToLayer("input_layernorm", {hidden}, ParameterGroup::Norms);
    addToLayer("self_attn.q_proj", {query, hidden}, ParameterGroup::Attention);
    addToLayer("self_attn.k_proj", {keyValue, hidden}, ParameterGroup::Attention);
    addToLayer("self_attn.v_proj", {keyValue, hidden}, ParameterGroup::Attention);
    addToLayer("self_attn.o_proj", {hidden, query}, ParameterGroup::Attention);
    addToLayer("self_attn.q_norm", {headDim}, ParameterGroup::Norms);
    addToLayer("self_attn.k_norm", {headDim}, ParameterGroup::Norms);
    addToLayer("post_attention_layernorm", {hidden}, ParameterGroup::Norms);
    if (!config.isSparse(layer)) {
      addToLayer("mlp.gate_proj", {intermediate, hidden}, ParameterGroup::DenseFfn);
      addToLayer("mlp.up_proj", {intermediate, hidden}, ParameterGroup::DenseFfn);
      addToLayer("mlp.down_proj", {hidden, intermediate}, ParameterGroup::DenseFfn);
      continue;
    }
    addToLayer("mlp.gate", {experts.experts, hidden}, ParameterGroup::Router);
    if (experts.correctionBias)
      parameters.push_back({("model.layers." + Twine(layer) + ".mlp.gate.e_score_correction_bias").str(),
                            {experts.experts},
                            ParameterGroup::Router,
                            layer,
                            Shard::None,
                            /*isTrained=*/false});
    // All experts in one tensor, gate above up, under the names of transformers.
    auto addExperts = [&](StringRef name, int64_t out, int64_t in) {
      parameters.push_back({("model.layers." + Twine(layer) + ".mlp.experts." + name).str(),
                            {experts.experts, out, in},
                            ParameterGroup::Experts,
                            layer,
                            Shard::Experts});
    };
    addExperts("gate_up_proj", 2 * experts.intermediateSize, hidden);
    addExperts("down_proj", hidden, experts.intermediateSize);
    if (int64_t width = experts.sharedIntermediateSize) {
      std::string shared = experts.sharedGate ? "mlp.shared_expert." : "mlp.shared_experts.";
      addToLayer(shared + "gate_proj", {width, hidden}, ParameterGroup::SharedExperts);
      addToLayer(shared + "up_proj", {width, hidden}, ParameterGroup::SharedExperts);
      addToLayer(shared + "down_proj", {hidden, width}, ParameterGroup::SharedExperts);
      if (experts.sharedGate)
        addToLayer("mlp.shared_expert_gate", {1, hidden}, ParameterGroup::SharedExperts);
    }
  }
  add("model.norm", {hidden}, ParameterGroup::Norms);
  if (!config.tiedEmbedding) {
    add("lm_head", {config.vocabularySize, hidden}, ParameterGroup::LmHead);
    parameters.back().shard = Shard::Vocabulary;
  }

  if (!countBytes(parameters))
    return llvm::createStringError("the sizes make a model whose parameters take more than 2^63 bytes in f32");
  return parameters;
}

ParameterCounts mlir::plateau::importer::countParameters(const ModelConfig &config,
                                                         llvm::ArrayRef<Parameter> parameters) {
  ParameterCounts counts;
  std::set<int64_t> routed;
  for (const Parameter &parameter : parameters) {
    counts.total += parameter.getElements();
    counts.byGroup[size_t(parameter.group)] += parameter.getElements();
    if (parameter.group == ParameterGroup::Router && parameter.layer)
      routed.insert(*parameter.layer);
  }
  // A token makes use of all but the experts it does not choose.
  const ExpertConfig &experts = config.experts;
  counts.activePerToken = counts.total;
  if (experts.experts > 0)
    counts.activePerToken -=
        counts.byGroup[size_t(ParameterGroup::Experts)] / experts.experts * (experts.experts - experts.topK);
  counts.moeLayers = routed.size();
  return counts;
}

void mlir::plateau::importer::printCountsAsJson(llvm::raw_ostream &os, const ParameterCounts &counts) {
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("total", counts.total);
    json.attributeObject("breakdown", [&] {
      for (ParameterGroup group : allParameterGroups)
        json.attribute(getName(group), counts.byGroup[size_t(group)]);
    });
    json.attribute("active_per_token", counts.activePerToken);
    json.attribute("moe_layers", counts.moeLayers);
  });
  os << "\n";
}

void mlir::plateau::importer::printCounts(llvm::raw_ostream &os, const ParameterCounts &counts) {
  auto row = [&](StringRef name, int64_t count) { os << llvm::formatv("{0,-18}{1,26:N}\n", name, count); };
  for (ParameterGroup group : allParameterGroups)
    row(getName(group), counts.byGroup[size_t(group)]);
  row("total", counts.total);
  row("active per token", counts.activePerToken);
  row("layers with experts", counts.moeLayers);
}
