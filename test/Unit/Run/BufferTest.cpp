//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// State that a step moves by a rule of its own: found, drawn, saved, loaded.
//===----------------------------------------------------------------------===//

#include "FakeExecutor.h"
#include "plateau/Run/TrainingState.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

namespace {
class BufferTest : public RunTest {
protected:
  static std::string replace(std::string text, llvm::StringRef from, llvm::StringRef to) {
    size_t position = text.find(from.str());
    EXPECT_NE(position, std::string::npos) << from.str();
    return text.replace(position, from.size(), to.str());
  }

  /// A step with the state "bias", argument 10 and result 6, on two ranks.
  static std::string getText(llvm::StringRef attributes = "moe.buffer = \"bias\", moe.donated = 6 : i64") {
    std::string text = replace(getStepText(false, 2), ") -> (", ", %b: tensor<3xf32> {" + attributes.str() + "}) -> (");
    text = replace(text, ") attributes", ", tensor<3xf32>) attributes");
    text = replace(text, "%m, %v :", "%m, %v, %b :");
    return replace(text, "tensor<16xf32>, tensor<16xf32>\n}", "tensor<16xf32>, tensor<16xf32>, tensor<3xf32>\n}");
  }

  void setUp(const std::string &text) {
    module = parse(text);
    auto found = getStepSignature(*findStep(*module));
    ASSERT_TRUE(succeeded(found)) << diagnostics;
    signature = *found;
    executor = std::make_unique<FakeExecutor>(signature.function, 2, nullptr);
    ASSERT_EQ(run::getText(drawState(*executor, signature, 1, [] { return false; })), "");
  }

  llvm::MutableArrayRef<float> getBias(int rank) { return executor->buffers[rank].argument<float>(10); }

  std::string load(llvm::StringRef name) {
    auto loaded = loadState(*executor, signature, getPath(name), [&](llvm::StringRef text) { notes = text.str(); });
    return loaded ? "" : llvm::toString(loaded.takeError());
  }

  /// Writes `saved` again as `name`, each of its entries changed and given bytes by `change`; an empty name leaves it
  /// out.
  void rewrite(llvm::StringRef name, llvm::function_ref<void(SafetensorsEntry &, std::vector<char> &)> change) {
    auto file = llvm::cantFail(SafetensorsReader::open(getPath("saved")));
    std::vector<SafetensorsEntry> entries;
    std::vector<char> all;
    for (const SafetensorsEntry &entry : file.getEntries()) {
      SafetensorsEntry changed = entry;
      std::vector<char> bytes = file.getData(entry).vec();
      change(changed, bytes);
      if (changed.name.empty())
        continue;
      entries.push_back(changed);
      llvm::append_range(all, bytes);
    }
    auto writer = llvm::cantFail(SafetensorsWriter::create(getPath(name), entries));
    writer.append(all);
    ASSERT_EQ(run::getText(writer.finish()), "");
  }

  OwningOpRef<ModuleOp> module;
  StepSignature signature;
  std::unique_ptr<FakeExecutor> executor;
  std::string notes;
};
} // namespace

TEST_F(BufferTest, IsFoundByItsName) {
  setUp(getText());
  ASSERT_EQ(signature.buffers.size(), 1u);
  EXPECT_EQ(signature.buffers[0].name, "bias");
  EXPECT_EQ(signature.buffers[0].argument, 10u);
  EXPECT_EQ(signature.buffers[0].result, 6u);
  EXPECT_EQ(signature.buffers[0].shape, (llvm::SmallVector<int64_t>{3}));
  auto other = parse(getText("moe.buffer = \"bias\""));
  EXPECT_TRUE(failed(getStepSignature(*findStep(*other))));
  EXPECT_EQ(diagnostics, "@step: argument 10 is the state 'bias' and is donated to no result\n");
}

TEST_F(BufferTest, StartsFromZero) {
  setUp(getText());
  for (int rank : {0, 1})
    for (float value : getBias(rank))
      EXPECT_EQ(value, 0);
}

TEST_F(BufferTest, IsSavedAndLoadedOnAllRanks) {
  setUp(getText());
  for (int rank : {0, 1})
    llvm::copy(llvm::ArrayRef<float>{0.5, -1, 2}, getBias(rank).begin());
  ASSERT_EQ(run::getText(saveState(*executor, signature, {3, 4}, getPath("saved"))), "");
  std::vector<FakeBuffers> saved = executor->buffers;
  setUp(getText());
  EXPECT_NE(executor->buffers[0].arguments[10], saved[0].arguments[10]);
  EXPECT_EQ(load("saved"), "");
  for (int rank : {0, 1})
    for (unsigned argument : {6, 8, 9, 10})
      EXPECT_EQ(executor->buffers[rank].arguments[argument], saved[rank].arguments[argument]) << argument;
}

TEST_F(BufferTest, BelongsToTheParameters) {
  setUp(getText());
  ASSERT_EQ(run::getText(saveState(*executor, signature, {3, 4}, getPath("saved"))), "");
  // Parameters alone, with the state: no complete file.
  rewrite("alone", [&](SafetensorsEntry &entry, std::vector<char> &bytes) {
    float third = 0.25;
    if (entry.name == "bias")
      std::memcpy(bytes.data() + 8, &third, sizeof(third));
    if (entry.name == "step" || entry.name == "batch" || llvm::StringRef(entry.name).starts_with("optimizer"))
      entry.name = "";
  });
  EXPECT_EQ(load("alone"), "");
  EXPECT_NE(notes.find("holds parameters alone"), std::string::npos) << notes;
  EXPECT_EQ(getBias(1)[2], 0.25f);
}

TEST_F(BufferTest, BadStatesAreRefused) {
  setUp(getText());
  ASSERT_EQ(run::getText(saveState(*executor, signature, {3, 4}, getPath("saved"))), "");
  auto refuse = [&](llvm::function_ref<void(SafetensorsEntry &, std::vector<char> &)> change) {
    rewrite("bad", [&](SafetensorsEntry &entry, std::vector<char> &bytes) {
      if (entry.name == "bias")
        change(entry, bytes);
    });
    std::string text = load("bad"), prefix = getPath("bad") + ": ";
    EXPECT_TRUE(llvm::StringRef(text).starts_with(prefix)) << text;
    return text.substr(std::min(prefix.size(), text.size()));
  };
  EXPECT_EQ(refuse([](SafetensorsEntry &entry, std::vector<char> &) { entry.name = ""; }), "has no tensor 'bias'");
  EXPECT_EQ(refuse([](SafetensorsEntry &entry, std::vector<char> &) { entry.shape = {1, 3}; }),
            "tensor 'bias' has the shape [1, 3]; the step wants [3]");
  EXPECT_EQ(refuse([](SafetensorsEntry &, std::vector<char> &bytes) {
              float bad = NAN;
              std::memcpy(bytes.data() + 4, &bad, sizeof(bad));
            }),
            "tensor 'bias' has nan as element 1; a run starts from finite numbers");
}

TEST_F(BufferTest, HasANameOfItsOwn) {
  for (const char *name : {"norm", "optimizer.first.norm", "step"}) {
    setUp(getText("moe.buffer = \"" + std::string(name) + "\", moe.donated = 6 : i64"));
    EXPECT_EQ(run::getText(checkTensorNames(signature)),
              "state '" + std::string(name) + "': its name cannot be saved: it stands for something else in the file");
  }
  setUp(getText());
  EXPECT_EQ(run::getText(checkTensorNames(signature)), "");
}
