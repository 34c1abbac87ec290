//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A step gives the same numbers however many ranks divide it, in however many micro-batches, with checkpoints and
// without: in exact mode bit by bit, over several steps, so that updated parameters matter.
//===----------------------------------------------------------------------===//

#include "WholeStepTest.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include <set>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::importer;
using namespace mlir::plateau::test;

namespace {
constexpr Scoring allScorings[] = {Scoring::Softmax, Scoring::TopKSoftmax, Scoring::Sigmoid};
constexpr int64_t allRanks[] = {1, 2, 4, 8};

/// The largest difference of a tensor, relative to its largest number.
double getDifference(ArrayRef<double> a, ArrayRef<double> b) {
  double difference = 0, largest = 0;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    difference = std::max(difference, std::abs(x - y));
    largest = std::max(largest, std::abs(y));
  }
  EXPECT_GT(largest, 0);
  return difference / largest;
}

class ExactStep : public WholeStepTest {
protected:
  void expectSame(const ModelConfig &config, const std::vector<StepValues<Field>> &expected, const Division &division,
                  WorkingType type = WorkingType::F32) {
    SCOPED_TRACE(division.describe());
    func::FuncOp step = build(config, division, type);
    ASSERT_TRUE(step);
    expectEqual(runSteps<Field>(step, static_cast<int64_t>(expected.size())), expected);
    modules.clear();
  }

  std::vector<StepValues<Field>> runOnOneRank(const ModelConfig &config, int64_t steps,
                                              WorkingType type = WorkingType::F32) {
    func::FuncOp step = build(config, Division(), type);
    return step ? runSteps<Field>(step, steps) : std::vector<StepValues<Field>>();
  }
};

TEST_F(ExactStep, DoesNotDependOnTheDivision) {
  ModelConfig config = makeConfig(Scoring::Softmax);
  auto expected = runOnOneRank(config, 2);
  for (int64_t ranks : allRanks)
    for (int64_t expertRanks : allRanks)
      for (int64_t vocabularyRanks : allRanks)
        if (expertRanks <= ranks && vocabularyRanks <= ranks)
          expectSame(config, expected, {ranks, expertRanks, vocabularyRanks});
}

TEST_F(ExactStep, DoesNotDependOnMicroBatchesAndCheckpoints) {
  for (Scoring scoring : allScorings) {
    SCOPED_TRACE(static_cast<int>(scoring));
    ModelConfig config = makeConfig(scoring);
    auto expected = runOnOneRank(config, 3);
    for (int64_t ranks : allRanks)
      for (int64_t microBatches : {1, 2, 4})
        for (Checkpoint checkpoint : {Checkpoint::None, Checkpoint::Layer})
          // Copies of experts on some ranks, and of the projection on others.
          expectSame(config, expected,
                     {ranks, std::max<int64_t>(ranks / 2, 1), std::min<int64_t>(ranks, 2), microBatches, checkpoint});
  }
}

// The other kind of shared expert, weights that are not normalized, a correction bias, tied embeddings, and a master
// copy.
TEST_F(ExactStep, DoesNotDependOnTheDivisionOfOtherModels) {
  ModelConfig config = makeConfig(Scoring::Sigmoid);
  config.experts.sharedGate = false;
  config.experts.normalize = false;
  config.experts.correctionBias = true;
  config.tiedEmbedding = true;
  config.sparse = {true, true};
  auto expected = runOnOneRank(config, 2, WorkingType::BF16);
  for (int64_t ranks : allRanks)
    expectSame(config, expected, {ranks, ranks, 1, 2, Checkpoint::Layer}, WorkingType::BF16);
}

// The numbers that are compared tell programs apart, step from step and parameter from parameter.
TEST_F(ExactStep, DependsOnTheModel) {
  auto softmax = runOnOneRank(makeConfig(Scoring::Softmax), 2),
       topK = runOnOneRank(makeConfig(Scoring::TopKSoftmax), 1);
  ASSERT_EQ(softmax.size(), 2u);
  ASSERT_EQ(topK.size(), 1u);
  for (const auto &[name, elements] : softmax[0]) {
    EXPECT_FALSE(elements == topK[0].at(name)) << name;
    EXPECT_FALSE(elements == softmax[1].at(name)) << name;
  }
}

