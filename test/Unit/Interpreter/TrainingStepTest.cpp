//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Whole models: gradients of the imported loss against central differences, and passes against their input in exact
// mode.
//===----------------------------------------------------------------------===//

#include "plateau/Pipelines/TrainingStep.h"
#include "InterpreterTest.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "plateau/Import/BuildLoss.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::importer;
using namespace mlir::plateau::test;

namespace {
/// Two layers, grouped heads, sizes that divide nothing; 6 tokens in two sequences and three documents.
class TrainingStep : public InterpreterTest {
protected:
  static constexpr int64_t vocabulary = 11;

  TrainingStep() {
    DialectRegistry registry;
    registerLossDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  ModuleOp build(Checkpoint checkpoint, WorkingType type = WorkingType::F32, bool tied = false) {
    ModelConfig config;
    config.vocabularySize = vocabulary;
    config.hiddenSize = 7;
    config.intermediateSize = 9;
    config.layers = 2;
    config.heads = 4;
    config.keyValueHeads = 2;
    config.headDim = 6;
    config.rmsNormEpsilon = 1e-6;
    config.ropeTheta = 1e4;
    config.initializerRange = 0.02;
    config.tiedEmbedding = tied;
    LossOptions options;
    options.tokens = 6;
    options.sequence = 3;
    options.workingType = type;
    options.checkpoint = checkpoint;
    auto parameters = llvm::cantFail(listParameters(config));
    modules.push_back(buildLoss(&context, config, parameters, options));
    EXPECT_TRUE(modules.back()) << errors;
    return *modules.back();
  }

  void runPasses(ModuleOp module, llvm::function_ref<void(OpPassManager &)> addPasses) {
    PassManager manager(&context);
    addPasses(manager);
    EXPECT_TRUE(succeeded(manager.run(module))) << errors;
  }

  /// The data by role; random numbers for everything else.
  std::vector<Numbers> getArguments(func::FuncOp function) {
    std::vector<Numbers> arguments;
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
      auto role = function.getArgAttrOfType<moe::RoleAttr>(index, "moe.role");
      auto is = [&](moe::Role wanted) { return role && role.getValue() == wanted; };
      if (is(moe::Role::Tokens))
        arguments.push_back({3, 10, 0, 3, 7, 7});
      else if (is(moe::Role::Labels))
        arguments.push_back({10, 0, -100, 7, 7, 2});
      else if (is(moe::Role::Positions))
        arguments.push_back({0, 1, 0, 0, 1, 2});
      else if (is(moe::Role::Starts))
        arguments.push_back({0, 0, 2, 3, 3, 3});
      else if (is(moe::Role::Step))
        arguments.push_back({5});
      else
        arguments.push_back(getRandom(cast<RankedTensorType>(type).getNumElements()));
      if (is(moe::Role::SecondMoment))
        for (double &number : arguments.back())
          number = std::abs(number);
    }
    return arguments;
  }

  /// A few elements of each parameter's gradient against central differences of the loss.
  void checkGradients(ModuleOp module) {
    runPasses(module, [](OpPassManager &manager) { manager.addPass(moe::createMoEDifferentiate()); });
    auto loss = module.lookupSymbol<func::FuncOp>("loss");
    auto gradients = module.lookupSymbol<func::FuncOp>("loss_and_gradients");
    ASSERT_TRUE(loss && gradients);
    std::vector<Numbers> arguments = getArguments(loss);
    std::vector<Numbers> results = evaluate(gradients, arguments);
    EXPECT_EQ(results[0], evaluate(loss, arguments)[0]);
    unsigned result = 1;
    for (unsigned index = 0; index < arguments.size(); ++index) {
      if (!loss.getArgAttr(index, "moe.parameter"))
        continue;
      const Numbers &gradient = results[result++];
      ASSERT_EQ(gradient.size(), arguments[index].size());
      double largest = 0;
      for (double number : gradient)
        largest = std::max(largest, std::abs(number));
      EXPECT_GT(largest, 1e-6) << "argument " << index;
      for (size_t element = index % 5; element < gradient.size(); element += gradient.size() / 7 + 1) {
        double &number = arguments[index][element], middle = number;
        constexpr double step = 1e-5;
        number = middle + step;
        double above = evaluate(loss, arguments)[0][0];
        number = middle - step;
        double below = evaluate(loss, arguments)[0][0];
        number = middle;
        // The differences are right to about 1e-10: their third derivative times step², and 1e-16 / step.
        EXPECT_NEAR(gradient[element], (above - below) / (2 * step), 1e-6 * largest + 1e-9)
            << "argument " << index << ", element " << element;
      }
    }
  }

