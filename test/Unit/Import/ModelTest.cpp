//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/Model.h"
#include <gtest/gtest.h>

using namespace mlir::plateau::importer;

namespace {
ModelConfig small() {
  ModelConfig config;
  config.vocabularySize = 7;
  config.hiddenSize = 3;
  config.intermediateSize = 5;
  config.layers = 2;
  config.heads = 4;
  config.keyValueHeads = 2;
  config.headDim = 6;
  return config;
}

/// The second of the two layers has 4 experts, 5 wide, of which a token takes 3.
ModelConfig mixture() {
  ModelConfig config = small();
  config.sparse = {false, true};
  config.experts.experts = 4;
  config.experts.topK = 3;
  config.experts.intermediateSize = 5;
  return config;
}

ParameterCounts countAll(const ModelConfig &config) {
  return countParameters(config, llvm::cantFail(listParameters(config)));
}

const Parameter *find(llvm::ArrayRef<Parameter> parameters, llvm::StringRef name) {
  const Parameter *found =
      llvm::find_if(parameters, [&](const Parameter &parameter) { return parameter.name == name; });
  return found == parameters.end() ? nullptr : found;
}

int64_t count(const ParameterCounts &counts, ParameterGroup group) { return counts.byGroup[size_t(group)]; }
} // namespace

