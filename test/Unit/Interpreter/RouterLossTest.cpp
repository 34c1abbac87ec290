//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Whole models whose routers have losses: the loss against its parts, its gradients against central differences.
//===----------------------------------------------------------------------===//

#include "InterpreterTest.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "plateau/Import/BuildLoss.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::importer;
using namespace mlir::plateau::test;

namespace {
struct Losses {
  double balance, z;
  BalanceKind kind = BalanceKind::Global;
};

/// Two layers with 4 experts, of which a token has 2; 6 tokens in two sequences.
class RouterLoss : public InterpreterTest {
protected:
  RouterLoss() {
    DialectRegistry registry;
    registerLossDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  ModuleOp build(const Losses &losses, Checkpoint checkpoint, Scoring scoring = Scoring::Softmax) {
    ModelConfig config;
    config.vocabularySize = 11;
    config.hiddenSize = 5;
    config.intermediateSize = 9;
    config.layers = 2;
    config.heads = config.keyValueHeads = 2;
    config.headDim = 4;
    config.rmsNormEpsilon = 1e-6;
    config.ropeTheta = 1e4;
    config.sparse = {true, true};
    config.experts.experts = 4;
    config.experts.topK = 2;
    config.experts.intermediateSize = 3;
    config.experts.scoring = scoring;
    config.experts.normalize = true;
    config.experts.correctionBias = true;
    LossOptions options;
    options.tokens = 6;
    options.sequence = 3;
    options.checkpoint = checkpoint;
    options.balanceLoss = losses.balance;
    options.balanceKind = losses.kind;
    options.zLoss = losses.z;
    modules.push_back(buildLoss(&context, config, llvm::cantFail(listParameters(config)), options));
    EXPECT_TRUE(modules.back()) << errors;
    return *modules.back();
  }

  /// The data by role; the same random numbers every time for everything else.
  std::vector<Numbers> getArguments(func::FuncOp function) {
    generator.seed(11);
    std::vector<Numbers> arguments;
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
      auto role = function.getArgAttrOfType<moe::RoleAttr>(index, "moe.role");
      auto is = [&](moe::Role wanted) { return role && role.getValue() == wanted; };
      if (is(moe::Role::Tokens))
        arguments.push_back({3, 10, 0, 3, 7, 7});
      else if (is(moe::Role::Labels))
        arguments.push_back({10, 0, -100, 7, 7, 2});
      else if (is(moe::Role::Positions))
        arguments.push_back({0, 1, 2, 0, 1, 2});
      else if (is(moe::Role::Starts))
        arguments.push_back({0, 0, 0, 3, 3, 3});
      else
        arguments.push_back(getRandom(cast<RankedTensorType>(type).getNumElements()));
    }
    return arguments;
  }

  std::vector<Numbers> getResults(const Losses &losses, Checkpoint checkpoint = Checkpoint::None) {
    auto loss = build(losses, checkpoint).lookupSymbol<func::FuncOp>("loss");
    return evaluate(loss, getArguments(loss));
  }

  void checkGradients(ModuleOp module) {
    PassManager manager(&context);
    manager.addPass(moe::createMoEDifferentiate());
    ASSERT_TRUE(succeeded(manager.run(module))) << errors;
    auto loss = module.lookupSymbol<func::FuncOp>("loss");
    std::vector<Numbers> arguments = getArguments(loss);
    std::vector<Numbers> results = evaluate(module.lookupSymbol<func::FuncOp>("loss_and_gradients"), arguments);
    unsigned result = 1;
    for (unsigned index = 0; index < arguments.size(); ++index) {
      auto parameter = loss.getArgAttrOfType<moe::ParameterAttr>(index, "moe.parameter");
      if (!parameter)
        continue;
      const Numbers &gradient = results[result++];
      // All that routers read, and what they read it with.
      bool isRouter = parameter.getName().contains("mlp.gate.");
      if (!isRouter && !parameter.getName().contains("norm.weight"))
        continue;
      double largest = 0;
      for (double number : gradient)
        largest = std::max(largest, std::abs(number));
      for (size_t element = 0; element < gradient.size(); element += isRouter ? 3 : 2) {
        double &number = arguments[index][element], middle = number;
        constexpr double step = 1e-6;
        number = middle + step;
        double above = evaluate(loss, arguments)[0][0];
        number = middle - step;
        double below = evaluate(loss, arguments)[0][0];
        number = middle;
        EXPECT_NEAR(gradient[element], (above - below) / (2 * step), 1e-6 * largest + 1e-8)
            << parameter.getName().str() << ", element " << element;
      }
    }
  }
};

// The parts are linear in their factors, and the counts of both layers stand after the loss.
TEST_F(RouterLoss, AddsUp) {
  std::vector<Numbers> none = getResults({0, 0}), balance = getResults({0.5, 0}), z = getResults({0, 0.25}),
                       both = getResults({1, 0.5});
  double balanceLoss = balance[0][0] - none[0][0], zLoss = z[0][0] - none[0][0];
  // Each layer's is at least its factor when tokens choose the experts of highest mean score; z is log² of a sum.
  EXPECT_GT(balanceLoss, 0.1);
  EXPECT_GT(zLoss, 0.1);
  EXPECT_NEAR(both[0][0], none[0][0] + 2 * balanceLoss + 2 * zLoss, 1e-12);
  ASSERT_EQ(none.size(), 3u);
  for (unsigned layer : {1, 2}) {
    EXPECT_EQ(none[layer], both[layer]);
    double routes = 0;
    for (double count : none[layer])
      routes += count;
    EXPECT_EQ(routes, 6 * 2);
  }
}

TEST_F(RouterLoss, CheckpointsChangeNothing) {
  for (BalanceKind kind : {BalanceKind::Global, BalanceKind::Sequence})
    EXPECT_EQ(getResults({0.5, 0.25, kind}, Checkpoint::Layer), getResults({0.5, 0.25, kind}));
}

TEST_F(RouterLoss, Gradients) {
  checkGradients(build({0.5, 0.25}, Checkpoint::None));
  checkGradients(build({0.5, 0.25}, Checkpoint::Layer, Scoring::Sigmoid));
}

TEST_F(RouterLoss, GradientsOfSequences) {
  checkGradients(build({0.5, 0, BalanceKind::Sequence}, Checkpoint::Layer));
  checkGradients(build({0.5, 0, BalanceKind::Sequence}, Checkpoint::None, Scoring::TopKSoftmax));
}
} // namespace
