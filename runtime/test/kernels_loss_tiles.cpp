//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// The loss by tiles of logits.
#include "host/kernels.h"
#include "kernels_loss.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

/// Columns begin … end − 1 of a tensor of rows.
Tensor cut(const Tensor &tensor, int64_t columns, int64_t begin, int64_t end) {
  const int64_t width = end - begin, rows = tensor.size() / columns;
  Tensor result(PLR_F32, rows * width);
  for (int64_t i = 0; i < rows * width; ++i)
    result.set(i, tensor[i / width * columns + begin + i % width]);
  return result;
}

int64_t getWidth(const plr_vocabulary &vocabulary) { return vocabulary.label_smoothing == 0 ? 3 : 4; }

Tensor emptyState(const plr_vocabulary &vocabulary, int64_t rows) {
  return tensorOf(std::vector<double>(rows * getWidth(vocabulary)));
}

class Tiles : public KernelTest {
protected:
  int64_t countExisting(const plr_vocabulary &vocabulary, int64_t begin, int64_t end) {
    return std::clamp<int64_t>(vocabulary.size - begin, 0, end - begin);
  }
  /// Folds columns begin … end − 1 into the state.
  void fold(ExactRows &rows, int64_t begin, int64_t end, Tensor &state) {
    Tensor tile = cut(rows.logits, rows.columns, begin, end);
    variant->foldLogits(rows.vocabulary, rows.size(), end - begin, countExisting(rows.vocabulary, begin, end), begin,
                        tile.floats(), rows.hasBias ? rows.bias.floats() + begin : nullptr, rows.labels.data(),
                        state.floats());
    EXPECT_TRUE(state.endIsIntact());
  }
  Tensor foldAll(ExactRows &rows, int64_t width, int64_t begin, int64_t end) {
    Tensor state = emptyState(rows.vocabulary, rows.size());
    for (; begin < end; begin += width)
      fold(rows, begin, std::min(begin + width, end), state);
    return state;
  }
  void finish(ExactRows &rows, Tensor &state, Tensor &losses, Tensor &lse) {
    EXPECT_EQ(host::finishLosses(rows.vocabulary, rows.size(), state.floats(), rows.labels.data(), losses.floats(),
                                 lse.floats()),
              "");
    EXPECT_TRUE(losses.endIsIntact() && lse.endIsIntact());
  }
  /// The gradient of a tile of logits, put in place in the gradient of all.
  void grad(ExactRows &rows, plr_type resultType, int64_t begin, int64_t end, Tensor &lse, Tensor &gradient) {
    const int64_t width = end - begin, existing = countExisting(rows.vocabulary, begin, end);
    const float *bias = rows.hasBias ? rows.bias.floats() + begin : nullptr;
    Tensor tile = cut(rows.logits, rows.columns, begin, end), result(resultType, tile.size());
    variant->logitsGrad(rows.vocabulary, resultType, rows.size(), width, existing, begin, tile.floats(), bias,
                        rows.labels.data(), lse.floats(), rows.cotangents.floats(), result.data());
    EXPECT_TRUE(result.endIsIntact());
    for (int64_t i = 0; i < result.size(); ++i)
      gradient.set(i / width * rows.columns + begin + i % width, result[i]);
    if (resultType != PLR_F32)
      return;
    variant->logitsGrad(rows.vocabulary, PLR_F32, rows.size(), width, existing, begin, tile.floats(), bias,
                        rows.labels.data(), lse.floats(), rows.cotangents.floats(), tile.data());
    EXPECT_TRUE(tile.sameBits(result)) << "in place";
  }
};

