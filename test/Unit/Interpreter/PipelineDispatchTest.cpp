//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What moe-pipeline-dispatch makes of a layer and of whole steps computes the same: in exact mode bit by bit, for any
// number of chunks, capacity, helper slots, routing and ranks.
//===----------------------------------------------------------------------===//

#include "RanksTest.h"
#include "WholeStepTest.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::importer;
using namespace mlir::plateau::test;

namespace {
/// Chunks, capacity, helper slots. Balance moves whatever it can.
struct Form {
  int64_t chunks = 1, capacity = 0, slots = 0;

  moe::MoEPipelineDispatchOptions getOptions() const {
    moe::MoEPipelineDispatchOptions options;
    options.maxChunks = chunks;
    options.capacityRows = capacity;
    options.balance = slots > 0 ? "least-loaded" : "none";
    options.helperSlots = slots;
    options.minRows = 1;
    options.imbalanceThreshold = "1";
    return options;
  }
  std::string describe() const {
    return llvm::formatv("{0} chunks, capacity {1}, {2} helper slots", chunks, capacity, slots).str();
  }
};

struct LayerShape {
  int64_t ranks, experts, tokens, topK;
  bool hasRegions;
};

class PipelinedLayer : public RanksTest {
protected:
  static constexpr int64_t columns = 3, hidden = 2;

