//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Builds training steps of a small model with experts for any division over ranks, interprets them, and puts the
// tensors of the ranks together.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_INTERPRETER_WHOLESTEPTEST_H
#define PLATEAU_TEST_UNIT_INTERPRETER_WHOLESTEPTEST_H

#include "InterpreterTest.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Import/BuildLoss.h"
#include "plateau/Pipelines/TrainingStep.h"
#include "plateau/Run/Digests.h"
#include "plateau/Run/ParameterInit.h"
#include "plateau/Run/Training.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

namespace mlir::plateau::test {

/// How a step is divided. All divisions of one `ranks · tokens` read the same tokens.
struct Division {
  int64_t ranks = 1, expertRanks = 1, vocabularyRanks = 1, microBatches = 1;
  importer::Checkpoint checkpoint = importer::Checkpoint::None;

  std::string describe() const {
    return llvm::formatv("ranks {0}, expert ranks {1}, vocabulary ranks {2}, micro-batches {3}, {4}", ranks,
                         expertRanks, vocabularyRanks, microBatches,
                         checkpoint == importer::Checkpoint::Layer ? "checkpoints" : "no checkpoints")
        .str();
  }
};

/// What a step gives: "loss", "gradient_norm", and "gradients model.norm.weight" and its like, put together from the
/// ranks.
template <typename Scalar>
using StepValues = std::map<std::string, std::vector<Scalar>>;

class WholeStepTest : public InterpreterTest {
protected:
  /// Tokens of all ranks in a step, and of a sequence: eight ranks have four sequences each.
  static constexpr int64_t globalTokens = 96, sequence = 3;
  /// Documents end after this token, also in the middle of sequences.
  static constexpr int64_t documentEnd = 5;
  static constexpr float learningRate = 0.0625;

  WholeStepTest() {
    DialectRegistry registry;
    importer::registerLossDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    int descriptor;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("plateau-step", "ids", descriptor, idsPath));
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
    for (uint32_t i = 0; i < 4 * globalTokens; ++i) {
      llvm::support::ulittle32_t id(run::NumberStream(3, "ids").getBelow(i, 32));
      os.write(reinterpret_cast<const char *>(&id), sizeof id);
    }
  }
  ~WholeStepTest() override { llvm::sys::fs::remove(idsPath); }

  /// Two layers, the first of them dense.
  static importer::ModelConfig makeConfig(importer::Scoring scoring) {
    importer::ModelConfig config;
    config.vocabularySize = 32;
    config.hiddenSize = 16;
    config.intermediateSize = 12;
    config.layers = 2;
    config.heads = 4;
    config.keyValueHeads = 2;
    config.headDim = 4;
    config.rmsNormEpsilon = 1e-6;
    config.ropeTheta = 1e4;
    config.initializerRange = 0.3;
    config.experts.experts = 8;
    config.experts.topK = 2;
    config.experts.intermediateSize = 6;
    config.experts.scoring = scoring;
    config.experts.normalize = scoring != importer::Scoring::TopKSoftmax;
    config.experts.sharedIntermediateSize = 5;
    config.experts.sharedGate = true;
    if (scoring == importer::Scoring::Sigmoid) {
      config.experts.groups = 4;
      config.experts.keptGroups = 2;
      config.experts.scale = 2.5;
    }
    config.sparse = {false, true};
    return config;
  }

  /// @step; null, with a failed expectation, when there is none.
  func::FuncOp build(const importer::ModelConfig &config, const Division &division,
                     importer::WorkingType type = importer::WorkingType::F32) {
    importer::LossOptions options;
    options.ranks = division.ranks;
    options.expertRanks = division.expertRanks;
    options.vocabularyRanks = division.vocabularyRanks;
    options.tokens = globalTokens / division.ranks / division.microBatches;
    options.sequence = sequence;
    options.takesLabelCount = division.microBatches > 1;
    options.workingType = type;
    options.checkpoint = division.checkpoint;
    EXPECT_EQ(llvm::toString(checkLossOptions(config, options)), "");
    return attachOptimizer(buildLoss(&context, config, llvm::cantFail(listParameters(config)), options),
                           division.microBatches);
  }

  /// @step of ranks with `rows` rows each, of which each may have any number of tokens when it is padded.
  func::FuncOp buildRows(const importer::ModelConfig &config, const Division &division, int64_t rows, bool padded) {
    importer::LossOptions options;
    options.ranks = division.ranks;
    options.expertRanks = division.expertRanks;
    options.vocabularyRanks = division.vocabularyRanks;
    options.tokens = options.sequence = rows;
    options.padded = padded;
    options.checkpoint = division.checkpoint;
    EXPECT_EQ(llvm::toString(checkLossOptions(config, options)), "");
    return attachOptimizer(buildLoss(&context, config, llvm::cantFail(listParameters(config)), options), 1);
  }