TEST_P(Tiles, AgreeWithTheEquations) {
  for (const LossCase &options : lossCases)
    for (int64_t columns : {1, 3, 16, 100, 1003})
      for (int64_t width : {1, 16, 33, 512, 2000})
        for (int64_t count : {0, 1, 6}) {
          if (columns > 30 * width)
            continue;
          SCOPED_TRACE(testing::Message()
                       << options.name << ": " << count << " rows of " << columns << " by " << width);
          // The last tile is ragged and, with the columns behind the vocabulary, may be padding alone.
          ExactRows rows(options.at(columns), count, columns + 20, options.hasBias);
          Tensor state = foldAll(rows, width, 0, rows.columns), losses(PLR_F32, count), lse(PLR_F32, count);
          finish(rows, state, losses, lse);
          expectWithin(PLR_F32, lse, rows.lses(), 1e-6, "lse");
          expectWithin(PLR_F32, losses, rows.losses(), 1e-6, "losses");
          for (plr_type type : {PLR_F32, PLR_BF16}) {
            Tensor gradient(type, count * rows.columns);
            for (int64_t begin = 0; begin < rows.columns; begin += width)
              grad(rows, type, begin, std::min(begin + width, rows.columns), lse, gradient);
            expectWithin(type, gradient, rows.gradient(), 2e-6, "gradient");
            for (int64_t i = 0; i < gradient.size(); ++i)
              if (i % rows.columns >= columns || rows.labels[i / rows.columns] == ignored) {
                EXPECT_EQ(gradient[i], 0) << i;
              }
          }
        }
}

TEST_P(Tiles, ParametersInTheState) {
  plr_vocabulary vocabulary = {5, ignored, 0.5f, 0, 0};
  ExactRows rows(vocabulary, 2, 5, false);
  Tensor state = foldAll(rows, 2, 0, 5);
  for (int64_t row = 0; row < 2; ++row) {
    ExactRow exact = rows.at(row);
    EXPECT_EQ(state[4 * row], exact.top);
    EXPECT_NEAR(state[4 * row + 1], exact.total, 1e-6);
    EXPECT_EQ(state[4 * row + 2], exact.values[exact.label]);
    EXPECT_NEAR(state[4 * row + 3], exact.sum(), 1e-5);
  }
}

// Whichever tile a row's label is in, at its first or at its last column.
TEST_P(Tiles, LabelsAtTheEdges) {
  ExactRows rows(makeVocabulary(30), 8, 30, false);
  rows.labels = {0, 9, 10, 19, 20, 29, 15, ignored};
  for (int64_t width : {10, 15, 30}) {
    Tensor state = foldAll(rows, width, 0, 30), losses(PLR_F32, 8), lse(PLR_F32, 8), gradient(PLR_F32, 240);
    finish(rows, state, losses, lse);
    expectWithin(PLR_F32, losses, rows.losses(), 1e-6, "losses");
    for (int64_t begin = 0; begin < 30; begin += width)
      grad(rows, PLR_F32, begin, begin + width, lse, gradient);
    expectWithin(PLR_F32, gradient, rows.gradient(), 1e-6, "gradient");
  }
}

// A label in the padding, or no label at all, is in no tile.
TEST_P(Tiles, LabelsOutsideAreInNoTile) {
  ExactRows rows(makeVocabulary(5), 5, 8, false);
  rows.labels = {5, 7, -1, INT32_MAX, INT32_MIN};
  Tensor state = foldAll(rows, 4, 0, 8), lse(PLR_F32, 5), gradient(PLR_F32, 40), plain(PLR_F32, 40);
  for (int64_t row = 0; row < 5; ++row) {
    EXPECT_EQ(state[3 * row + 2], 0);
    lse.set(row, rows.at(row).lse);
  }
  for (int64_t begin : {0, 4})
    grad(rows, PLR_F32, begin, begin + 4, lse, gradient);
  for (int64_t i = 0; i < 40; ++i)
    EXPECT_NEAR(gradient[i], i % 8 < 5 ? rows.cotangents[i / 8] * std::exp(rows.logits[i] - lse[i / 8]) : 0, 1e-6);
}

