//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/TokenData.h"
#include "FakeExecutor.h"

using namespace mlir::plateau::run;
using testing::Test;

namespace {
class TokenDataTest : public RunTest {
protected:
  TokenData open(const std::vector<uint32_t> &ids, BatchShape batch,
                 std::optional<int64_t> documentEnd = std::nullopt) {
    return llvm::cantFail(TokenData::open(writeIds("ids", ids), batch, documentEnd, -100));
  }
  static std::vector<uint32_t> count(uint32_t n) {
    std::vector<uint32_t> ids(n);
    for (uint32_t i = 0; i < n; ++i)
      ids[i] = i;
    return ids;
  }
};
using Numbers = std::vector<int32_t>;
} // namespace

TEST_F(TokenDataTest, LabelsAreTheNextTokens) {
  TokenData data = open(count(9), {1, 4, 2});
  EXPECT_EQ(data.getBatches(), 2);
  RankBatch batch = data.getBatch(1, 0);
  EXPECT_EQ(batch.tokens, (Numbers{4, 5, 6, 7}));
  EXPECT_EQ(batch.labels, (Numbers{5, 6, 7, 8}));
  EXPECT_EQ(batch.positions, (Numbers{0, 1, 0, 1}));
  EXPECT_EQ(batch.starts, (Numbers{0, 0, 2, 2}));
}

TEST_F(TokenDataTest, AnyNumberOfRanksReadsTheSameBatch) {
  TokenData one = open(count(100), {1, 12, 2});
  RankBatch whole = one.getBatch(3, 0);
  for (int ranks : {2, 3, 6}) {
    TokenData data = open(count(100), {ranks, 12 / ranks, 2});
    Numbers tokens, labels;
    for (int rank = 0; rank < ranks; ++rank) {
      RankBatch part = data.getBatch(3, rank);
      tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
      labels.insert(labels.end(), part.labels.begin(), part.labels.end());
    }
    EXPECT_EQ(tokens, whole.tokens);
    EXPECT_EQ(labels, whole.labels);
  }
}

TEST_F(TokenDataTest, RunsLongerThanTheFileStartAgain) {
  TokenData data = open(count(12), {1, 4, 4}); // 12 tokens are 2 batches and the labels of them, not 3
  EXPECT_EQ(data.getBatches(), 2);
  EXPECT_EQ(data.getBatch(2, 0).tokens, data.getBatch(0, 0).tokens);
  EXPECT_EQ(data.getBatch(5, 0).labels, data.getBatch(1, 0).labels);
}

TEST_F(TokenDataTest, DocumentsEndAfterTheirLastToken) {
  TokenData data = open({1, 0, 2, 3, 0, 0, 4, 5, 6}, {1, 8, 4}, 0);
  RankBatch batch = data.getBatch(0, 0);
  EXPECT_EQ(batch.labels, (Numbers{0, -100, 3, 0, -100, -100, 5, 6}));
  EXPECT_EQ(batch.starts, (Numbers{0, 0, 2, 2, 4, 5, 6, 6}));
  EXPECT_EQ(batch.positions, (Numbers{0, 1, 0, 1, 0, 0, 0, 1}));
}

TEST_F(TokenDataTest, RanksReadAsManyTokensAsTheyHave) {
  BatchShape shape = {3, 4, 2};
  shape.rankTokens = {3, 0, 2};
  TokenData data = open(count(16), shape);
  EXPECT_EQ(data.getBatches(), 3);
  RankBatch first = data.getBatch(1, 0), none = data.getBatch(1, 1), last = data.getBatch(1, 2);
  EXPECT_EQ(first.tokens, (Numbers{5, 6, 7, 0}));
  EXPECT_EQ(first.labels, (Numbers{6, 7, 8, -100}));
  EXPECT_EQ(first.positions, (Numbers{0, 1, 0, 0}));
  EXPECT_EQ(first.starts, (Numbers{0, 0, 2, 3}));
  EXPECT_EQ(none.tokens, (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(none.labels, (Numbers{-100, -100, -100, -100}));
  EXPECT_EQ(none.positions, (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(none.starts, (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(last.tokens, (Numbers{8, 9, 0, 0}));
  EXPECT_EQ(last.labels, (Numbers{9, 10, -100, -100}));
  EXPECT_EQ(last.starts, (Numbers{0, 0, 2, 3}));
  EXPECT_EQ(getText(TokenData::open(writeIds("short", count(5)), shape, std::nullopt, -100)),
            getPath("short") +
                ": holds 5 tokens; one batch (--rank-tokens 3,0,2) and the label of its last token need 6");
}

TEST_F(TokenDataTest, RefusesPartialTokens) {
  std::string path = writeFile("odd", "123456");
  EXPECT_EQ(getText(TokenData::open(path, {1, 4, 4}, std::nullopt, -100)),
            path + ": 6 bytes are no whole number of 32-bit token ids (2 bytes over)");
}

TEST_F(TokenDataTest, RefusesLessThanABatch) {
  std::string path = writeIds("short", count(8));
  EXPECT_EQ(getText(TokenData::open(path, {2, 4, 4}, std::nullopt, -100)),
            path + ": holds 8 tokens; one batch (ranks 2, tokens 4) and the label of its last token need 9");
}

TEST_F(TokenDataTest, RefusesAMissingFile) {
  EXPECT_NE(getText(TokenData::open(getPath("none"), {1, 4, 4}, std::nullopt, -100)).find("No such file"),
            std::string::npos);
}

TEST_F(TokenDataTest, IdsOutsideTheVocabulary) {
  std::vector<uint32_t> ids(13, 1);
  ids[6] = 10;
  TokenData data = open(ids, {1, 4, 4}); // batches 0-3, 4-7, 8-11, and a last label
  std::string expected = getPath("ids") + ": token id 10 at byte 24 is not in the vocabulary of 10";
  EXPECT_EQ(getText(data.checkIds(0, 1, 10)), "");
  EXPECT_EQ(getText(data.checkIds(0, 2, 10)), expected);
  EXPECT_EQ(getText(data.checkIds(0, 2, 11)), "");
  EXPECT_EQ(getText(data.checkIds(2, 1, 10)), "");
  EXPECT_EQ(getText(data.checkIds(2, 2, 10)), "");       // batches 2 and 0
  EXPECT_EQ(getText(data.checkIds(2, 3, 10)), expected); // all
  EXPECT_EQ(getText(data.checkIds(4, 1, 10)), expected); // batch 1 again
  EXPECT_EQ(getText(data.checkIds(1, 0, 10)), "");
}

TEST_F(TokenDataTest, TheLastLabelIsChecked) {
  std::vector<uint32_t> ids(9, 1);
  ids[4] = 0xFFFFFFFF;
  TokenData data = open(ids, {1, 4, 4});
  EXPECT_EQ(getText(data.checkIds(0, 1, 10)),
            getPath("ids") + ": token id 4294967295 at byte 16 is not in the vocabulary of 10");
}