  func::FuncOp attachOptimizer(OwningOpRef<ModuleOp> module, int64_t microBatches) {
    EXPECT_TRUE(module) << errors;
    PassManager manager(&context);
    moe::MoEAttachOptimizerOptions options;
    options.microBatches = microBatches;
    options.clipNorm = 0.5;
    options.shardElements = 64;
    buildTrainingStepPipeline(manager, options);
    EXPECT_TRUE(module && succeeded(manager.run(*module))) << errors;
    modules.push_back(std::move(module));
    return modules.back()->lookupSymbol<func::FuncOp>("step");
  }

  /// Draws the state and runs `steps` steps; what each gives.
  template <typename Scalar>
  std::vector<StepValues<Scalar>> runSteps(func::FuncOp function, int64_t steps) {
    FailureOr<run::StepSignature> signature = run::getStepSignature(function);
    EXPECT_TRUE(succeeded(signature)) << errors;
    auto data =
        llvm::cantFail(run::TokenData::open(idsPath.str(), signature->batch, documentEnd, signature->ignoreIndex));
    return runSteps<Scalar>(*signature, data, steps);
  }

  template <typename Scalar>
  std::vector<StepValues<Scalar>> runSteps(const run::StepSignature &signature, const run::TokenData &data,
                                           int64_t steps) {
    run::Executor executor = makeExecutor(signature, std::is_same_v<Scalar, double> ? Mode::Float64 : Mode::Exact);
    auto *interpreter = static_cast<InterpreterExecutor *>(executor.step.get());
    std::vector<StepValues<Scalar>> values;
    digests.clear();
    for (run::TrainingCounters counters; counters.batch < steps; ++counters.batch, ++counters.update) {
      llvm::cantFail(run::writeInputs(*interpreter, signature, data, counters, learningRate));
      std::string error = llvm::toString(interpreter->run());
      EXPECT_EQ(error, "");
      if (!error.empty())
        return values;
      values.push_back(assemble<Scalar>(*interpreter, signature));
      digests.push_back(llvm::cantFail(run::getDigests(executor, signature)));
    }
    return values;
  }

  /// An executor with drawn state.
  static run::Executor makeExecutor(const run::StepSignature &signature, Mode mode) {
    run::Executor executor;
    executor.step = createInterpreterExecutor(signature.function, static_cast<int>(signature.batch.ranks), mode);
    auto *interpreter = static_cast<InterpreterExecutor *>(executor.step.get());
    executor.getPartsDigest = [=](ArrayRef<ResultPart> parts) { return interpreter->getResultDigest(parts); };
    llvm::cantFail(run::drawState(*interpreter, signature, /*seed=*/1, [] { return false; }));
    return executor;
  }

  /// The results of a run. Ranks that hold the same must agree.
  template <typename Scalar>
  static StepValues<Scalar> assemble(const InterpreterExecutor &executor, const run::StepSignature &signature) {
    StepValues<Scalar> values;
    auto append = [&](const std::string &name, unsigned index, int64_t first, int64_t count, int64_t parts) {
      std::vector<Scalar> &whole = values[name];
      for (int64_t rank = 0; rank < executor.getRanks(); ++rank) {
        auto part = executor.getResult(rank, index).get<Scalar>().slice(first, count);
        if (rank < parts)
          whole.insert(whole.end(), part.begin(), part.end());
        else
          EXPECT_EQ(part, ArrayRef(whole).slice(rank % parts * count, count)) << name << " on rank " << rank;
      }
    };
    append("loss", signature.loss, 0, 1, 1);
    append("gradient_norm", signature.gradientNorm, 0, 1, 1);
    for (const run::StateGroup *group : signature.getGroups())
      for (moe::MemberAttr member : group->layout.getMembers())
        append((stringifyRole(group->role) + " " + member.getParameter().getName()).str(), group->result,
               member.getOffset(), member.getElements(), signature.getParts(member));
    for (const run::StateBuffer &buffer : signature.buffers)
      append("buffer " + buffer.name, buffer.result, 0, ShapedType::getNumElements(buffer.shape), 1);
    return values;
  }

  llvm::SmallString<128> idsPath;
  std::vector<std::vector<run::ResultDigest>> digests; ///< Of the last runSteps, by step.
};

/// Every value bit by bit.
inline void expectEqual(const std::vector<StepValues<Field>> &actual, const std::vector<StepValues<Field>> &expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t step = 0; step < actual.size(); ++step) {
    ASSERT_EQ(actual[step].size(), expected[step].size());
    for (const auto &[name, elements] : expected[step]) {
      auto found = actual[step].find(name);
      ASSERT_TRUE(found != actual[step].end()) << name;
      EXPECT_TRUE(found->second == elements) << "step " << step + 1 << ": " << name;
    }
  }
}

} // namespace mlir::plateau::test

#endif // PLATEAU_TEST_UNIT_INTERPRETER_WHOLESTEPTEST_H