  /// @step from @loss.
  func::FuncOp buildStep(ModuleOp module) {
    runPasses(module, [](OpPassManager &manager) { buildTrainingStepPipeline(manager, {}); });
    auto step = module.lookupSymbol<func::FuncOp>("step");
    EXPECT_TRUE(step) << errors;
    return step;
  }

  void expectEqual(ArrayRef<Tensor> actual, ArrayRef<Tensor> expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (auto [index, a, b] : llvm::enumerate(actual, expected))
      EXPECT_TRUE(areEqual(a, b)) << "result " << index;
  }
};

TEST_F(TrainingStep, Gradients) { checkGradients(build(Checkpoint::None)); }

TEST_F(TrainingStep, GradientsWithCheckpoints) { checkGradients(build(Checkpoint::Layer)); }

TEST_F(TrainingStep, GradientsOfTiedEmbeddings) {
  checkGradients(build(Checkpoint::Layer, WorkingType::BF16, /*tied=*/true));
}

TEST_F(TrainingStep, CheckpointsChangeNothing) {
  func::FuncOp plain = buildStep(build(Checkpoint::None)), regions = buildStep(build(Checkpoint::Layer));
  std::vector<Numbers> arguments = getArguments(plain);
  EXPECT_EQ(evaluate(plain, arguments), evaluate(regions, arguments));
  expectEqual(evaluateExactly(plain, arguments), evaluateExactly(regions, arguments));
}

TEST_F(TrainingStep, PassesKeepTheFunction) {
  for (WorkingType type : {WorkingType::F32, WorkingType::BF16}) {
    ModuleOp module = build(Checkpoint::Layer, type);
    std::vector<Numbers> arguments = getArguments(buildStep(module));
    auto evaluateStep = [&] { return evaluateExactly(module.lookupSymbol<func::FuncOp>("step"), arguments); };
    SmallVector<Tensor> before = evaluateStep();
    runPasses(module, [](OpPassManager &manager) { manager.addPass(moe::createMoEInlineCheckpoints()); });
    expectEqual(evaluateStep(), before);
    runPasses(module, [](OpPassManager &manager) { manager.addPass(moe::createMoEFoldMatmul()); });
    expectEqual(evaluateStep(), before);
    runPasses(module, [](OpPassManager &manager) { manager.addPass(moe::createMoEFuseElementwise()); });
    expectEqual(evaluateStep(), before);
  }
}

// One number of one input reaches the loss, the parameters and their gradients.
TEST_F(TrainingStep, OneElementChangesTheResults) {
  func::FuncOp step = buildStep(build(Checkpoint::None));
  std::vector<Numbers> arguments = getArguments(step);
  SmallVector<Tensor> before = evaluateExactly(step, arguments);
  for (unsigned index = 0; index < arguments.size(); ++index) {
    auto role = step.getArgAttrOfType<moe::RoleAttr>(index, "moe.role");
    if (role && role.getValue() == moe::Role::Parameters)
      arguments[index][arguments[index].size() / 2] += 1;
  }
  SmallVector<Tensor> after = evaluateExactly(step, arguments);
  for (auto [index, a, b] : llvm::enumerate(before, after))
    EXPECT_FALSE(areEqual(a, b)) << "result " << index;
}
} // namespace
