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
  // The other class takes 128 whatever the hidden size is: saying nothing would be ambiguous.
  EXPECT_EQ(refuse(plain(), {{"head_dim", ""}}),
            "f: error: field 'head_dim' is missing: it must be given for model_type \"qwen3\"");
}

TEST(Config, NamesTheFirstLayerWithExperts) {
  auto layer = [](const FieldMap &changes) {
    std::string message = refuse(mixture(), changes);
    return message.substr(0, message.find(':', message.find("dense layers only")));
  };
  auto first = [](int layer) {
    return "f: error: layer " + std::to_string(layer) + " has 8 experts, and this version imports dense layers only";
  };
  EXPECT_EQ(layer({{"mlp_only_layers", "[]"}}), first(0));
  EXPECT_EQ(layer({{"mlp_only_layers", ""}}), first(0));
  EXPECT_EQ(layer({{"mlp_only_layers", "[0, 2]"}}), first(1));
  EXPECT_EQ(layer({{"mlp_only_layers", "[]"}, {"decoder_sparse_step", "2"}}), first(1));
  EXPECT_EQ(layer({{"mlp_only_layers", "[2]"}, {"decoder_sparse_step", "3"}}), "accepted");
  EXPECT_EQ(layer({{"mlp_only_layers", "[]"}, {"decoder_sparse_step", "4"}}), "accepted");
  EXPECT_EQ(layer({{"mlp_only_layers", "[]"}, {"num_experts", "0"}}), "accepted");
  // 128 experts are what a file that does not say so means.
  EXPECT_NE(layer({{"mlp_only_layers", "[]"}, {"num_experts", ""}}).find("layer 0 has 128 experts"), std::string::npos);
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
        BadField{"mlp_only_layers", "[0, 1, 2, 3]", "has 3: it must be an array of layer numbers in 0..2"}));
