//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// State whose tensors are divided over ranks: what is drawn, saved and loaded does not depend on how.
//===----------------------------------------------------------------------===//

#include "plateau/Run/TrainingState.h"
#include "FakeExecutor.h"
#include "plateau/Run/ParameterInit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

namespace {
/// Ranks, and the parts in which they hold the experts [4, 3] and the head [8].
struct Division {
  int ranks, expertParts, headParts;

  int64_t getExpertElements() const { return 12 / expertParts; }
  int64_t getHeadElements() const { return 8 / headParts; }
  int64_t getHeadOffset() const { return 10 + getExpertElements(); }
  int64_t getElements() const { return getHeadOffset() + getHeadElements() + 3; }
  int64_t getGroupElements() const { return getElements() + 2; }
};

constexpr Division divisions[] = {{1, 1, 1}, {2, 2, 1}, {2, 1, 2}, {4, 4, 2}, {4, 2, 4}, {8, 4, 8}, {8, 2, 2}};

/// A step whose group has a table of 10 elements, the experts, the head, a norm of 3, and padding.
std::string getDividedText(Division division, bool isBF16) {
  std::string text = getStepText(isBF16, division.ranks);
  auto replaceAll = [&](const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  auto member = [](llvm::StringRef name, llvm::StringRef shard, int64_t offset, llvm::StringRef shape) {
    return llvm::formatv("<<\"{0}\", decay = true, mean = 0.25 : f64, deviation = 0.5 : f64{1}>, offset = {2}, shape = "
                         "[{3}]>, ",
                         name, shard, offset, shape)
        .str();
  };
  int64_t normOffset = division.getHeadOffset() + division.getHeadElements();
  replaceAll(
      "<<\"norm\"",
      member("experts", ", shard = @experts", 10, std::to_string(4 / division.expertParts) + ", 3") +
          member("head", ", shard = @vocab", division.getHeadOffset(), std::to_string(division.getHeadElements())) +
          "<<\"norm\"");
  replaceAll("offset = 10, shape = [3]", "offset = " + std::to_string(normOffset) + ", shape = [3]");
  replaceAll("tensor<16x", "tensor<" + std::to_string(division.getGroupElements()) + "x");
  auto grid = [&](llvm::StringRef name, int parts) {
    return llvm::formatv("shard.grid @{0}(shape = {1}x{2})\n", name, division.ranks / parts, parts).str();
  };
  return text + grid("experts", division.expertParts) + grid("vocab", division.headParts);
}

class TrainingStateTest : public RunTest {
protected:
  /// A step on ranks, and buffers for it.
  struct Run {
    OwningOpRef<ModuleOp> module;
    StepSignature signature;
    std::unique_ptr<FakeExecutor> executor;
    Division division;

    llvm::MutableArrayRef<float> group(int rank, unsigned argument) {
      return executor->buffers[rank].argument<float>(argument);
    }
  };

  Run start(Division division, bool isBF16 = false) {
    Run run{parse(getDividedText(division, isBF16)), {}, nullptr, division};
    auto signature = getStepSignature(*findStep(*run.module));
    EXPECT_TRUE(succeeded(signature)) << diagnostics;
    run.signature = *signature;
    run.executor = std::make_unique<FakeExecutor>(run.signature.function, division.ranks, nullptr);
    return run;
  }
  static void draw(Run &run) {
    EXPECT_EQ(getText(drawState(*run.executor, run.signature, 7, [] { return false; })), "");
  }
  std::string save(Run &run, TrainingCounters counters = {}) {
    EXPECT_EQ(getText(saveState(*run.executor, run.signature, counters, getPath("state"))), "");
    return readFile("state");
  }
  std::string load(Run &run, llvm::StringRef name = "state") {
    auto counters = loadState(*run.executor, run.signature, getPath(name), [&](llvm::StringRef text) { note = text; });
    if (!counters)
      return llvm::toString(counters.takeError());
    this->counters = *counters;
    return "";
  }

  /// Writes a file of parameters alone: table, experts, head and norm, in which element e is `get(e)`.
  void writeParameters(llvm::StringRef name, llvm::function_ref<float(int64_t)> get,
                       std::vector<int64_t> expertShape = {4, 3}) {
    std::vector<SafetensorsEntry> entries = {{"model.embed_tokens.weight", "F32", {5, 2}},
                                             {"experts", "F32", expertShape},
                                             {"head", "F32", {8}},
                                             {"norm", "F32", {3}}};
    auto writer = llvm::cantFail(SafetensorsWriter::create(getPath(name), entries));
    for (const SafetensorsEntry &entry : entries) {
      int64_t elements = 1;
      for (int64_t size : entry.shape)
        elements *= size;
      for (int64_t element = 0; element < elements; ++element) {
        float value = get(element);
        writer.append({reinterpret_cast<const char *>(&value), sizeof(value)});
      }
    }
    ASSERT_EQ(getText(writer.finish()), "");
  }

  std::string note;
  TrainingCounters counters;
};
} // namespace

TEST_F(TrainingStateTest, PartsAreDrawnFromTheWhole) {
  for (Division division : divisions) {
    Run run = start(division);
    draw(run);
    for (int rank = 0; rank < division.ranks; ++rank) {
      auto values = run.group(rank, 6);
      auto expect = [&](llvm::StringRef name, int64_t offset, int64_t elements, int64_t first) {
        for (int64_t i = 0; i < elements; ++i)
          EXPECT_EQ(values[offset + i], static_cast<float>(0.25 + 0.5 * NumberStream(7, name).getNormal(first + i)))
              << division.ranks << " " << rank << " " << name.str() << " " << i;
      };
      int64_t experts = division.getExpertElements(), head = division.getHeadElements();
      expect("experts", 10, experts, rank % division.expertParts * experts);
      expect("head", division.getHeadOffset(), head, rank % division.headParts * head);
      EXPECT_EQ(values[0], static_cast<float>(0.5 * NumberStream(7, "model.embed_tokens.weight").getNormal(0)));
      EXPECT_EQ(values[division.getElements() - 1], 1);
      EXPECT_EQ(values[division.getElements()], 0);
      for (unsigned argument : {7, 8, 9})
        for (float value : run.group(rank, argument))
          EXPECT_EQ(value, 0);
    }
  }
}

TEST_F(TrainingStateTest, TheFileDoesNotTellTheRanks) {
  for (bool isBF16 : {false, true}) {
    std::string first;
    for (Division division : divisions) {
      Run run = start(division, isBF16);
      draw(run);
      std::string file = save(run);
      if (first.empty())
        first = file;
      EXPECT_EQ(file, first) << division.ranks;
    }
    auto file = llvm::cantFail(SafetensorsReader::open(getPath("state")));
    EXPECT_EQ(file.find("experts")->shape, (std::vector<int64_t>{4, 3}));
    EXPECT_EQ(file.find("optimizer.first.head")->shape, (std::vector<int64_t>{8}));
  }
}

TEST_F(TrainingStateTest, StatesPassBetweenNumbersOfRanks) {
  for (bool isBF16 : {false, true}) {
    Run from = start({4, 2, 4}, isBF16);
    draw(from);
    // First moments of the experts and second moments of the head, as the ranks with these parts would have them.
    for (int rank = 0; rank < 4; ++rank) {
      for (int i = 0; i < 6; ++i)
        from.group(rank, 8)[10 + i] = 100 + rank % 2 * 6 + i;
      for (int i = 0; i < 2; ++i)
        from.group(rank, 9)[16 + i] = 200 + rank * 2 + i;
    }
    std::string file = save(from, {5, 9});
    for (Division division : divisions) {
      Run to = start(division, isBF16);
      ASSERT_EQ(load(to), "");
      EXPECT_EQ(counters.update, 5);
      EXPECT_EQ(counters.batch, 9);
      EXPECT_EQ(note, "");
      for (int rank = 0; rank < division.ranks; ++rank) {
        int64_t experts = division.getExpertElements(), head = division.getHeadElements();
        for (int64_t i = 0; i < experts; ++i)
          EXPECT_EQ(to.group(rank, 8)[10 + i], 100 + rank % division.expertParts * experts + i);
        for (int64_t i = 0; i < head; ++i)
          EXPECT_EQ(to.group(rank, 9)[division.getHeadOffset() + i], 200 + rank % division.headParts * head + i);
      }
      EXPECT_EQ(save(to, {5, 9}), file) << division.ranks;
    }
  }
}

TEST_F(TrainingStateTest, ParametersAloneAreDivided) {
  writeParameters("p", [](int64_t element) { return element; });
  Run run = start({4, 2, 4});
  ASSERT_EQ(load(run, "p"), "");
  EXPECT_NE(note.find("holds parameters alone"), std::string::npos) << note;
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(run.group(rank, 6)[9], 9);
    EXPECT_EQ(run.group(rank, 6)[10], rank % 2 * 6);
    EXPECT_EQ(run.group(rank, 6)[17], rank * 2 + 1);
    EXPECT_EQ(run.group(rank, 6)[20], 2);
  }
}

