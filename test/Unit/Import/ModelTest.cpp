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
  ParameterCounts counts = countParameters(llvm::cantFail(listParameters(small())));
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
  ParameterCounts counts = countParameters(llvm::cantFail(listParameters(config)));
  EXPECT_EQ(count(counts, ParameterGroup::LmHead), 0);
  EXPECT_EQ(counts.total, 21 + 432 + 90 + 39);
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
