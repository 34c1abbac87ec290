//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What evens out the loads of experts: the fields that ask for it, and the state it has.
//===----------------------------------------------------------------------===//

#include "plateau/Import/Config.h"
#include "plateau/Import/Json.h"
#include "plateau/Import/Model.h"
#include <gtest/gtest.h>

using namespace mlir::plateau::importer;

namespace {
/// Two layers, of which the second has 8 experts, with further fields.
llvm::Expected<ModelConfig> read(const std::string &fields, const std::string &type = "qwen3_moe") {
  std::string text = R"json({"hidden_size": 6, "intermediate_size": 5, "vocab_size": 11, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_experts": 8, "moe_intermediate_size": 7,
    "num_experts_per_tok": 2, "decoder_sparse_step": 2, )json";
  text += "\"model_type\": \"" + type + "\", \"architectures\": [\"" +
          (type == "qwen3" ? "Qwen3ForCausalLM" : "Qwen3MoeForCausalLM") + "\"]" + fields + "}";
  std::string warnings;
  llvm::raw_string_ostream os(warnings);
  return parseConfig(SourceText("f", text), os);
}

double readBalanceLoss(const std::string &fields) { return llvm::cantFail(read(fields)).experts.balanceLoss; }

std::string refuse(const std::string &fields, const std::string &type = "qwen3_moe") {
  llvm::Expected<ModelConfig> config = read(fields, type);
  return config ? "accepted" : llvm::toString(config.takeError());
}
} // namespace

TEST(ExpertConfig, TheBalanceLossIsAskedForByRouterLogits) {
  EXPECT_EQ(readBalanceLoss(""), 0);
  EXPECT_EQ(readBalanceLoss(R"(, "router_aux_loss_coef": 0.5)"), 0);
  EXPECT_EQ(readBalanceLoss(R"(, "output_router_logits": false, "router_aux_loss_coef": 0.5)"), 0);
  EXPECT_EQ(readBalanceLoss(R"(, "output_router_logits": true, "router_aux_loss_coef": 0.5)"), 0.5);
  EXPECT_EQ(readBalanceLoss(R"(, "output_router_logits": true, "router_aux_loss_coef": 0)"), 0);
  EXPECT_EQ(readBalanceLoss(R"(, "output_router_logits": true)"), 0.001);
  EXPECT_NE(refuse(R"(, "output_router_logits": true, "router_aux_loss_coef": -1)")
                .find("field 'router_aux_loss_coef' is -1: it must be a number >= 0 that fits f32"),
            std::string::npos);
  EXPECT_NE(refuse(R"(, "output_router_logits": true)", "qwen3")
                .find("field 'output_router_logits' is true: it must be false for model_type \"qwen3\", which has no "
                      "routers"),
            std::string::npos);
}

TEST(ExpertConfig, ACorrectionBiasIsStateOfEachRouter) {
  EXPECT_FALSE(llvm::cantFail(read(R"(, "topk_method": "greedy")")).experts.correctionBias);
  ModelConfig config = llvm::cantFail(read(R"(, "topk_method": "noaux_tc", "scoring_func": "sigmoid")"));
  EXPECT_TRUE(config.experts.correctionBias);
  std::vector<Parameter> parameters = llvm::cantFail(listParameters(config));
  std::vector<const Parameter *> state;
  for (const Parameter &parameter : parameters)
    if (!parameter.isTrained)
      state.push_back(&parameter);
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0]->name, "model.layers.1.mlp.gate.e_score_correction_bias");
  EXPECT_EQ(state[0]->shape, (llvm::SmallVector<int64_t, 3>{8}));
  EXPECT_EQ(state[0]->layer, 1);
  EXPECT_EQ(state[0][-1].name, "model.layers.1.mlp.gate.weight");
  ParameterCounts counts = countParameters(config, parameters);
  EXPECT_EQ(counts.byGroup[size_t(ParameterGroup::Router)], 8 * 6 + 8);
  EXPECT_EQ(counts.moeLayers, 1);
  EXPECT_NE(refuse(R"(, "topk_method": "other")")
                .find("field 'topk_method' is \"other\": it must be \"greedy\" or \"noaux_tc\""),
            std::string::npos);
}