TEST_P(Tiles, MaskedLogits) {
  ExactRows rows(makeVocabulary(3), 1, 3, false);
  rows.labels = {1};
  rows.logits = tensorOf({-infinity, 0, 0});
  rows.cotangents.set(0, 1);
  for (int64_t width : {1, 2, 3}) {
    Tensor state = foldAll(rows, width, 0, 3), loss(PLR_F32, 1), lse(PLR_F32, 1);
    finish(rows, state, loss, lse);
    EXPECT_NEAR(loss[0], std::log(2.0), 1e-7);
    for (plr_type type : {PLR_F32, PLR_BF16}) {
      Tensor gradient(type, 3);
      for (int64_t begin = 0; begin < 3; begin += width)
        grad(rows, type, begin, std::min<int64_t>(begin + width, 3), lse, gradient);
      EXPECT_EQ(gradient[0], 0);
      EXPECT_NEAR(gradient[1], -0.5, 1e-7);
      EXPECT_NEAR(gradient[2], 0.5, 1e-7);
    }
  }
}

// Masked by the logits or as padding, before and after others; the largest logit of a state that saw nothing does not
// count, whatever it is.
TEST_P(Tiles, FullyMaskedTilesLeaveTheState) {
  for (float smoothing : {0.0f, 0.5f}) {
    plr_vocabulary vocabulary = {40, ignored, smoothing, 0, 0};
    ExactRows rows(vocabulary, 2, 60, false);
    Tensor state = emptyState(vocabulary, 2), before = state;
    fold(rows, 40, 60, state);
    EXPECT_TRUE(state.sameBits(before));
    state.set(0, NAN);
    fold(rows, 0, 40, state);
    EXPECT_EQ(state[0], rows.at(0).top);
    EXPECT_NEAR(state[1], rows.at(0).total, 1e-5);
    before = state;
    fold(rows, 40, 60, state);
    EXPECT_TRUE(state.sameBits(before));
    if (smoothing != 0)
      continue;
    rows.labels = {ignored, ignored};
    for (int64_t i = 0; i < rows.logits.size(); ++i)
      rows.logits.set(i, -infinity);
    fold(rows, 0, 40, state);
    EXPECT_TRUE(state.sameBits(before));
    Tensor empty = emptyState(vocabulary, 2), nothing = empty;
    fold(rows, 0, 40, empty);
    EXPECT_TRUE(empty.sameBits(nothing));
  }
}

TEST_P(Tiles, SpreadAndEqualLogits) {
  for (double scale : {1e4, 1e30, 0.0}) {
    ExactRows rows(makeVocabulary(100), 5, 100, false);
    for (int64_t i = 0; i < rows.logits.size(); ++i)
      rows.logits.set(i, scale == 0 ? -1e30 : scale * std::sin(double(i)));
    Tensor state = foldAll(rows, 33, 0, 100), losses(PLR_F32, 5), lse(PLR_F32, 5), gradient(PLR_F32, 500);
    finish(rows, state, losses, lse);
    expectClose(PLR_F32, losses, rows.losses(), 0, "losses");
    for (int64_t begin : {0, 50})
      grad(rows, PLR_F32, begin, begin + 50, lse, gradient);
    for (int64_t i = 0; i < gradient.size(); ++i)
      EXPECT_TRUE(std::isfinite(gradient[i])) << i;
    if (scale == 1e4)
      expectClose(PLR_F32, gradient, rows.gradient(), 1e-3, "gradient"); // lse itself has steps of 2^-10.
  }
}