// Digests of the whole tensors do not tell ranks apart either, but do tell steps apart.
TEST_F(ExactStep, DigestsDoNotDependOnTheDivision) {
  ModelConfig config = makeConfig(Scoring::Sigmoid);
  auto getHashes = [&](const Division &division) {
    runSteps<Field>(build(config, division), 2);
    std::vector<std::pair<std::string, uint64_t>> hashes;
    for (const auto &ofStep : digests)
      for (const run::ResultDigest &digest : ofStep)
        hashes.push_back({digest.name, digest.hash});
    return hashes;
  };
  auto expected = getHashes({});
  ASSERT_EQ(expected.size(), 12u);
  std::vector<std::string> names;
  std::set<uint64_t> different;
  for (const auto &[name, hash] : expected) {
    names.push_back(name);
    different.insert(hash);
  }
  names.resize(6);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "gradient_norm", "parameters", "gradients", "first_moment",
                                             "second_moment"}));
  EXPECT_EQ(different.size(), 12u);
  EXPECT_EQ(getHashes({4, 2, 4, 2}), expected);
  EXPECT_EQ(getHashes({8, 8, 1, 1, Checkpoint::Layer}), expected);
}

// --- Ranks that hold different numbers of tokens ---

class PaddedStep : public ExactStep {
protected:
  static constexpr int64_t rows = 12;

  /// A document ends with token 7 of each batch, where ranks may part, and another with token 12.
  PaddedStep() {
    llvm::SmallVector<llvm::support::ulittle32_t> ids;
    for (uint32_t i = 0; i < 3 * rows + 1; ++i) {
      bool isEnd = i % rows == 6 || i % rows == rows - 1;
      ids.push_back(llvm::support::ulittle32_t(isEnd ? documentEnd : run::NumberStream(4, "ids").getBelow(i, 32)));
    }
    std::error_code error;
    llvm::raw_fd_ostream(idsPath, error).write(reinterpret_cast<const char *>(ids.data()), ids.size_in_bytes());
    EXPECT_FALSE(error);
  }

  template <typename Scalar>
  std::vector<StepValues<Scalar>> runSteps(func::FuncOp function, std::vector<int64_t> rankTokens) {
    FailureOr<run::StepSignature> signature = run::getStepSignature(function);
    EXPECT_TRUE(succeeded(signature)) << errors;
    EXPECT_EQ(signature->tokenCount.has_value(), !rankTokens.empty());
    signature->batch.rankTokens = std::move(rankTokens);
    auto data = llvm::cantFail(run::TokenData::open(idsPath.str(), signature->batch, documentEnd, -100));
    return WholeStepTest::runSteps<Scalar>(*signature, data, 3);
  }
};

TEST_F(PaddedStep, GivesWhatOneRankGives) {
  for (Scoring scoring : allScorings) {
    SCOPED_TRACE(static_cast<int>(scoring));
    ModelConfig config = makeConfig(scoring);
    auto expected = runSteps<Field>(buildRows(config, {}, rows, /*padded=*/false), {});
    ASSERT_EQ(expected.size(), 3u);
    for (Checkpoint checkpoint : {Checkpoint::None, Checkpoint::Layer}) {
      auto expectSameOf = [&](const Division &division, std::vector<int64_t> rankTokens) {
        SCOPED_TRACE(division.describe());
        expectEqual(runSteps<Field>(buildRows(config, division, rows, /*padded=*/true), rankTokens), expected);
      };
      expectSameOf({1, 1, 1, 1, checkpoint}, {12});
      expectSameOf({2, 2, 1, 1, checkpoint}, {7, 5});
      expectSameOf({2, 1, 2, 1, checkpoint}, {12, 0});
      expectSameOf({2, 2, 2, 1, checkpoint}, {0, 12});
      expectSameOf({4, 2, 4, 1, checkpoint}, {0, 7, 0, 5});
      expectSameOf({4, 4, 1, 1, checkpoint}, {7, 0, 5, 0});
    }
  }
}

// More rows than tokens on every rank.
TEST_F(PaddedStep, DoesNotDependOnTheRows) {
  ModelConfig config = makeConfig(Scoring::Sigmoid);
  auto expected = runSteps<Field>(buildRows(config, {}, rows, /*padded=*/false), {});
  expectEqual(runSteps<Field>(buildRows(config, {}, 17, /*padded=*/true), {12}), expected);
  expectEqual(runSteps<Field>(buildRows(config, {2, 2, 1}, 9, /*padded=*/true), {7, 5}), expected);
}