TEST(Model, ListsTheCheckpointInItsOrder) {
  std::vector<Parameter> parameters = llvm::cantFail(listParameters(small()));
  ASSERT_EQ(parameters.size(), 1 + 2 * 11 + 2u);
  EXPECT_EQ(parameters[0].name, "model.embed_tokens.weight");
  const char *layer[] = {"input_layernorm",  "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                         "self_attn.o_proj", "self_attn.q_norm", "self_attn.k_norm", "post_attention_layernorm",
                         "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
  for (int index = 0; index < 11; ++index) {
    EXPECT_EQ(parameters[12 + index].name, "model.layers.1." + std::string(layer[index]) + ".weight");
    EXPECT_EQ(parameters[12 + index].layer, 1);
  }
  EXPECT_EQ(parameters[23].name, "model.norm.weight");
  EXPECT_EQ(parameters[24].name, "lm_head.weight");
  EXPECT_EQ(parameters[2].shape, (llvm::SmallVector<int64_t, 2>{24, 3}));
  EXPECT_EQ(parameters[5].shape, (llvm::SmallVector<int64_t, 2>{3, 24}));
}

TEST(Model, CountsByGroup) {
  ParameterCounts counts = countAll(small());
  EXPECT_EQ(count(counts, ParameterGroup::Embedding), 7 * 3);
  EXPECT_EQ(count(counts, ParameterGroup::LmHead), 7 * 3);
  EXPECT_EQ(count(counts, ParameterGroup::Attention), 2 * (24 + 12 + 12 + 24) * 3);
  EXPECT_EQ(count(counts, ParameterGroup::DenseFfn), 2 * 3 * 5 * 3);
  EXPECT_EQ(count(counts, ParameterGroup::Norms), 2 * (3 + 6 + 6 + 3) + 3);
  EXPECT_EQ(counts.total, 21 + 21 + 432 + 90 + 39);
  EXPECT_EQ(counts.activePerToken, counts.total);
  EXPECT_EQ(counts.moeLayers, 0);
}

TEST(Model, CountsATiedTableOnce) {
  ModelConfig config = small();
  config.tiedEmbedding = true;
  ParameterCounts counts = countAll(config);
  EXPECT_EQ(count(counts, ParameterGroup::LmHead), 0);
  EXPECT_EQ(counts.total, 21 + 432 + 90 + 39);
}

TEST(Model, ListsExpertsAsOneTensor) {
  std::vector<Parameter> parameters = llvm::cantFail(listParameters(mixture()));
  ASSERT_EQ(parameters.size(), 1 + 2 * 11 + 2u);
  auto check = [&](size_t index, llvm::StringRef name, llvm::ArrayRef<int64_t> shape, ParameterGroup group,
                   Shard shard) {
    EXPECT_EQ(parameters[index].name, name.str());
    EXPECT_EQ(llvm::ArrayRef<int64_t>(parameters[index].shape), shape);
    EXPECT_EQ(parameters[index].group, group);
    EXPECT_EQ(parameters[index].shard, shard);
  };
  check(9, "model.layers.0.mlp.gate_proj.weight", {5, 3}, ParameterGroup::DenseFfn, Shard::None);
  check(20, "model.layers.1.mlp.gate.weight", {4, 3}, ParameterGroup::Router, Shard::None);
  check(21, "model.layers.1.mlp.experts.gate_up_proj", {4, 10, 3}, ParameterGroup::Experts, Shard::Experts);
  check(22, "model.layers.1.mlp.experts.down_proj", {4, 3, 5}, ParameterGroup::Experts, Shard::Experts);
  check(24, "lm_head.weight", {7, 3}, ParameterGroup::LmHead, Shard::Vocabulary);
  EXPECT_EQ(parameters[0].shard, Shard::Vocabulary);
}

TEST(Model, ListsSharedExperts) {
  ModelConfig config = mixture();
  config.experts.sharedIntermediateSize = 8;
  std::vector<Parameter> parameters = llvm::cantFail(listParameters(config));
  EXPECT_NE(find(parameters, "model.layers.1.mlp.shared_experts.gate_proj.weight"), nullptr);
  EXPECT_EQ(find(parameters, "model.layers.0.mlp.shared_experts.gate_proj.weight"), nullptr);
  ParameterCounts counts = countAll(config);
  EXPECT_EQ(count(counts, ParameterGroup::SharedExperts), 3 * 8 * 3);

  config.experts.sharedGate = true;
  parameters = llvm::cantFail(listParameters(config));
  const Parameter *down = find(parameters, "model.layers.1.mlp.shared_expert.down_proj.weight");
  const Parameter *gate = find(parameters, "model.layers.1.mlp.shared_expert_gate.weight");
  ASSERT_TRUE(down && gate);
  EXPECT_EQ(down->shape, (llvm::SmallVector<int64_t, 3>{3, 8}));
  EXPECT_EQ(gate->shape, (llvm::SmallVector<int64_t, 3>{1, 3}));
  EXPECT_EQ(gate->shard, Shard::None);
  EXPECT_EQ(count(countAll(config), ParameterGroup::SharedExperts), 3 * 8 * 3 + 3);
}

TEST(Model, CountsWhatATokenUses) {
  ParameterCounts counts = countAll(mixture());
  EXPECT_EQ(count(counts, ParameterGroup::Router), 4 * 3);
  EXPECT_EQ(count(counts, ParameterGroup::Experts), 4 * 3 * 5 * 3);
  EXPECT_EQ(count(counts, ParameterGroup::DenseFfn), 3 * 5 * 3);
  EXPECT_EQ(counts.total, 21 + 21 + 432 + 12 + 180 + 45 + 39);
  EXPECT_EQ(counts.activePerToken, counts.total - 45); // Three experts of four.
  EXPECT_EQ(counts.moeLayers, 1);
}

// Sums over the layers of the two configurations: two tables; q, k, v, o; the router; three matrices an expert; norms
// of the stream and of heads.
TEST(Model, CountsKnownModels) {
  ModelConfig tiny;
  tiny.vocabularySize = 16384;
  tiny.hiddenSize = 256;
  tiny.intermediateSize = 768;
  tiny.layers = 4;
  tiny.heads = 4;
  tiny.keyValueHeads = 2;
  tiny.headDim = 64;
  tiny.sparse.assign(4, true);
  tiny.experts.experts = 8;
  tiny.experts.topK = 2;
  tiny.experts.intermediateSize = 256;
  ParameterCounts counts = countAll(tiny);
  EXPECT_EQ(counts.total, 15477504);
  EXPECT_EQ(counts.activePerToken, 10758912);
  EXPECT_EQ(count(counts, ParameterGroup::Router), 8192);
  EXPECT_EQ(count(counts, ParameterGroup::Experts), 6291456);
  EXPECT_EQ(count(counts, ParameterGroup::DenseFfn), 0);
  EXPECT_EQ(counts.moeLayers, 4);

  ModelConfig large;
  large.vocabularySize = 151936;
  large.hiddenSize = 2048;
  large.intermediateSize = 6144;
  large.layers = 48;
  large.heads = 32;
  large.keyValueHeads = 4;
  large.headDim = 128;
  large.sparse.assign(48, true);
  large.experts.experts = 128;
  large.experts.topK = 8;
  large.experts.intermediateSize = 768;
  counts = countAll(large);
  EXPECT_EQ(counts.total, 30532122624);
  EXPECT_EQ(counts.activePerToken, 3353032704);
  EXPECT_EQ(count(counts, ParameterGroup::Attention), 905969664);
  EXPECT_EQ(count(counts, ParameterGroup::Experts), 28991029248);
  EXPECT_EQ(counts.moeLayers, 48);
}

TEST(Model, RefusesSizesThatOverflow) {
  ModelConfig config = small();
  // One table of 2^31 · 2^30 f32, 2^63 bytes.
  config.vocabularySize = int64_t(1) << 31;
  config.hiddenSize = int64_t(1) << 30;
  llvm::Expected<std::vector<Parameter>> parameters = listParameters(config);
  ASSERT_FALSE(bool(parameters));
  EXPECT_NE(llvm::toString(parameters.takeError()).find("more than 2^63 bytes"), std::string::npos);
}