  /// @f(x, weights of slots, gate and up, down, ids, cotangent): the output, and the gradients of the first four. The
  /// second product of the forward pass is not computed again.
  static std::string getText(const LayerShape &shape) {
    std::string rows = llvm::formatv("tensor<{0}x{1}xf32>", shape.tokens, columns);
    std::string slots = llvm::formatv("tensor<{0}x{1}xf32>", shape.tokens, shape.topK);
    std::string ids = llvm::formatv("tensor<{0}x{1}xi32>", shape.tokens, shape.topK);
    std::string w13 = llvm::formatv("tensor<{0}x{1}x{2}xf32>", shape.experts / shape.ranks, 2 * hidden, columns);
    std::string w2 = llvm::formatv("tensor<{0}x{1}x{2}xf32>", shape.experts / shape.ranks, columns, hidden);
    std::string plan = llvm::formatv("!moe.plan<experts = {0}, ranks = {1}, tokens = {2}, top_k = {3}>", shape.experts,
                                     shape.ranks, shape.tokens, shape.topK);
    std::string r = llvm::formatv("tensor<?x{0}xf32>", columns), h = llvm::formatv("tensor<?x{0}xf32>", 2 * hidden),
                a = llvm::formatv("tensor<?x{0}xf32>", hidden), v = "tensor<?xf32>";
    // Not within a region, the backward pass reads the rows of the forward pass.
    std::string again = llvm::formatv(R"mlir(
      %rows, %rp = moe.dispatch rows(%x : {0} -> {1}) values(%p : {2} -> {3}) by %plan on @experts : {4}
      %h = moe.grouped_matmul %rows, %w13 transpose by %plan : ({1}, {5}, {4}) -> {6}
      %a = moe.swiglu %h : {6} -> {7})mlir",
                                      rows, r, slots, v, plan, w13, h, a);
    std::string forward = llvm::formatv(R"mlir(
      %plan = moe.plan %ids on @experts : {0} -> {1}{2}
      %u = moe.grouped_matmul %a, %w2 transpose by %plan : ({3}, {4}, {1}) -> {5}
      %z = moe.scale_rows %u, %rp : {5}, tensor<?xf32>
      %y = moe.combine rows(%z : {5} -> {6}) by %plan on @experts : {1})mlir",
                                        ids, plan, again, a, w2, r, rows);
    std::string backward = llvm::formatv(R"mlir(
      %g = moe.dispatch rows(%dy : {0} -> {1}) by %plan on @experts : {2}
      %sg = moe.scale_rows %g, %rp : {1}, tensor<?xf32>
      %da0 = moe.grouped_matmul %g, %w2 by %plan : ({1}, {3}, {2}) -> {4}
      %dot = moe.row_dot %da0, %a : {4} -> tensor<?xf32>
      %da = moe.scale_rows %da0, %rp : {4}, tensor<?xf32>
      %d2 = moe.grouped_matmul_grad %sg, %a by %plan : ({1}, {4}, {2}) -> {3}
      %dh = moe.swiglu_grad %da, %h : {4}, {5}
      %dr = moe.grouped_matmul %dh, %w13 by %plan : ({5}, {6}, {2}) -> {1}
      %d13 = moe.grouped_matmul_grad %dh, %rows by %plan : ({5}, {1}, {2}) -> {6}
      %dx, %dp = moe.combine rows(%dr : {1} -> {0}) values(%dot : tensor<?xf32> -> {7}) by %plan on @experts : {2})mlir",
                                         rows, r, plan, w2, a, h, w13, slots);
    std::string body = forward + "\n      %dy = arith.mulf %y, %c : " + rows + backward;
    std::string results = llvm::formatv("{0}, {0}, {1}, {2}, {3}", rows, slots, w13, w2);
    if (shape.hasRegions)
      body = llvm::formatv(R"mlir(
      %y, %saved = moe.checkpoint (%x = %x0 : {0}, %p = %p0 : {1}, %w13 = %w130 : {2}, %w2 = %w20 : {3}, %ids = %ids0 : {4})
          -> ({0}, {5}) {{{6}
        moe.yield %y, %plan : {0}, {5}
      }
      %dy0 = arith.mulf %y, %c : {0}
      %dx, %dp, %d13, %d2 = moe.checkpoint recompute (%x = %x0 : {0}, %p = %p0 : {1}, %w13 = %w130 : {2}, %w2 = %w20 : {3},
          %plan = %saved : {5}, %dy = %dy0 : {0}) -> ({0}, {1}, {2}, {3}) {{{7}{8}
        moe.yield %dx, %dp, %d13, %d2 : {0}, {1}, {2}, {3}
      })mlir",
                           rows, slots, w13, w2, ids, plan, forward, again, backward);
    return llvm::formatv(R"mlir(
    shard.grid @experts(shape = {0})
    func.func @f(%x{1}: {2}, %p{1}: {3}, %w13{1}: {4}, %w2{1}: {5}, %ids{1}: {6}, %c: {2}) -> ({7}) {{{8}
      return %y, %dx, %dp, %d13, %d2 : {7}
    })mlir",
                         shape.ranks, shape.hasRegions ? "0" : "", rows, slots, w13, w2, ids, results, body);
  }

  func::FuncOp rewrite(const LayerShape &shape, const Form &form) {
    func::FuncOp function = parse(getText(shape));
    PassManager manager(&context);
    manager.addNestedPass<func::FuncOp>(moe::createMoEPipelineDispatch(form.getOptions()));
    EXPECT_TRUE(succeeded(manager.run(*modules.back()))) << errors;
    return function;
  }

  /// Ids of all ranks, one after the other: -1 for none.
  using Routing = llvm::function_ref<int64_t(int64_t token, int64_t slot)>;

  RankNumbers getArguments(const LayerShape &shape, Routing getId) {
    RankNumbers arguments;
    for (int64_t rank = 0; rank < shape.ranks; ++rank) {
      Numbers ids;
      for (int64_t token = 0; token < shape.tokens; ++token)
        for (int64_t slot = 0; slot < shape.topK; ++slot)
          ids.push_back(static_cast<double>(getId(rank * shape.tokens + token, slot)));
      int64_t local = shape.experts / shape.ranks;
      arguments.push_back({getRandom(shape.tokens * columns), getRandom(shape.tokens * shape.topK),
                           getRandom(local * 2 * hidden * columns), getRandom(local * columns * hidden), ids,
                           getRandom(shape.tokens * columns)});
    }
    return arguments;
  }

  void expectSame(const RankTensors &actual, const RankTensors &expected) {
    for (auto [rank, ofRank] : llvm::enumerate(expected))
      for (auto [index, tensor] : llvm::enumerate(ofRank))
        EXPECT_TRUE(areEqual(actual[rank][index], tensor)) << "result " << index << " of rank " << rank;
  }

  /// Every form gives what the layer gives without.
  void checkForms(const LayerShape &shape, Routing getId, ArrayRef<Form> forms) {
    RankNumbers arguments = getArguments(shape, getId);
    RankTensors expected = evaluateOnRanks(parse(getText(shape)), Mode::Exact, arguments);
    for (const Form &form : forms) {
      SCOPED_TRACE(llvm::formatv("{0} ranks, {1} experts, {2} tokens, top {3}, regions {4}; {5}", shape.ranks,
                                 shape.experts, shape.tokens, shape.topK, shape.hasRegions, form.describe())
                       .str());
      expectSame(evaluateOnRanks(rewrite(shape, form), Mode::Exact, arguments), expected);
    }
    modules.clear();
  }
};