// What does not count is exactly 0, and a NaN nowhere, whatever lse is.
TEST_P(Tiles, ZerosAreExact) {
  for (const LossCase &options : lossCases)
    for (float bad : {INFINITY, -INFINITY, NAN}) {
      ExactRows rows(options.at(35), 4, 40, options.hasBias);
      rows.labels = {ignored, 3, 3, 4};
      rows.cotangents = tensorOf({1, 0, 1, 1});
      for (int64_t j = 0; j < 10; ++j)
        rows.logits.set(120 + j, -infinity);
      Tensor lse = tensorOf({bad, bad, 5, bad});
      for (plr_type type : {PLR_F32, PLR_BF16}) {
        Tensor gradient(type, 160);
        grad(rows, type, 0, 40, lse, gradient);
        for (int64_t i = 0; i < 160; ++i)
          if (i < 80 || i % 40 >= 35 || (options.softcap == 0 && i >= 120 && i < 130)) {
            EXPECT_EQ(gradient[i], 0) << options.name << " lse " << bad << " element " << i;
          } else if (i < 120) {
            EXPECT_TRUE(std::isfinite(gradient[i])) << i;
          }
      }
    }
}

TEST_P(Tiles, NaNStaysInItsRow) {
  for (const LossCase &options : lossCases)
    for (int64_t width : {10, 50}) {
      ExactRows rows(options.at(50), 3, 50, options.hasBias);
      rows.labels = {1, 2, 3};
      rows.logits.set(50 + 12, NAN);
      for (int64_t j = 20; j < 30; ++j)
        rows.logits.set(50 + j, NAN);
      Tensor state = foldAll(rows, width, 0, 50), losses(PLR_F32, 3), lse(PLR_F32, 3);
      finish(rows, state, losses, lse);
      for (int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(std::isnan(losses[i]), i == 1) << options.name;
    }
  // In a tile of nothing else too, and past a merge.
  plr_vocabulary vocabulary = makeVocabulary(4);
  ExactRows rows(vocabulary, 1, 4, false);
  rows.logits = tensorOf({NAN, NAN, 1, 2});
  Tensor states(PLR_F32, 6), merged(PLR_F32, 3), first = foldAll(rows, 2, 0, 2), second = foldAll(rows, 2, 2, 4);
  EXPECT_TRUE(std::isnan(first[1]));
  for (int64_t i = 0; i < 6; ++i)
    states.set(i, i < 3 ? first[i] : second[i - 3]);
  host::mergeStates(vocabulary, 2, 1, states.floats(), merged.floats());
  EXPECT_TRUE(std::isnan(merged[1]));
  fold(rows, 2, 4, first);
  EXPECT_TRUE(std::isnan(first[1]));
}

TEST_P(Tiles, MergeOfParts) {
  for (const LossCase &options : lossCases)
    for (int64_t parts : {1, 2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << options.name << ": " << parts << " parts");
      // The last part of seven is padding alone.
      const int64_t count = 6, columns = 7 * 12, part = columns / parts, width = getWidth(options.at(1));
      ExactRows rows(options.at(70), count, columns, options.hasBias);
      Tensor states(PLR_F32, parts * count * width), merged(PLR_F32, count * width);
      for (int64_t number = 0; number < parts; ++number) {
        Tensor state = foldAll(rows, 5, number * part, (number + 1) * part);
        for (int64_t i = 0; i < count * width; ++i)
          states.set(number * count * width + i, state[i]);
      }
      host::mergeStates(rows.vocabulary, parts, count, states.floats(), merged.floats());
      EXPECT_TRUE(merged.endIsIntact());
      Tensor losses(PLR_F32, count), lse(PLR_F32, count);
      finish(rows, merged, losses, lse);
      expectWithin(PLR_F32, losses, rows.losses(), 1e-6, "losses");
      expectWithin(PLR_F32, lse, rows.lses(), 1e-6, "lse");
    }
}

// Sums of many tiles: equal logits, one far above the others, rising ones, and random ones.
TEST_P(Tiles, LargeVocabularies) {
  const int64_t columns = 262144;
  plr_vocabulary vocabulary = makeVocabulary(columns);
  for (int kind = 0; kind < 4; ++kind) {
    Tensor logits = randomTensor(PLR_F32, columns, 1, 4);
    if (kind < 3)
      for (int64_t j = 0; j < columns; ++j)
        logits.set(j, kind == 0 ? 1.7 : kind == 1 ? (j == 0 ? 0 : -2.3) : 1e-5 * static_cast<double>(j));
    double total = 0, top = -infinity;
    for (int64_t j = 0; j < columns; ++j)
      top = std::max(top, logits[j]);
    for (int64_t j = 0; j < columns; ++j)
      total += std::exp(logits[j] - top);
    for (int64_t width : {512, 1000, 4096, 262144}) {
      Tensor state = emptyState(vocabulary, 1), loss(PLR_F32, 1), lse(PLR_F32, 1);
      const int32_t label = 262143;
      for (int64_t begin = 0; begin < columns; begin += width) {
        const int64_t length = std::min(width, columns - begin);
        variant->foldLogits(vocabulary, 1, length, length, begin, logits.floats() + begin, nullptr, &label,
                            state.floats());
      }
      EXPECT_EQ(host::finishLosses(vocabulary, 1, state.floats(), &label, loss.floats(), lse.floats()), "");
      EXPECT_NEAR(lse[0], top + std::log(total), 1e-5) << "kind " << kind << " by " << width;
      EXPECT_NEAR(loss[0], top + std::log(total) - logits[label], 1e-5) << "kind " << kind << " by " << width;
    }
  }
}

PLATEAU_KERNEL_TEST_F32(Tiles);

/// A ring of shards of four logits of 0 … 7, and what becomes of label 3; `order` gives the shards' first columns.
double runShards(double scale, float smoothing, std::vector<int32_t> order) {
  plr_vocabulary vocabulary = {8, ignored, smoothing, 0, 0};
  const int32_t label = 3;
  Tensor state = emptyState(vocabulary, 1), loss(PLR_F32, 1), lse(PLR_F32, 1);
  for (int32_t first : order)
    for (int64_t column : {0, 2}) {
      float tile[2];
      for (int64_t j = 0; j < 2; ++j)
        tile[j] = static_cast<float>(scale * static_cast<double>(first + column + j));
      host::foldLogits(vocabulary, 1, 2, column, &first, tile, nullptr, &label, state.floats());
    }
  EXPECT_EQ(host::finishLosses(vocabulary, 1, state.floats(), &label, loss.floats(), lse.floats()), "");
  return loss[0];
}

TEST(Shards, OfEightLogits) {
  for (std::vector<int32_t> order : {std::vector<int32_t>{0, 4}, std::vector<int32_t>{4, 0}}) {
    EXPECT_NEAR(runShards(1, 0, order), 4.458340, 1e-6);
    EXPECT_NEAR(runShards(1, 0.1f, order), 4.408340, 1e-6);
    EXPECT_EQ(runShards(1000, 0, order), 4000);
    EXPECT_NEAR(runShards(1000, 0.1f, order), 3950, 1e-3);
  }
}

TEST(Shards, MaskComesAfterTheCap) {
  plr_vocabulary vocabulary = {3, ignored, 0, 0, 1};
  float logits[] = {-1e30f, -1e30f, -1e30f, -1e30f}, state[3] = {}, loss, lse;
  const int32_t label = 2, first[] = {0, 2};
  host::foldLogits(vocabulary, 1, 2, 0, first, logits, nullptr, &label, state);
  host::foldLogits(vocabulary, 1, 2, 0, first + 1, logits, nullptr, &label, state);
  EXPECT_EQ(host::finishLosses(vocabulary, 1, state, &label, &loss, &lse), "");
  EXPECT_NEAR(loss, 1.098612, 1e-6);
  EXPECT_EQ(state[2], -1);
  const float cotangent = 1;
  host::logitsGrad(vocabulary, PLR_F32, 1, 4, 0, first, logits, nullptr, &label, &lse, &cotangent, logits);
  for (float value : logits) // The cap is flat there.
    EXPECT_EQ(value, 0);
}

// The largest logit of a part without any does not count, be it 0, far above the others, or no number.
TEST(Shards, MergeSkipsPartsOfNothing) {
  plr_vocabulary vocabulary = {8, ignored, 0.5f, 0, 0};
  const float nan = NAN, states[3][2][4] = {{{0, 0, 0, 0}, {nan, 0, 0, 0}},
                                            {{-1000, 2, -1000, -3000}, {-5, 1, 0, -7}},
                                            {{7, 0, 0, 0}, {0, 0, 0, 0}}};
  Tensor merged(PLR_F32, 8);
  host::mergeStates(vocabulary, 3, 2, &states[0][0][0], merged.floats());
  EXPECT_TRUE(merged.endIsIntact());
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(merged[i], states[1][i / 4][i % 4]) << i;
  const float nothing[2][4] = {{nan, 0, 0, 0}, {3, 0, 0, 0}};
  host::mergeStates(vocabulary, 2, 1, &nothing[0][0], merged.floats());
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(merged[i], 0) << i;
}

// A first row that no program computes reaches no memory outside.
TEST(Shards, AnyFirstRow) {
  plr_vocabulary vocabulary = makeVocabulary(INT32_MAX);
  const int32_t labels[] = {0, INT32_MAX - 1};
  const float lse[] = {1, 1}, cotangents[] = {1, 1};
  for (int32_t first : {INT32_MIN, -3, 0, INT32_MAX - 4, INT32_MAX}) {
    Tensor logits = randomTensor(PLR_F32, 16, 1), state = emptyState(vocabulary, 2), result(PLR_BF16, 16);
    host::foldLogits(vocabulary, 2, 8, INT32_MAX, &first, logits.floats(), nullptr, labels, state.floats());
    host::foldLogits(vocabulary, 2, 8, 0, &first, logits.floats(), nullptr, labels, state.floats());
    host::logitsGrad(vocabulary, PLR_BF16, 2, 8, 0, &first, logits.floats(), nullptr, labels, lse, cotangents,
                     result.data());
    EXPECT_TRUE(state.endIsIntact() && result.endIsIntact());
  }
}

TEST(Shards, FinishNamesRowAndLabel) {
  plr_vocabulary vocabulary = makeVocabulary(3);
  float state[6] = {}, losses[2], lse[2];
  const int32_t labels[] = {0, 3}, none[] = {ignored, ignored};
  EXPECT_EQ(host::finishLosses(vocabulary, 2, state, labels, losses, lse),
            "row 1 has label 3, but the vocabulary has 3 entries and the label that is ignored is -100");
  EXPECT_EQ(host::finishLosses(vocabulary, 2, state, none, losses, lse), "");
  EXPECT_EQ(losses[0], 0);
  EXPECT_EQ(lse[0], -infinity) << "of no columns";
}

TEST(Shards, OffsetsBeyond32Bits) {
  // 2^32 logits of which two columns exist, so that one page of a row is read.
  const int64_t rows = 21400, columns = 201088;
  SparseFloats logits(rows * columns);
  ASSERT_TRUE(logits.data()) << "this machine gives out no address space of " << rows * columns * 4 << " bytes";
  plr_vocabulary vocabulary = makeVocabulary(2);
  std::vector<int32_t> labels(rows, 1);
  std::vector<float> state(3 * rows), losses(rows), lse(rows);
  const int32_t first = 0;
  logits.data()[(rows - 1) * columns + 1] = -3;
  host::foldLogits(vocabulary, rows, columns, 0, &first, logits.data(), nullptr, labels.data(), state.data());
  EXPECT_EQ(host::finishLosses(vocabulary, rows, state.data(), labels.data(), losses.data(), lse.data()), "");
  EXPECT_NEAR(losses[rows - 2], std::log(2.0), 1e-6);
  EXPECT_NEAR(losses[rows - 1], 3 + std::log1p(std::exp(-3.0)), 1e-6);
}

} // namespace