TEST_F(PaddedStep, GivesWhatOneRankGivesInFloat64) {
  ModelConfig config = makeConfig(Scoring::Softmax);
  auto expected = runSteps<double>(buildRows(config, {}, rows, /*padded=*/false), {});
  auto actual = runSteps<double>(buildRows(config, {4, 2, 4}, rows, /*padded=*/true), {7, 0, 5, 0});
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto &[name, numbers] : expected[0])
    EXPECT_LE(getDifference(actual[0].at(name), numbers), 1e-12) << name;
}

TEST_F(PaddedStep, RoutesByTheNumberOfTokens) {
  func::FuncOp step = buildRows(makeConfig(Scoring::Softmax), {2, 2, 1}, rows, /*padded=*/true);
  int64_t routes = 0;
  step.walk([&](moe::RouteOp op) {
    ++routes;
    EXPECT_EQ(op.getTokenCount(), step.getArgument(*run::getStepSignature(step)->tokenCount));
  });
  EXPECT_EQ(routes, 1);
}

// --- Sums that are left out are noticed ---

/// Takes the op out of a step: its result is its operand.
void skip(Operation *op) {
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
}

TEST_F(ExactStep, NoticesEachMissingSum) {
  ModelConfig config = makeConfig(Scoring::Softmax);
  auto hashOneRank = [&] {
    runSteps<Field>(build(config, {}), 1);
    return llvm::map_to_vector(digests[0], [](const run::ResultDigest &digest) { return digest.hash; });
  };
  auto expected = hashOneRank();
  Division division = {2, 2, 1};
  std::string disagreements;
  for (int64_t left = 0, sums = 1; left < sums; ++left) {
    func::FuncOp function = build(config, division);
    SmallVector<shard::AllReduceOp> all;
    function.walk([&](shard::AllReduceOp op) { all.push_back(op); });
    sums = static_cast<int64_t>(all.size());
    ASSERT_GT(sums, 10);
    std::string name = moe::getLocationName(all[left].getLoc()).str();
    skip(all[left]);
    FailureOr<run::StepSignature> signature = run::getStepSignature(function);
    ASSERT_TRUE(succeeded(signature));
    auto data = llvm::cantFail(run::TokenData::open(idsPath.str(), signature->batch, documentEnd, -100));
    run::Executor executor = makeExecutor(*signature, Mode::Exact);
    llvm::cantFail(run::writeInputs(*executor.step, *signature, data, {}, learningRate));
    llvm::cantFail(executor.step->run());
    auto found = run::getDigests(executor, *signature);
    if (!found) {
      disagreements += llvm::toString(found.takeError()) + "\n";
      continue;
    }
    EXPECT_NE(llvm::map_to_vector(*found, [](const run::ResultDigest &digest) { return digest.hash; }), expected)
        << "without sum " << left << " at " << name;
  }
  for (const char *text : {"ranks 0 and 1 give a different loss\n",
                           "ranks 0 and 1 hold the same part of 'model.norm.weight' and give it different gradients\n"})
    EXPECT_TRUE(StringRef(disagreements).contains(text)) << text << "in\n" << disagreements;
}

// --- In float64 ---

using Float64Step = WholeStepTest;

TEST_F(Float64Step, DoesNotDependOnTheDivision) {
  for (Scoring scoring : allScorings) {
    SCOPED_TRACE(static_cast<int>(scoring));
    ModelConfig config = makeConfig(scoring);
    auto expected = runSteps<double>(build(config, {}), 2);
    ASSERT_EQ(expected.size(), 2u);
    for (const Division &division :
         {Division{2, 2, 1, 2}, Division{4, 2, 4, 1, Checkpoint::Layer}, Division{8, 8, 2, 4}, Division{8, 4, 8, 1}}) {
      SCOPED_TRACE(division.describe());
      auto actual = runSteps<double>(build(config, division), 2);
      ASSERT_EQ(actual.size(), 2u);
      // What the whole backward pass of dispatched rows comes down to, then all the rest.
      std::string router = "gradients model.layers.1.mlp.gate.weight";
      ASSERT_LE(getDifference(actual[0].at(router), expected[0].at(router)), 1e-12);
      for (int step : {0, 1})
        for (const auto &[name, numbers] : expected[step])
          EXPECT_LE(getDifference(actual[step].at(name), numbers), 1e-12) << "step " << step + 1 << ": " << name;
    }
  }
}
} // namespace
