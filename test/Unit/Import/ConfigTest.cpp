//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/Config.h"
#include "plateau/Import/Json.h"
#include <gtest/gtest.h>
#include <map>

using namespace mlir::plateau::importer;

namespace {
/// The fields of a small configuration, each as it is written; "" leaves the field out.
using FieldMap = std::map<std::string, std::string>;

FieldMap mixture() {
  return {{"architectures", "[\"Qwen3MoeForCausalLM\"]"},
          {"decoder_sparse_step", "1"},
          {"head_dim", "8"},
          {"hidden_size", "32"},
          {"intermediate_size", "48"},
          {"mlp_only_layers", "[0, 1, 2]"},
          {"model_type", "\"qwen3_moe\""},
          {"num_attention_heads", "4"},
          {"num_experts", "8"},
          {"num_hidden_layers", "3"},
          {"num_key_value_heads", "2"},
          {"vocab_size", "64"}};
}

FieldMap plain() {
  FieldMap fields = mixture();
  for (const char *name : {"architectures", "decoder_sparse_step", "mlp_only_layers", "num_experts"})
    fields.erase(name);
  fields["model_type"] = "\"qwen3\"";
  return fields;
}

llvm::Expected<ModelConfig> read(const FieldMap &fields, std::string *warnings = nullptr) {
  std::string text, ignored;
  for (const auto &[name, value] : fields)
    if (!value.empty())
      text += (text.empty() ? "{\"" : ",\n\"") + name + "\": " + value;
  llvm::raw_string_ostream os(warnings ? *warnings : ignored);
  return parseConfig(SourceText("f", text + "}"), os);
}

/// The message that refuses `fields` with the changes, or "accepted".
std::string refuse(FieldMap fields, const FieldMap &changes) {
  for (const auto &[name, value] : changes)
    fields[name] = value;
  llvm::Expected<ModelConfig> config = read(fields);
  return config ? "accepted" : llvm::toString(config.takeError());
}

struct BadField {
  const char *name, *value, *message;
};

class BadFields : public testing::TestWithParam<BadField> {};
} // namespace

TEST(Config, ReadsEveryField) {
  FieldMap fields = plain();
  fields["initializer_range"] = "0.5";
  fields["max_position_embeddings"] = "128";
  fields["rms_norm_eps"] = "1e-05";
  fields["rope_theta"] = "1000000";
  fields["tie_word_embeddings"] = "true";
  fields["final_logit_softcapping"] = "30";
  std::string warnings;
  ModelConfig config = llvm::cantFail(read(fields, &warnings));
  EXPECT_EQ(config.vocabularySize, 64);
  EXPECT_EQ(config.hiddenSize, 32);
  EXPECT_EQ(config.intermediateSize, 48);
  EXPECT_EQ(config.layers, 3);
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.keyValueHeads, 2);
  EXPECT_EQ(config.headDim, 8);
  EXPECT_EQ(config.maxPositions, 128);
  EXPECT_EQ(config.rmsNormEpsilon, 1e-05);
  EXPECT_EQ(config.ropeTheta, 1e6);
  EXPECT_EQ(config.initializerRange, 0.5);
  EXPECT_TRUE(config.tiedEmbedding);
  EXPECT_EQ(config.logitSoftcap, 30);
  EXPECT_EQ(warnings, "");
}

TEST(Config, TakesTheDefaultsOfTransformers) {
  FieldMap fields = mixture();
  fields["head_dim"] = "";
  fields["rope_scaling"] = fields["sliding_window"] = "null";
  ModelConfig config = llvm::cantFail(read(fields));
  EXPECT_EQ(config.headDim, 32 / 4);
  EXPECT_EQ(config.maxPositions, std::nullopt);
  EXPECT_EQ(config.rmsNormEpsilon, 1e-6);
  EXPECT_EQ(config.ropeTheta, 10000);
  EXPECT_EQ(config.initializerRange, 0.02);
  EXPECT_FALSE(config.tiedEmbedding);
  EXPECT_EQ(config.logitSoftcap, 0);
  // The other class takes 128 whatever the hidden size is: saying nothing would be ambiguous.
  EXPECT_EQ(refuse(plain(), {{"head_dim", ""}}),
            "f: error: field 'head_dim' is missing: it must be given for model_type \"qwen3\"");
}

