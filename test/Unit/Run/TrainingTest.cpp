//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Training.h"
#include "FakeExecutor.h"
#include "plateau/Run/Interrupt.h"
#include "plateau/Run/ParameterInit.h"
#include "plateau/Run/Safetensors.h"
#include <cmath>
#include <csignal>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

namespace {
/// Runs of a step that only mimics training: what it computes depends on all of its arguments.
class TrainingTest : public RunTest {
protected:
  void setUp(const std::string &text) {
    module = parse(text);
    signature = *getStepSignature(*findStep(*module));
    if (ids.empty())
      for (uint32_t i = 0; i < 41; ++i)
        ids.push_back(i * i % 5);
  }

  llvm::Error mimic(FakeExecutor &executor, int rank, FakeBuffers &buffers) {
    int32_t t = buffers.argument<int32_t>(5)[0];
    updates.push_back(t);
    float lr = buffers.argument<float>(4)[0];
    auto first = buffers.argument<float>(8), second = buffers.argument<float>(9);
    bool skip = executor.runs == skippedRun;
    float loss = 0;
    for (int32_t token : buffers.argument<int32_t>(0))
      loss = loss * 3 + token;
    for (int i = 0; i < 13; ++i) {
      float gradient = loss + i;
      if (signature.master)
        buffers.argument<uint16_t>(7)[i] = roundToBF16(gradient);
      else
        buffers.argument<float>(7)[i] = gradient;
      if (skip)
        continue;
      first[i] = 0.5f * first[i] + gradient;
      second[i] += gradient * gradient;
      auto parameters = buffers.argument<float>(signature.master ? 10 : 6);
      parameters[i] -= lr * first[i] / (t + std::sqrt(second[i]));
      if (signature.master)
        buffers.argument<uint16_t>(6)[i] = roundToBF16(parameters[i]);
    }
    buffers.result<float>(0)[0] = loss;
    buffers.result<float>(1)[0] = skip ? INFINITY : 1;
    return llvm::Error::success();
  }

  /// Runs and gives what was printed; the parameters stay in `last`.
  std::string run(TrainingOptions options, StepReporter::Style style = StepReporter::Style::Plain,
                  FakeExecutor::Body body = nullptr) {
    options.learningRate = 0.125;
    std::string text;
    llvm::raw_string_ostream os(text), noteStream(notes);
    Executor executor;
    auto fake = std::make_unique<FakeExecutor>(
        signature.function, signature.batch.ranks,
        body ? body : [this](FakeExecutor &executor, int rank, FakeBuffers &buffers) {
          return mimic(executor, rank, buffers);
        });
    FakeExecutor *step = fake.get();
    executor.step = std::move(fake);
    InterruptScope interrupts(*step);
    StepReporter reporter(os, style, options.steps);
    auto data = TokenData::open(writeIds("ids", ids), signature.batch, std::nullopt, -100);
    EXPECT_TRUE(static_cast<bool>(data));
    auto made = train(executor, signature, *data, 1, options, reporter, noteStream);
    last = step->buffers;
    if (!made)
      return "error: " + llvm::toString(made.takeError());
    summary = *made;
    return text;
  }

  TrainingOptions steps(int64_t count) {
    TrainingOptions options;
    options.steps = count;
    return options;
  }

  OwningOpRef<ModuleOp> module;
  StepSignature signature;
  std::vector<uint32_t> ids;
  std::vector<FakeBuffers> last;
  std::vector<int32_t> updates;
  TrainingSummary summary;
  std::string notes;
  int skippedRun = -1;
};
} // namespace

TEST_F(TrainingTest, StartsFromTheSeed) {
  setUp(getStepText());
  EXPECT_EQ(run(steps(0)), "");
  auto parameters = last[0].argument<float>(6);
  EXPECT_EQ(parameters[3], static_cast<float>(0.5 * NumberStream(1, "model.embed_tokens.weight").getNormal(3)));
  EXPECT_EQ(parameters[12], 1.0f);
  EXPECT_EQ(parameters[13], 0.0f); // padding
  for (unsigned group : {7, 8, 9})
    for (float value : last[0].argument<float>(group))
      EXPECT_EQ(value, 0);
}

