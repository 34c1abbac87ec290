//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// State of a tensor whose rows do not divide over the ranks: the rows behind it are zero, and in no file.
//===----------------------------------------------------------------------===//

#include "FakeExecutor.h"
#include "plateau/Run/ParameterInit.h"
#include "plateau/Run/TrainingState.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

static constexpr int64_t rows = 5, columns = 2;
static constexpr const char *tableName = "model.embed_tokens.weight";

static int64_t getPartRows(int parts) { return llvm::divideCeil(rows, parts); }

/// Rows of the table that a rank holds, by the definition: those r with r div R = its part.
static int64_t countRows(int rank, int parts) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row)
    count += row / getPartRows(parts) == rank % parts;
  return count;
}

/// A step of `ranks` ranks that hold a table of 5 rows in `parts` parts, and a norm of 3 behind it.
static std::string getPaddedText(int ranks, int parts, bool isBF16, int wholeRows = rows) {
  std::string text = getStepText(isBF16, ranks);
  auto replace = [&](const std::string &from, const std::string &to) {
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  int64_t partRows = getPartRows(parts);
  replace("mean = 0.0 : f64, deviation = 0.5 : f64>",
          llvm::formatv("mean = 0.25 : f64, deviation = 0.5 : f64, shard = @vocab, rows = {0}>", wholeRows));
  replace("shape = [5, 2]", llvm::formatv("shape = [{0}, 2]", partRows));
  replace("offset = 10, shape = [3]", llvm::formatv("offset = {0}, shape = [3]", partRows * columns));
  return text + llvm::formatv("shard.grid @vocab(shape = {0}x{1})\n", ranks / parts, parts).str();
}

namespace {
struct Division {
  int ranks, parts;
};
constexpr Division divisions[] = {{1, 1}, {2, 2}, {4, 4}, {8, 8}, {8, 2}, {4, 1}};

class PaddedStateTest : public RunTest {
protected:
  struct Run {
    OwningOpRef<ModuleOp> module;
    StepSignature signature;
    std::unique_ptr<FakeExecutor> executor;

    llvm::MutableArrayRef<float> group(int rank, unsigned argument) {
      return executor->buffers[rank].argument<float>(argument);
    }
  };

  Run start(Division division, bool isBF16 = false) {
    Run run{parse(getPaddedText(division.ranks, division.parts, isBF16)), {}, nullptr};
    auto signature = getStepSignature(*findStep(*run.module));
    EXPECT_TRUE(succeeded(signature)) << diagnostics;
    run.signature = *signature;
    run.executor = std::make_unique<FakeExecutor>(run.signature.function, division.ranks, nullptr);
    return run;
  }
  static void draw(Run &run) {
    EXPECT_EQ(getText(drawState(*run.executor, run.signature, 7, [] { return false; })), "");
  }
  std::string save(Run &run) {
    EXPECT_EQ(getText(saveState(*run.executor, run.signature, {}, getPath("state"))), "");
    return readFile("state");
  }
};
} // namespace

TEST_F(PaddedStateTest, TheVocabularyIsTheWhole) {
  for (Division division : divisions) {
    Run run = start(division);
    EXPECT_EQ(run.signature.vocabulary, rows);
    int64_t elements = 0;
    for (int part = 0; part < division.parts; ++part) {
      MemberPart held = run.signature.getPart(run.signature.parameters.layout.getMembers()[0], part);
      EXPECT_EQ(held.elements, countRows(part, division.parts) * columns);
      EXPECT_EQ(held.first, elements);
      elements += held.elements;
    }
    EXPECT_EQ(elements, rows * columns);
  }
}

TEST_F(PaddedStateTest, PaddingIsZeroAtFirst) {
  NumberStream stream(7, tableName);
  for (Division division : divisions) {
    Run run = start(division);
    draw(run);
    int64_t size = getPartRows(division.parts) * columns;
    for (int rank = 0; rank < division.ranks; ++rank) {
      int64_t held = countRows(rank, division.parts) * columns, first = rank % division.parts * size;
      for (int64_t i = 0; i < size; ++i)
        EXPECT_EQ(run.group(rank, 6)[i], i < held ? static_cast<float>(0.25 + 0.5 * stream.getNormal(first + i)) : 0.0f)
            << division.parts << " " << rank << " " << i;
      EXPECT_EQ(run.group(rank, 6)[size], 1);
    }
  }
}

TEST_F(PaddedStateTest, TheFileDoesNotTellTheRanks) {
  for (bool isBF16 : {false, true}) {
    std::string first;
    for (Division division : divisions) {
      Run run = start(division, isBF16);
      draw(run);
      // Whatever stands behind the table stays out of the file.
      int64_t held = countRows(division.ranks - 1, division.parts) * columns;
      for (int64_t i = held; i < getPartRows(division.parts) * columns; ++i)
        run.group(division.ranks - 1, 8)[i] = NAN;
      std::string file = save(run);
      if (first.empty())
        first = file;
      EXPECT_EQ(file, first) << division.ranks << " " << division.parts;
    }
    auto file = llvm::cantFail(SafetensorsReader::open(getPath("state")));
    EXPECT_EQ(file.find(tableName)->shape, (std::vector<int64_t>{rows, columns}));
  }
}

TEST_F(PaddedStateTest, StatesPassBetweenNumbersOfRanks) {
  Run from = start({4, 4});
  draw(from);
  // First moments as ranks with these parts would have them: two rows on the first two ranks, one on the third.
  for (int64_t element = 0; element < rows * columns; ++element)
    from.group(element / 4, 8)[element % 4] = 100 + element;
  std::string file = save(from);
  for (Division division : divisions) {
    Run to = start(division);
    auto counters = loadState(*to.executor, to.signature, getPath("state"), [](llvm::StringRef) {});
    ASSERT_EQ(getText(std::move(counters)), "");
    int64_t size = getPartRows(division.parts) * columns;
    for (int rank = 0; rank < division.ranks; ++rank) {
      int64_t held = countRows(rank, division.parts) * columns;
      for (int64_t i = 0; i < size; ++i)
        EXPECT_EQ(to.group(rank, 8)[i], i < held ? 100 + rank % division.parts * size + i : 0)
            << division.parts << " " << rank << " " << i;
    }
    EXPECT_EQ(save(to), file) << division.ranks << " " << division.parts;
  }
}

TEST_F(PaddedStateTest, GradientsAreThoseOfTheTable) {
  Run run = start({4, 4});
  for (int rank = 0; rank < 4; ++rank)
    for (auto [i, value] : llvm::enumerate(run.group(rank, 7)))
      value = rank * 1000 + i;
  ASSERT_EQ(getText(saveGradients(*run.executor, run.signature, nullptr, getPath("g"))), "");
  auto file = llvm::cantFail(SafetensorsReader::open(getPath("g")));
  llvm::ArrayRef<char> bytes = file.getData(*file.find(tableName));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  EXPECT_EQ(values, (std::vector<float>{0, 1, 2, 3, 1000, 1001, 1002, 1003, 2000, 2001}));
}

TEST_F(PaddedStateTest, PartsHoldTheTable) {
  auto module = parse(getPaddedText(4, 4, false, 9));
  diagnostics.clear();
  EXPECT_TRUE(failed(getStepSignature(*findStep(*module))));
  EXPECT_EQ(diagnostics,
            "@step: parameter 'model.embed_tokens.weight' has 9 rows, and 4 parts of 2 do not hold them\n");
}