TEST(Config, TellsWhichLayersHaveExperts) {
  // Layers of 3 with experts, as a string of their numbers.
  auto layers = [](const FieldMap &changes) {
    FieldMap fields = mixture();
    for (const auto &[name, value] : changes)
      fields[name] = value;
    ModelConfig config = llvm::cantFail(read(fields));
    std::string sparse;
    for (int64_t layer = 0; layer < config.layers; ++layer)
      if (config.isSparse(layer))
        sparse += std::to_string(layer);
    EXPECT_EQ(config.sparse.empty(), sparse.empty());
    return sparse;
  };
  EXPECT_EQ(layers({}), "");
  EXPECT_EQ(layers({{"mlp_only_layers", "[]"}}), "012");
  EXPECT_EQ(layers({{"mlp_only_layers", ""}}), "012");
  EXPECT_EQ(layers({{"mlp_only_layers", "[0, 2]"}}), "1");
  EXPECT_EQ(layers({{"mlp_only_layers", "[]"}, {"decoder_sparse_step", "2"}}), "1");
  EXPECT_EQ(layers({{"mlp_only_layers", "[]"}, {"decoder_sparse_step", "3"}}), "2");
  EXPECT_EQ(layers({{"mlp_only_layers", "[2]"}, {"decoder_sparse_step", "3"}}), "");
  EXPECT_EQ(layers({{"mlp_only_layers", "[]"}, {"decoder_sparse_step", "4"}}), "");
  EXPECT_EQ(layers({{"mlp_only_layers", "[]"}, {"first_k_dense_replace", "2"}}), "2");
  EXPECT_EQ(layers({{"mlp_only_layers", "[]"}, {"first_k_dense_replace", "9"}}), "");
  EXPECT_EQ(layers({{"mlp_only_layers", "[]"}, {"num_experts", "0"}}), "");
}

TEST(Config, ReadsTheFieldsOfExperts) {
  FieldMap fields = mixture();
  fields["mlp_only_layers"] = "[]";
  fields["num_experts_per_tok"] = "3";
  fields["moe_intermediate_size"] = "20";
  fields["norm_topk_prob"] = "true";
  fields["scoring_func"] = "\"sigmoid\"";
  fields["n_group"] = "4";
  fields["topk_group"] = "2";
  fields["routed_scaling_factor"] = "2.5";
  fields["n_shared_experts"] = "2";
  fields["router_aux_loss_coef"] = "0.001";
  std::string warnings;
  ExpertConfig experts = llvm::cantFail(read(fields, &warnings)).experts;
  EXPECT_EQ(experts.experts, 8);
  EXPECT_EQ(experts.topK, 3);
  EXPECT_EQ(experts.intermediateSize, 20);
  EXPECT_TRUE(experts.normalize);
  EXPECT_EQ(experts.scoring, Scoring::Sigmoid);
  EXPECT_EQ(experts.groups, 4);
  EXPECT_EQ(experts.keptGroups, 2);
  EXPECT_EQ(experts.scale, 2.5);
  EXPECT_EQ(experts.sharedIntermediateSize, 40);
  EXPECT_FALSE(experts.sharedGate);
  EXPECT_EQ(warnings, "");

  fields["n_shared_experts"] = "";
  fields["shared_expert_intermediate_size"] = "24";
  fields["scoring_func"] = "\"top_k_softmax\"";
  experts = llvm::cantFail(read(fields)).experts;
  EXPECT_EQ(experts.scoring, Scoring::TopKSoftmax);
  EXPECT_EQ(experts.sharedIntermediateSize, 24);
  EXPECT_TRUE(experts.sharedGate);
}

TEST(Config, TakesTheDefaultsOfTransformersForExperts) {
  FieldMap fields = mixture();
  fields["mlp_only_layers"] = fields["num_experts"] = fields["decoder_sparse_step"] = "";
  ModelConfig config = llvm::cantFail(read(fields));
  EXPECT_TRUE(config.isSparse(0));
  EXPECT_EQ(config.experts.experts, 128);
  EXPECT_EQ(config.experts.topK, 8);
  EXPECT_EQ(config.experts.intermediateSize, 768);
  EXPECT_FALSE(config.experts.normalize);
  EXPECT_EQ(config.experts.scoring, Scoring::Softmax);
  EXPECT_EQ(config.experts.groups, 1);
  EXPECT_EQ(config.experts.keptGroups, 1);
  EXPECT_EQ(config.experts.scale, 1);
  EXPECT_EQ(config.experts.sharedIntermediateSize, 0);
}