/// Chunks of all counts, and leaves of one token, of some and of all.
std::vector<Form> getForms(const LayerShape &shape, ArrayRef<int64_t> allChunks, ArrayRef<int64_t> allSlots) {
  std::vector<Form> forms;
  for (int64_t chunks : allChunks)
    for (int64_t slots : allSlots)
      if (slots <= shape.experts - shape.experts / shape.ranks)
        for (int64_t tokens : {0, 1, 3})
          forms.push_back({chunks, tokens * shape.ranks * shape.topK, slots});
  return forms;
}

TEST_F(PipelinedLayer, ComputesTheSameForAnyRouting) {
  for (bool hasRegions : {false, true}) {
    LayerShape shape = {/*ranks=*/4, /*experts=*/8, /*tokens=*/13, /*topK=*/3, hasRegions};
    std::vector<Form> forms = getForms(shape, {1, 2, 3, 4, 11, 13}, {0, 1, 2, 6});
    // Experts twice in a token, and slots without one.
    checkForms(shape, [&](int64_t, int64_t) { return int64_t(generator() % 9) - 1; }, forms);
    // All tokens to the experts of one rank; to one expert; to none.
    checkForms(shape, [&](int64_t, int64_t slot) { return slot % 2; }, getForms(shape, {1, 3, 13}, {0, 1, 6}));
    checkForms(shape, [&](int64_t, int64_t) { return 5; }, getForms(shape, {1, 4}, {0, 2}));
    checkForms(shape, [&](int64_t, int64_t) { return -1; }, getForms(shape, {1, 4}, {0, 2}));
    // Nine of ten tokens choose two experts of eight, the others the rest.
    checkForms(
        shape, [&](int64_t t, int64_t slot) { return t % 10 ? slot % 2 : 2 + (t + slot) % 6; },
        getForms(shape, {2, 11}, {0, 1, 2}));
    // Even.
    checkForms(shape, [&](int64_t t, int64_t slot) { return (t + slot) % 8; }, getForms(shape, {3}, {0, 2}));
    // One rank's tokens go nowhere.
    checkForms(
        shape, [&](int64_t t, int64_t slot) { return t < 13 ? -1 : (t * 5 + slot) % 8; }, getForms(shape, {4}, {0, 2}));
  }
}

TEST_F(PipelinedLayer, ComputesTheSameOnAnyRanks) {
  for (int64_t ranks = 1; ranks <= 8; ++ranks)
    for (int64_t local : {1, 3}) {
      LayerShape shape = {ranks, ranks * local, /*tokens=*/7, /*topK=*/2, /*hasRegions=*/local == 3};
      auto skewed = [&](int64_t t, int64_t slot) {
        return t % 3 ? int64_t(generator() % 2) % shape.experts : (t + slot) % shape.experts;
      };
      checkForms(shape, skewed, getForms(shape, {1, 3}, {0, 1, 4}));
    }
}