TEST_F(TrainingStateTest, ErrorsSpeakOfWholeTensors) {
  Run run = start({4, 2, 4});
  std::string prefix = getPath("p") + ": ";
  writeParameters("p", [](int64_t) { return 0; }, {2, 3});
  EXPECT_EQ(load(run, "p"), prefix + "tensor 'experts' has the shape [2, 3]; the step wants [4, 3]");
  writeParameters("p", [](int64_t element) { return element == 11 ? NAN : 0; });
  EXPECT_EQ(load(run, "p"), prefix + "tensor 'experts' has nan as element 11; a run starts from finite numbers, and "
                                     "second moments that are not negative");
}

TEST_F(TrainingStateTest, GradientsArePutTogether) {
  Run run = start({4, 2, 4});
  for (int rank = 0; rank < 4; ++rank)
    for (auto [i, value] : llvm::enumerate(run.group(rank, 7)))
      value = rank * 1000 + i;
  auto read = [&](llvm::StringRef tensor, auto number) {
    auto file = llvm::cantFail(SafetensorsReader::open(getPath("g")));
    llvm::ArrayRef<char> bytes = file.getData(*file.find(tensor));
    std::vector<decltype(number)> values(bytes.size() / sizeof(number));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  ASSERT_EQ(getText(saveGradients(*run.executor, run.signature, nullptr, getPath("g"))), "");
  EXPECT_EQ(read("experts", float()), (std::vector<float>{10, 11, 12, 13, 14, 15, 1010, 1011, 1012, 1013, 1014, 1015}));
  EXPECT_EQ(read("head", float()), (std::vector<float>{16, 17, 1016, 1017, 2016, 2017, 3016, 3017}));
  EXPECT_EQ(read("norm", float()), (std::vector<float>{18, 19, 20}));

  auto getValues = [&](int rank) {
    std::vector<double> values(23);
    for (int i = 0; i < 23; ++i)
      values[i] = rank + i / 64.0;
    return values;
  };
  ASSERT_EQ(getText(saveGradients(*run.executor, run.signature, getValues, getPath("g"))), "");
  EXPECT_EQ(read("head", double()), (std::vector<double>{16 / 64.0, 17 / 64.0, 1 + 16 / 64.0, 1 + 17 / 64.0,
                                                         2 + 16 / 64.0, 2 + 17 / 64.0, 3 + 16 / 64.0, 3 + 17 / 64.0}));
}

TEST_F(TrainingStateTest, StepsSayHowTheyAreDivided) {
  Run run = start({8, 4, 2});
  EXPECT_EQ(run.signature.parts.lookup("experts"), 4);
  EXPECT_EQ(run.signature.parts.lookup("head"), 2);
  EXPECT_EQ(run.signature.parts.count("norm"), 0u);
  auto refuse = [&](llvm::StringRef from, llvm::StringRef to) {
    std::string text = getDividedText({8, 4, 2}, false);
    size_t at = text.find(from.str());
    EXPECT_NE(at, std::string::npos);
    auto module = parse(text.replace(at, from.size(), to.str()));
    diagnostics.clear();
    EXPECT_TRUE(failed(getStepSignature(*findStep(*module))));
    return diagnostics;
  };
  EXPECT_EQ(refuse("shard.grid @experts(shape = 2x4)", "shard.grid @experts(shape = 3x4)"),
            "@step: parameter 'experts' is divided by grid @experts, and there is none of 8 ranks\n");
  EXPECT_EQ(refuse("shard.grid @vocab(shape = 4x2)", ""),
            "@step: parameter 'head' is divided by grid @vocab, and there is none of 8 ranks\n");
  EXPECT_EQ(refuse("shape = [4]", "shape = []"),
            "@step: parameter 'head' is divided by grid @vocab, and it has no dimension\n");
}