TEST(Config, RefusesFieldsOfExpertsThatDoNotFitEachOther) {
  auto experts = [](const FieldMap &changes) {
    std::string message = refuse(mixture(), changes);
    return message.substr(message.find("field"));
  };
  // Two groups of two experts are not three.
  EXPECT_EQ(
      experts({{"n_group", "4"}, {"topk_group", "1"}, {"num_experts_per_tok", "3"}}),
      "field 'topk_group' is 1: it must be large enough that the groups kept have num_experts_per_tok = 3 experts");
  EXPECT_EQ(refuse(mixture(), {{"n_group", "4"}, {"topk_group", "2"}, {"num_experts_per_tok", "4"}}), "accepted");
  EXPECT_EQ(experts({{"n_group", "2"}, {"topk_group", "2"}, {"topk_method", "\"greedy\""}}),
            "field 'topk_method' is \"greedy\": it must be \"noaux_tc\" where n_group is more than 1, or left out");
  EXPECT_EQ(experts({{"n_group", "2"}, {"topk_group", "3"}}), "field 'topk_group' is 3: it must be an integer in 1..2");
  EXPECT_EQ(
      experts({{"n_shared_experts", "1"}, {"shared_expert_intermediate_size", "4"}}),
      "field 'n_shared_experts' is 1: it must be 0 beside shared_expert_intermediate_size: a layer has one shared "
      "expert");
  // 2^16 · 2^15 is 2^31.
  EXPECT_EQ(experts({{"n_shared_experts", "65536"}, {"moe_intermediate_size", "32768"}}),
            "field 'n_shared_experts' is 65536: it must be small enough that the shared experts' width fits 31 bits");
}

TEST(Config, WarnsOfUnknownFields) {
  FieldMap fields = mixture();
  fields["torch_dtype"] = "\"bfloat16\"";
  fields["use_cache"] = "true";
  fields["eos_token_id"] = "[1, 2]";
  fields["zeta\\n"] = "1";
  std::string warnings;
  EXPECT_TRUE(bool(read(fields, &warnings)));
  EXPECT_EQ(warnings, "f:16:1: warning: field 'zeta\\n' is not known and is ignored\n");
}

