//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/StepSignature.h"
#include "FakeExecutor.h"

using namespace mlir;
using namespace mlir::plateau::run;
using namespace mlir::plateau;

namespace {
class StepSignatureTest : public RunTest {
protected:
  /// Diagnostics of reading `text` with `from` replaced by `to`.
  std::string read(std::string text, llvm::StringRef from = "", llvm::StringRef to = "") {
    if (!from.empty()) {
      size_t position = text.find(from.str());
      EXPECT_NE(position, std::string::npos) << from.str();
      text.replace(position, from.size(), to.str());
    }
    diagnostics.clear();
    auto module = parse(text);
    if (!module)
      return "";
    auto function = findStep(*module);
    EXPECT_EQ(succeeded(function) && succeeded(getStepSignature(*function)), diagnostics.empty());
    return diagnostics;
  }
};
} // namespace

TEST_F(StepSignatureTest, FindsEverythingByRole) {
  auto module = parse(getStepText(/*isBF16=*/true, 2, 8, 4));
  auto function = findStep(*module);
  ASSERT_TRUE(succeeded(function)) << diagnostics;
  auto signature = getStepSignature(*function);
  ASSERT_TRUE(succeeded(signature)) << diagnostics;
  EXPECT_EQ(signature->batch.ranks, 2);
  EXPECT_EQ(signature->batch.getGlobalTokens(), 16);
  EXPECT_EQ(signature->vocabulary, 5);
  EXPECT_EQ(signature->learningRate, 4u);
  EXPECT_EQ(signature->parameters.argument, 6u);
  EXPECT_EQ(signature->parameters.result, 2u);
  EXPECT_EQ(signature->parameters.elements, 16);
  EXPECT_TRUE(signature->parameters.elementType.isBF16());
  ASSERT_TRUE(signature->master);
  EXPECT_EQ(signature->master->argument, 10u);
  EXPECT_EQ(getDonatedResult(*function, 7), 3u);
  EXPECT_EQ(getDonatedResult(*function, 0), std::nullopt);
  EXPECT_EQ(getDonatingArgument(*function, 6), 10u);
  EXPECT_EQ(getDonatingArgument(*function, 0), std::nullopt);
}

TEST_F(StepSignatureTest, FindsTheNumberOfTokens) {
  std::string text = getStepText(), learningRate = "%lr: tensor<f32>";
  text.insert(text.find(learningRate), "%n: tensor<i32> {moe.role = #moe.role<token_count>}, ");
  auto module = parse(text);
  auto signature = getStepSignature(*findStep(*module));
  ASSERT_TRUE(succeeded(signature)) << diagnostics;
  EXPECT_EQ(signature->tokenCount, 4u);
  EXPECT_EQ(signature->learningRate, 5u);
  EXPECT_NE(read(text, "%n: tensor<i32>", "%n: tensor<1xi32>")
                .find("argument 4 with the role token_count is 'tensor<1xi32>'; it must be 'tensor<i32>'"),
            std::string::npos)
      << diagnostics;
}

TEST_F(StepSignatureTest, NeedsOneStep) {
  EXPECT_NE(read("func.func @f() { return }").find("there is no public function whose arguments have a moe.role"),
            std::string::npos);
  EXPECT_NE(read(getStepText() + "func.func @other(%a: tensor<1xi32> {moe.role = #moe.role<tokens>}) { return }")
                .find("both @step and @other are public and have arguments with roles"),
            std::string::npos);
  EXPECT_EQ(
      read(getStepText() + "func.func private @other(%a: tensor<1xi32> {moe.role = #moe.role<tokens>}) { return }"),
      "");
}

TEST_F(StepSignatureTest, NamesTheMissingRole) {
  EXPECT_EQ(read(getStepText(), "{moe.role = #moe.role<starts>}", ""), "@step has no argument with the role starts\n");
  EXPECT_EQ(read(getStepText(), "tensor<f32> {moe.role = #moe.role<gradient_norm>}", "tensor<f32>"),
            "@step has no result with the role gradient_norm\n");
  EXPECT_EQ(
      read(getStepText(), "{moe.role = #moe.role<learning_rate>}", ""),
      "@step has no argument with the role learning_rate\nnote: a function that only has a loss becomes a step by "
      "moe-differentiate and moe-attach-optimizer\n");
  EXPECT_EQ(read(getStepText(true), "moe.role = #moe.role<master>, ", ""),
            "@step has no argument with the role master\n");
}

TEST_F(StepSignatureTest, RefusesARoleTwice) {
  EXPECT_EQ(read(getStepText(), "#moe.role<labels>", "#moe.role<tokens>"),
            "@step: arguments 0 and 1 both have the role tokens\n");
}

TEST_F(StepSignatureTest, RefusesWrongTypes) {
  EXPECT_EQ(read(getStepText(), "%t: tensor<i32>", "%t: tensor<1xi32>"),
            "@step: argument 5 with the role step is 'tensor<1xi32>'; it must be 'tensor<i32>'\n");
  EXPECT_EQ(read(getStepText(), "moe.donated = 2", "moe.donated = 3"),
            "@step: argument 6 with the role parameters is donated to result 3; result 2 has its role\n");
  EXPECT_EQ(read(getStepText(), "attributes {moe.batch = #moe.batch<ranks = 1, tokens = 4, sequence = 4>}", ""),
            "@step does not say its batch: moe.batch = #moe.batch<ranks, tokens, sequence>\n");
}

TEST_F(StepSignatureTest, NeedsAVocabulary) {
  EXPECT_EQ(read(getStepText(), "model.embed_tokens.weight", "other"),
            "@step has no parameter model.embed_tokens.weight and no moe.embedding, so the size of its vocabulary is "
            "unknown\n");
}