// As many tokens as chunks, and fewer; one token; no loop but several leaves.
TEST_F(PipelinedLayer, ComputesTheSameForFewTokens) {
  for (int64_t tokens : {1, 2, 5})
    for (bool hasRegions : {false, true}) {
      LayerShape shape = {/*ranks=*/2, /*experts=*/4, tokens, /*topK=*/2, hasRegions};
      checkForms(
          shape, [&](int64_t t, int64_t slot) { return (t * 3 + slot) % 4; }, getForms(shape, {1, 2, 5, 9}, {0, 2}));
    }
}

// What is compared tells a wrong loop from the right one: without what helpers give back, without one iteration, with
// the weights of a rank's own experts in the place of its helpers', with a sum that starts anew in each iteration.
TEST_F(PipelinedLayer, TellsWrongLoops) {
  LayerShape shape = {/*ranks=*/2, /*experts=*/4, /*tokens=*/6, /*topK=*/2, /*hasRegions=*/true};
  RankNumbers arguments = getArguments(shape, [](int64_t, int64_t slot) { return slot; });
  RankTensors expected = evaluateOnRanks(parse(getText(shape)), Mode::Exact, arguments);
  auto isSame = [&](llvm::function_ref<void(Operation *)> change) {
    func::FuncOp function = rewrite(shape, {3, 0, 2});
    function.walk([&](Operation *op) { change(op); });
    RankTensors actual = evaluateOnRanks(function, Mode::Exact, arguments);
    bool same = true;
    for (auto [a, b] : llvm::zip_equal(actual, expected))
      for (auto [x, y] : llvm::zip_equal(a, b))
        same &= areEqual(x, y);
    return same;
  };
  EXPECT_TRUE(isSame([](Operation *) {}));
  EXPECT_FALSE(isSame([](Operation *op) {
    if (auto back = dyn_cast<moe::ReturnExpertGradsOp>(op))
      back.getResult().replaceAllUsesWith(back.getGrads());
  }));
  EXPECT_FALSE(isSame([](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      loop.getLowerBoundMutable().assign(loop.getStep());
  }));
  EXPECT_FALSE(isSame([](Operation *op) {
    if (auto matmul = dyn_cast<moe::GroupedMatmulOp>(op))
      matmul.getHelpersMutable().assign(matmul.getWeights());
  }));
  EXPECT_FALSE(isSame([](Operation *op) {
    auto grad = dyn_cast<moe::GroupedMatmulGradOp>(op);
    if (!grad)
      return;
    auto loop = cast<scf::ForOp>(grad->getParentOp());
    grad.getInitMutable().assign(loop.getTiedLoopInit(cast<BlockArgument>(grad.getInit()))->get());
  }));
}

// In float64 too: sums are in another order, by iteration.
TEST_F(PipelinedLayer, ComputesTheSameNumbers) {
  LayerShape shape = {/*ranks=*/4, /*experts=*/8, /*tokens=*/13, /*topK=*/3, /*hasRegions=*/true};
  RankNumbers arguments = getArguments(shape, [&](int64_t, int64_t) { return int64_t(generator() % 9) - 1; });
  RankNumbers expected = evaluateOnRanks(parse(getText(shape)), arguments);
  RankNumbers actual = evaluateOnRanks(rewrite(shape, {3, 24, 2}), arguments);
  for (auto [rank, results] : llvm::enumerate(expected))
    for (auto [index, numbers] : llvm::enumerate(results))
      expectNear(actual[rank][index], numbers, 1e-12);
}