TEST_P(BadFields, AreNamedWithValueAndAllowed) {
  const BadField &field = GetParam();
  std::string message = refuse(mixture(), {{field.name, field.value}});
  std::string wanted = "error: field '" + std::string(field.name) + "' " + field.message;
  size_t found = message.find(wanted);
  ASSERT_NE(found, std::string::npos) << message;
  EXPECT_EQ(message.substr(found), wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Config, BadFields,
    testing::Values(
        BadField{"model_type", "", "is missing: it must be a string"},
        BadField{"model_type", "\"mixtral\"",
                 "is \"mixtral\": it must be \"qwen3\" or \"qwen3_moe\", the models this version imports"},
        BadField{
            "architectures", "[\"Qwen3ForCausalLM\"]",
            "has \"Qwen3ForCausalLM\": it must be [\"Qwen3MoeForCausalLM\"], which goes with model_type \"qwen3_moe\""},
        BadField{"vocab_size", "0", "is 0: it must be an integer in 1..2147483647"},
        BadField{"vocab_size", "2147483648", "is 2147483648: it must be an integer in 1..2147483647"},
        BadField{"vocab_size", "18446744073709551615",
                 "is 18446744073709551615: it must be an integer in 1..2147483647"},
        BadField{"hidden_size", "", "is missing: it must be an integer in 1..2147483647"},
        BadField{"hidden_size", "null", "is null: it must be an integer in 1..2147483647"},
        BadField{"hidden_size", "-1", "is -1: it must be an integer in 1..2147483647"},
        BadField{"hidden_size", "32.0", "is 32.0: it must be an integer in 1..2147483647"},
        BadField{"intermediate_size", "\"48\"", "is \"48\": it must be an integer in 1..2147483647"},
        BadField{"intermediate_size", "[48]", "is an array: it must be an integer in 1..2147483647"},
        BadField{"num_hidden_layers", "4097", "is 4097: it must be an integer in 1..4096"},
        BadField{"num_attention_heads", "true", "is true: it must be an integer in 1..2147483647"},
        BadField{"num_key_value_heads", "3", "is 3: it must be a divisor of num_attention_heads, which is 4"},
        BadField{"head_dim", "63", "is 63: it must be even"},
        BadField{"head_dim", "0", "is 0: it must be an integer in 1..2147483647"},
        BadField{"max_position_embeddings", "0", "is 0: it must be an integer in 1..2147483647"},
        BadField{"rms_norm_eps", "-1e-6", "is -1e-6: it must be a number >= 0 that fits f32"},
        BadField{"rms_norm_eps", "1e39", "is 1e39: it must be a number >= 0 that fits f32"},
        BadField{"initializer_range", "-1", "is -1: it must be a number >= 0 that fits f32"},
        BadField{"rope_theta", "0", "is 0: it must be a number > 0 that fits f32"},
        BadField{"rope_theta", "\"1\"", "is \"1\": it must be a number > 0 that fits f32"},
        BadField{"rope_scaling", "{\"type\": \"yarn\"}",
                 "is an object: it must be null: rotary embeddings are imported unscaled, with rope_theta"},
        BadField{"rope_parameters", "{}",
                 "is an object: it must be null: rotary embeddings are imported unscaled, with rope_theta"},
        BadField{"tie_word_embeddings", "1", "is 1: it must be true or false"},
        BadField{"final_logit_softcapping", "0", "is 0: it must be a number > 0 that fits f32, or null"},
        BadField{"final_logit_softcapping", "1e39", "is 1e39: it must be a number > 0 that fits f32, or null"},
        BadField{"hidden_act", "\"gelu\"", "is \"gelu\": it must be \"silu\""},
        BadField{"attention_bias", "true", "is true: it must be false: biases are not imported"},
        BadField{"attention_dropout", "0.1", "is 0.1: it must be 0: dropout is not imported"},
        BadField{"use_sliding_window", "true", "is true: it must be false: attention windows are not imported"},
        BadField{"layer_types", "[\"full_attention\", \"sliding_attention\"]",
                 "has \"sliding_attention\": it must be \"full_attention\" for each of 3 layers"},
        BadField{"layer_types", "[\"full_attention\"]",
                 "is an array: it must be as long as there are layers: it has 1 entries for 3"},
        BadField{"num_experts", "-1", "is -1: it must be an integer in 0..2147483647"},
        BadField{"decoder_sparse_step", "0", "is 0: it must be an integer in 1..2147483647"},
        BadField{"mlp_only_layers", "3", "is 3: it must be an array of layer numbers in 0..2"},
        BadField{"mlp_only_layers", "[0, 1, 2, 3]", "has 3: it must be an array of layer numbers in 0..2"},
        BadField{"first_k_dense_replace", "-1", "is -1: it must be an integer in 0..2147483647"},
        BadField{"num_experts_per_tok", "0", "is 0: it must be an integer in 1..8"},
        BadField{"num_experts_per_tok", "9", "is 9: it must be an integer in 1..8"},
        BadField{"moe_intermediate_size", "0", "is 0: it must be an integer in 1..2147483647"},
        BadField{"norm_topk_prob", "1", "is 1: it must be true or false"},
        BadField{"scoring_func", "\"tanh\"", "is \"tanh\": it must be \"softmax\", \"top_k_softmax\" or \"sigmoid\""},
        BadField{"n_group", "3", "is 3: it must be a divisor of num_experts, which is 8"},
        BadField{"n_group", "9", "is 9: it must be an integer in 1..8"},
        BadField{"topk_group", "2", "is 2: it must be an integer in 1..1"},
        BadField{"routed_scaling_factor", "0", "is 0: it must be a number > 0 that fits f32"},
        BadField{"routed_scaling_factor", "1e-46", "is 1e-46: it must be a number > 0 that fits f32"},
        BadField{"routed_scaling_factor", "1e39", "is 1e39: it must be a number > 0 that fits f32"},
        BadField{"topk_method", "\"aux_tc\"", "is \"aux_tc\": it must be \"greedy\" or \"noaux_tc\""},
        BadField{"topk_method", "\"group_limited_greedy\"",
                 "is \"group_limited_greedy\": it must be \"greedy\" or \"noaux_tc\""},
        BadField{"shared_expert_intermediate_size", "-1", "is -1: it must be an integer in 0..2147483647"},
        BadField{"output_router_logits", "1", "is 1: it must be true or false"}));