TEST_F(TrainingTest, MastersHoldWhatParametersRound) {
  setUp(getStepText(/*isBF16=*/true));
  EXPECT_EQ(run(steps(0)), "");
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(last[0].argument<uint16_t>(6)[i], roundToBF16(last[0].argument<float>(10)[i]));
  EXPECT_EQ(last[0].argument<float>(10)[0],
            static_cast<float>(0.5 * NumberStream(1, "model.embed_tokens.weight").getNormal(0)));
}

TEST_F(TrainingTest, AllRanksStartAlike) {
  setUp(getStepText(false, 3));
  run(steps(0));
  EXPECT_EQ(last[0].arguments[6], last[2].arguments[6]);
}

TEST_F(TrainingTest, PrintsALineAStep) {
  setUp(getStepText());
  std::string text = run(steps(2));
  // Ids 0 1 4 4 and 1 0 1 4: 3·(3·(3·0 + 1) + 4) + 4 = 25 and 3·(3·(3·1 + 0) + 1) + 4 = 34.
  EXPECT_EQ(text.find("step 1 loss 25.000000 "), 0u) << text;
  EXPECT_NE(text.find("\nstep 2 loss 34.000000 "), std::string::npos) << text;
  EXPECT_NE(text.find(" tokens/s peak 1.0 MiB\n"), std::string::npos) << text;
  EXPECT_EQ(updates, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(summary.peaks.getPeakBytes(PLR_DEVICE), 1 << 20);
}

TEST_F(TrainingTest, PrintsAnObjectAStep) {
  setUp(getStepText());
  skippedRun = 2;
  std::string text = run(steps(2), StepReporter::Style::JSON);
  EXPECT_EQ(text.find("{\"step\": 1, \"loss\": 25, \"tokens_per_second\": "), 0u) << text;
  EXPECT_NE(text.find(", \"peak_bytes\": 1048576, \"live_bytes\": 1056}\n{\"step\": 2, \"loss\": 34, "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(", \"peak_bytes\": 1048576, \"live_bytes\": 1056, \"skipped\": true}\n"), std::string::npos)
      << text;
}

TEST_F(TrainingTest, DrawsABarOnATerminal) {
  setUp(getStepText());
  std::string text = run(steps(2), StepReporter::Style::Terminal);
  EXPECT_NE(text.find("[####################....................] 1/2\r\033[Kstep 2"), std::string::npos) << text;
  EXPECT_EQ(text.find("2/2"), std::string::npos) << text;
}

TEST_F(TrainingTest, SkippedUpdatesDoNotCount) {
  setUp(getStepText());
  skippedRun = 2;
  std::string text = run(steps(3));
  EXPECT_NE(text.find("\nstep 2 update skipped: the gradient norm is inf\n"), std::string::npos) << text;
  EXPECT_EQ(updates, (std::vector<int32_t>{1, 2, 2}));
  EXPECT_EQ(summary.skipped, 1);
  EXPECT_EQ(summary.steps, 3);
}

TEST_F(TrainingTest, GoingOnGivesTheSameBits) {
  for (bool isBF16 : {false, true}) {
    setUp(getStepText(isBF16));
    skippedRun = 2;
    run(steps(7));
    std::vector<FakeBuffers> whole = last;
    TrainingOptions first = steps(3), second = steps(4);
    first.save = second.init = getPath("state");
    run(first);
    skippedRun = -1;
    updates.clear();
    std::string text = run(second);
    EXPECT_EQ(text.find("step 4 "), 0u) << text;
    EXPECT_EQ(updates.front(), 3); // the update of step 2 was skipped
    EXPECT_EQ(notes, "");
    for (unsigned i = 0; i < whole[0].arguments.size(); ++i)
      EXPECT_EQ(last[0].arguments[i], whole[0].arguments[i]) << i;
  }
}

TEST_F(TrainingTest, StartsFromParametersAlone) {
  setUp(getStepText());
  {
    auto writer = llvm::cantFail(
        SafetensorsWriter::create(getPath("p"), {{"norm", "F32", {3}}, {"model.embed_tokens.weight", "F32", {5, 2}}}));
    writer.append(std::vector<char>(12, 1));
    writer.append(std::vector<char>(40, 2));
    ASSERT_EQ(getText(writer.finish()), "");
  }
  TrainingOptions options = steps(0);
  options.init = getPath("p");
  EXPECT_EQ(run(options), "");
  EXPECT_EQ(notes, "note: " + getPath("p") + ": holds parameters alone; the optimizer starts from zero, at step 1\n");
  std::vector<char> expected(64);
  std::fill_n(expected.begin(), 40, 2);
  std::fill_n(expected.begin() + 40, 12, 1);
  EXPECT_EQ(last[0].arguments[6], expected);
}

TEST_F(TrainingTest, RefusesStatesOfAnotherStep) {
  setUp(getStepText());
  TrainingOptions options = steps(0);
  options.init = getPath("p");
  auto refuse = [&](std::vector<SafetensorsEntry> entries) {
    int64_t bytes = 0;
    for (const SafetensorsEntry &entry : entries) {
      int64_t own = getDtypeBytes(entry.dtype);
      for (int64_t size : entry.shape)
        own *= size;
      bytes += own;
    }
    auto writer = llvm::cantFail(SafetensorsWriter::create(getPath("p"), entries));
    writer.append(std::vector<char>(bytes));
    EXPECT_EQ(getText(writer.finish()), "");
    std::string text = run(options), prefix = "error: " + getPath("p") + ": ";
    EXPECT_TRUE(llvm::StringRef(text).starts_with(prefix)) << text;
    return text.substr(std::min(prefix.size(), text.size()));
  };
  SafetensorsEntry table{"model.embed_tokens.weight", "F32", {5, 2}}, norm{"norm", "F32", {3}};
  EXPECT_EQ(refuse({table}), "has no tensor 'norm'");
  EXPECT_EQ(refuse({table, norm, {"other", "F32", {}}}),
            "tensor 'other' is none of the step's; what --save wrote fits a step of the same model and dtype");
  EXPECT_EQ(refuse({table, {"norm", "F32", {1, 3}}}), "tensor 'norm' has the shape [1, 3]; the step wants [3]");
  EXPECT_EQ(refuse({table, {"norm", "BF16", {3}}}), "tensor 'norm' is BF16; the step wants F32");
  EXPECT_EQ(refuse({table, norm, {"step", "I64", {}}}),
            "tensor 'step' is 0; it must be from 1 to 2147483647\n" + getPath("p") + ": has no tensor 'batch'");
}

TEST_F(TrainingTest, RefusesNumbersThatTrainingCannotGoOnFrom) {
  setUp(getStepText());
  TrainingOptions options = steps(0);
  options.save = getPath("s");
  EXPECT_EQ(run(options), "");
  options = steps(0);
  options.init = getPath("p");
  auto refuse = [&](llvm::StringRef tensor, float value) {
    auto file = llvm::cantFail(SafetensorsReader::open(getPath("s")));
    auto writer = llvm::cantFail(SafetensorsWriter::create(getPath("p"), file.getEntries()));
    for (const SafetensorsEntry &entry : file.getEntries()) {
      std::vector<char> bytes = file.getData(entry).vec();
      if (entry.name == tensor)
        std::memcpy(bytes.data() + 4, &value, sizeof(value));
      writer.append(bytes);
    }
    EXPECT_EQ(getText(writer.finish()), "");
    return run(options);
  };
  std::string cause = " as element 1; a run starts from finite numbers, and second moments that are not negative";
  EXPECT_EQ(refuse("norm", 1), "");
  EXPECT_EQ(refuse("norm", NAN), "error: " + getPath("p") + ": tensor 'norm' has nan" + cause);
  EXPECT_EQ(refuse("optimizer.first.norm", INFINITY),
            "error: " + getPath("p") + ": tensor 'optimizer.first.norm' has inf" + cause);
  EXPECT_EQ(refuse("optimizer.second.norm", -1),
            "error: " + getPath("p") + ": tensor 'optimizer.second.norm' has -1" + cause);
}

TEST_F(TrainingTest, NumbersOfStepsHave32Bits) {
  setUp(getStepText());
  TrainingOptions options = steps(2);
  options.firstStep = INT32_MAX;
  EXPECT_EQ(run(options),
            "error: after 2 steps the number of the next would be 2147483648; there is none above 2147483647");
}

TEST_F(TrainingTest, RoundsParametersOfF32) {
  setUp(getStepText(/*isBF16=*/true));
  float third = 1.0f / 3;
  {
    auto writer = llvm::cantFail(
        SafetensorsWriter::create(getPath("p"), {{"model.embed_tokens.weight", "F32", {5, 2}}, {"norm", "F32", {3}}}));
    for (int i = 0; i < 13; ++i)
      writer.append({reinterpret_cast<const char *>(&third), 4});
    ASSERT_EQ(getText(writer.finish()), "");
  }
  TrainingOptions options = steps(0);
  options.init = getPath("p");
  EXPECT_EQ(run(options), "");
  EXPECT_EQ(last[0].argument<float>(10)[0], third);
  EXPECT_EQ(last[0].argument<uint16_t>(6)[0], 0x3EAB); // 0.333984375
}

TEST_F(TrainingTest, SavesGradients) {
  setUp(getStepText());
  TrainingOptions options = steps(1);
  options.saveGradients = getPath("g");
  run(options);
  auto file = llvm::cantFail(SafetensorsReader::open(getPath("g")));
  ASSERT_EQ(file.getEntries().size(), 2u);
  float value;
  std::memcpy(&value, file.getData(*file.find("norm")).data() + 8, 4);
  EXPECT_EQ(value, 25 + 12);
}

TEST_F(TrainingTest, BadIdsAreFoundBeforeTheFirstStep) {
  ids.assign(41, 1);
  ids[30] = 5;
  setUp(getStepText());
  EXPECT_EQ(run(steps(8)), "error: " + getPath("ids") + ": token id 5 at byte 120 is not in the vocabulary of 5");
  EXPECT_TRUE(updates.empty());
  EXPECT_EQ(run(steps(7)).find("step 1 "), 0u);
}

TEST_F(TrainingTest, FirstStepChoosesTheBatch) {
  setUp(getStepText());
  TrainingOptions options = steps(1);
  options.firstStep = 2;
  std::string text = run(options);
  EXPECT_EQ(text.find("step 2 loss 34.000000 "), 0u) << text;
  EXPECT_EQ(updates, std::vector<int32_t>{1});
}

TEST_F(TrainingTest, AFailureNamesTheStep) {
  setUp(getStepText());
  std::string text =
      run(steps(5), StepReporter::Style::Plain, [&](FakeExecutor &executor, int rank, FakeBuffers &buffers) {
        return executor.runs == 3 ? makeError("no memory") : mimic(executor, rank, buffers);
      });
  EXPECT_EQ(text, "error: step 3: no memory");
}

TEST_F(TrainingTest, InterruptsSaveNothing) {
  for (int number : {SIGINT, SIGTERM}) {
    setUp(getStepText());
    TrainingOptions options = steps(5);
    options.save = getPath("state");
    std::string text =
        run(options, StepReporter::Style::Plain, [&](FakeExecutor &executor, int rank, FakeBuffers &buffers) {
          if (executor.runs == 3) {
            std::raise(number);
            EXPECT_TRUE(executor.interrupted);
            return makeError("interrupted");
          }
          return mimic(executor, rank, buffers);
        });
    EXPECT_EQ(text, "error: interrupted after 2 of 5 steps; nothing was saved");
    EXPECT_EQ(listFiles(), std::vector<std::string>{"ids"});
  }
}

TEST_F(TrainingTest, FilesThatCannotBeWrittenAreToldFirst) {
  setUp(getStepText());
  TrainingOptions options = steps(1);
  options.save = getPath("none/state");
  EXPECT_EQ(run(options).find("error: " + getPath("none/state") + ": cannot be written: "), 0u);
  EXPECT_TRUE(updates.empty());
}

TEST_F(TrainingTest, StateThatIsNotDonatedIsCopied) {
  std::string text = getStepText();
  for (int i = 2; i < 6; ++i) {
    std::string donated = llvm::formatv(", moe.donated = {0} : i64", i);
    text.erase(text.find(donated), donated.size());
  }
  setUp(text);
  run(steps(3), StepReporter::Style::Plain, [](FakeExecutor &, int, FakeBuffers &buffers) {
    for (int i = 0; i < 4; ++i)
      for (int element = 0; element < 16; ++element)
        buffers.result<float>(2 + i)[element] = buffers.argument<float>(6 + i)[element] + i;
    buffers.result<float>(1)[0] = 0;
    return llvm::Error::success();
  });
  EXPECT_EQ(last[0].argument<float>(9)[0], 9);
  EXPECT_EQ(last[0].argument<float>(8)[0], 6);
}