// The products and exchanges of a rewritten layer, each as often as its loop runs.
TEST_F(PipelinedLayer, DoesNoMoreThanItMust) {
  auto count = [](func::FuncOp function) {
    std::map<std::string, int64_t> counts;
    function.walk([&](Operation *op) {
      if (isa<RoutedOpInterface, moe::MigrateExpertsOp, moe::ReturnExpertGradsOp, scf::ForOp>(op))
        ++counts[op->getName().getStringRef().str()];
    });
    return counts;
  };
  for (bool hasRegions : {false, true}) {
    LayerShape shape = {/*ranks=*/2, /*experts=*/4, /*tokens=*/6, /*topK=*/2, hasRegions};
    // Forward w13 and w2; backward w13 again, and both turned round. x twice, dy once; y once, dx once.
    std::map<std::string, int64_t> expected = {{"moe.dispatch", 3},
                                               {"moe.grouped_matmul", 5},
                                               {"moe.swiglu", 2},
                                               {"moe.scale_rows", 3},
                                               {"moe.combine", 2},
                                               {"moe.grouped_matmul_grad", 2},
                                               {"moe.row_dot", 1},
                                               {"moe.swiglu_grad", 1},
                                               {"scf.for", 2},
                                               {"moe.migrate_experts", 4},
                                               {"moe.return_expert_grads", 2}};
    EXPECT_EQ(count(rewrite(shape, {3, 0, 1})), expected);
  }
}

class PipelinedStep : public WholeStepTest {
protected:
  std::vector<StepValues<Field>> runRewritten(const ModelConfig &config, const Division &division, const Form &form,
                                              int64_t steps, WorkingType type) {
    func::FuncOp step = build(config, division, type);
    if (!step)
      return {};
    PassManager manager(&context);
    manager.addNestedPass<func::FuncOp>(moe::createMoEPipelineDispatch(form.getOptions()));
    EXPECT_TRUE(succeeded(manager.run(step->getParentOp()))) << errors;
    int64_t loops = 0;
    step.walk([&](scf::ForOp loop) { loops += loop->hasAttr("moe.in_flight"); });
    EXPECT_EQ(loops > 0, division.expertRanks > 1 && (form.chunks > 1 || form.capacity > 0));
    return runSteps<Field>(step, steps);
  }

  /// Loss, gradients and updated state of two steps are those of one rank without iterations.
  void check(const ModelConfig &config, ArrayRef<Division> divisions, ArrayRef<Form> forms,
             WorkingType type = WorkingType::F32) {
    auto expected = runSteps<Field>(build(config, Division(), type), 2);
    for (const Division &division : divisions)
      for (const Form &form : forms) {
        SCOPED_TRACE(division.describe() + "; " + form.describe());
        expectEqual(runRewritten(config, division, form, 2, type), expected);
        modules.clear();
      }
  }
};

TEST_F(PipelinedStep, ComputesTheSameOnAnyDivision) {
  std::vector<Division> divisions;
  for (int64_t ranks : {1, 2, 4, 8})
    for (Checkpoint checkpoint : {Checkpoint::None, Checkpoint::Layer})
      divisions.push_back({ranks, ranks, 1, 1, checkpoint});
  divisions.push_back({4, 2, 2, 1, Checkpoint::Layer}); // Copies of experts.
  check(makeConfig(Scoring::Softmax), divisions, {{1, 0, 2}, {3, 0, 0}, {4, 16, 2}, {11, 0, 4}});
}

TEST_F(PipelinedStep, ComputesTheSameInMicroBatches) {
  for (Scoring scoring : {Scoring::TopKSoftmax, Scoring::Sigmoid})
    check(makeConfig(scoring), {{2, 2, 1, 2, Checkpoint::None}, {4, 4, 1, 2, Checkpoint::Layer}},
          {{2, 0, 1}, {3, 8, 2}});
}

// Every layer with experts, a correction bias, tied embeddings, sums rounded to bf16.
TEST_F(PipelinedStep, ComputesTheSameForOtherModels) {
  ModelConfig config = makeConfig(Scoring::Sigmoid);
  config.experts.topK = 4;
  config.experts.correctionBias = true;
  config.tiedEmbedding = true;
  config.sparse = {true, true};
  check(config, {{2, 2, 1, 1, Checkpoint::Layer}, {4, 4, 1, 2, Checkpoint::Layer}, {8, 8, 1, 1, Checkpoint::None}},
        {{13, 0, 1}, {2, 32, 3}}, WorkingType::BF16);
}
} // namespace
