//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Plans, and rows on their way to the experts and back, on one and on several ranks.
//===----------------------------------------------------------------------===//

#include "RanksTest.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
/// Sizes of a program with a plan. The ranks along the last axis of `grid` share `experts`.
struct Layout {
  std::vector<int64_t> grid;
  int64_t experts, tokens, topK;

  int64_t getShards() const { return grid.back(); }
  int getRanks() const {
    int ranks = 1;
    for (int64_t size : grid)
      ranks *= static_cast<int>(size);
    return ranks;
  }
  size_t getSlots() const { return tokens * topK; }
};

class Dispatch : public RanksTest {
protected:
  /// A function with `arguments` before the ids, a plan of those, and `body`, in which {T}, {TK} and {P} stand for
  /// types of f32 rows of three columns, of slots and of the plan.
  static std::string getText(const Layout &layout, StringRef arguments, StringRef body, StringRef results) {
    std::string plan = llvm::formatv("!moe.plan<experts = {0}, ranks = {1}, tokens = {2}, top_k = {3}>", layout.experts,
                                     layout.getShards(), layout.tokens, layout.topK);
    std::string ids = llvm::formatv("tensor<{0}x{1}xi32>", layout.tokens, layout.topK);
    std::string text =
        llvm::formatv("shard.grid @experts(shape = {0:$[x]})\nfunc.func @f({1}%ids: {2}) -> ({3}) {{\n"
                      "%plan = moe.plan %ids on @experts : {2} -> {4}\n{5}\nreturn %r : {3}\n}",
                      llvm::make_range(layout.grid.begin(), layout.grid.end()), arguments, ids, results, plan, body);
    auto replaceAll = [&](StringRef from, const std::string &to) {
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    };
    replaceAll("[TK]", llvm::formatv("tensor<{0}x{1}xf32>", layout.tokens, layout.topK));
    replaceAll("[T]", llvm::formatv("tensor<{0}x3xf32>", layout.tokens));
    replaceAll("[P]", plan);
    return text;
  }

  static std::string getDispatch(const Layout &layout) {
    return getText(layout, "%x: [T], ",
                   "%r = moe.dispatch rows(%x : [T] -> tensor<?x3xf32>) by %plan on @experts : [P]", "tensor<?x3xf32>");
  }
  static std::string getDispatchOfValues(const Layout &layout) {
    return getText(layout, "%x: [TK], ",
                   "%r = moe.dispatch values(%x : [TK] -> tensor<?xf32>) by %plan on @experts : [P]", "tensor<?xf32>");
  }
  static std::string getCombine(const Layout &layout) {
    return getText(layout, "%x: tensor<?x3xf32>, ",
                   "%r = moe.combine rows(%x : tensor<?x3xf32> -> [T]) by %plan on @experts : [P]", "[T]");
  }
  static std::string getCombineOfValues(const Layout &layout) {
    return getText(layout, "%x: tensor<?xf32>, ",
                   "%r = moe.combine values(%x : tensor<?xf32> -> [TK]) by %plan on @experts : [P]", "[TK]");
  }

  /// Ids from −1 on, with duplicates.
  std::vector<Numbers> getRandomIds(const Layout &layout) {
    std::vector<Numbers> ids(layout.getRanks(), Numbers(layout.getSlots()));
    for (Numbers &ofRank : ids)
      for (double &id : ofRank)
        id = static_cast<double>(generator() % (layout.experts + 1)) - 1;
    return ids;
  }

  /// A number that says where a slot is.
  static double getName(int rank, int64_t token, int64_t slot) { return rank * 10000 + token * 100 + slot; }
  static Numbers getNames(const Layout &layout, int rank) {
    Numbers names;
    for (int64_t token = 0; token < layout.tokens; ++token)
      for (int64_t slot = 0; slot < layout.topK; ++slot)
        names.push_back(getName(rank, token, slot));
    return names;
  }

  /// The names of the slots whose rows each rank receives, in order: all slots sorted by what the order is defined by.
  static std::vector<Numbers> getExpectedNames(const Layout &layout, const std::vector<Numbers> &ids) {
    std::vector<Numbers> expected(layout.getRanks());
    int64_t shards = layout.getShards();
    for (int receiver = 0; receiver < layout.getRanks(); ++receiver) {
      std::vector<std::tuple<int64_t, int, int64_t, int64_t>> slots; // expert, source, token, slot
      for (int source = 0; source < layout.getRanks(); ++source)
        for (size_t i = 0; i < layout.getSlots(); ++i) {
          auto id = static_cast<int64_t>(ids[source][i]);
          if (source / shards == receiver / shards && id >= 0 && id / (layout.experts / shards) == receiver % shards)
            slots.emplace_back(id, source, i / layout.topK, i % layout.topK);
        }
      std::sort(slots.begin(), slots.end());
      for (auto [expert, source, token, slot] : slots)
        expected[receiver].push_back(getName(source, token, slot));
    }
    return expected;
  }
};

const std::vector<Layout> layouts = {{{1}, 4, 5, 2},    {{2}, 4, 5, 2},    {{4}, 4, 3, 3},    {{8}, 16, 2, 4},
                                     {{2, 2}, 6, 4, 2}, {{4, 1}, 3, 3, 2}, {{1, 4}, 8, 3, 2}, {{2, 1, 2}, 4, 3, 2}};

// Rank 0 has tokens of ids (3, 0) and (1, 3), rank 1 of (0, −1) and (2, 2). Experts 0 and 1 are on rank 0.
TEST_F(Dispatch, ByHand) {
  Layout layout = {{2}, 4, 2, 2};
  RankNumbers arguments = {{{1, 1, 1, 2, 2, 2}, {3, 0, 1, 3}}, {{3, 3, 3, 4, 4, 4}, {0, -1, 2, 2}}};
  EXPECT_EQ(evaluateOnRanks(getDispatch(layout), arguments),
            RankNumbers({{{1, 1, 1, 3, 3, 3, 2, 2, 2}}, {{4, 4, 4, 4, 4, 4, 1, 1, 1, 2, 2, 2}}}));
  for (auto [rank, values] : llvm::enumerate(std::vector<Numbers>{{1, 2, 3, 4}, {5, 6, 7, 8}}))
    arguments[rank][0] = values;
  EXPECT_EQ(evaluateOnRanks(getDispatchOfValues(layout), arguments), RankNumbers({{{2, 5, 3}}, {{7, 8, 1, 4}}}));
  arguments[0][0] = {1, 0, 0, 2, 0, 0, 4, 0, 0};
  arguments[1][0] = {8, 1, 0, 16, 2, 0, 32, 4, 0, 64, 8, 0};
  EXPECT_EQ(evaluateOnRanks(getCombine(layout), arguments),
            RankNumbers({{{1 + 32, 4, 0, 4 + 64, 8, 0}}, {{2, 0, 0, 8 + 16, 1 + 2, 0}}}));
  arguments[0][0] = {1, 2, 4};
  arguments[1][0] = {8, 16, 32, 64};
  EXPECT_EQ(evaluateOnRanks(getCombineOfValues(layout), arguments), RankNumbers({{{32, 1, 4, 64}}, {{2, 0, 8, 16}}}));
}

TEST_F(Dispatch, RowsAndValuesTogether) {
  Layout layout = {{1}, 2, 2, 2};
  auto results = evaluateOnRanks(getText(layout, "%x: [T], %p: [TK], ", R"mlir(
      %rows, %rp = moe.dispatch rows(%x : [T] -> tensor<?x3xf32>) values(%p : [TK] -> tensor<?xf32>)
          by %plan on @experts : [P]
      %y, %r = moe.combine rows(%rows : tensor<?x3xf32> -> [T]) values(%rp : tensor<?xf32> -> [TK])
          by %plan on @experts : [P])mlir",
                                         "[TK]"),
                                 {{{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10}, {1, 0, -1, 0}}});
  EXPECT_EQ(results, RankNumbers({{{7, 8, 0, 10}}}));
}

TEST_F(Dispatch, OrderOfReceivedRows) {
  for (const Layout &layout : layouts)
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::string text = getDispatchOfValues(layout);
      SCOPED_TRACE(text);
      std::vector<Numbers> ids = getRandomIds(layout);
      RankNumbers arguments;
      for (int rank = 0; rank < layout.getRanks(); ++rank)
        arguments.push_back({getNames(layout, rank), ids[rank]});
      RankNumbers results = evaluateOnRanks(text, arguments);
      std::vector<Numbers> expected = getExpectedNames(layout, ids);
      for (int rank = 0; rank < layout.getRanks(); ++rank)
        EXPECT_EQ(results[rank][0], expected[rank]) << "rank " << rank;
    }
}

// What comes home is what was sent: the slot's own value, and a token's row as often as it has experts.
TEST_F(Dispatch, ThereAndBack) {
  for (const Layout &layout : layouts) {
    std::string text = getText(layout, "%x: [T], %p: [TK], ", R"mlir(
      %rows, %rp = moe.dispatch rows(%x : [T] -> tensor<?x3xf32>) values(%p : [TK] -> tensor<?xf32>)
          by %plan on @experts : [P]
      %r:2 = moe.combine rows(%rows : tensor<?x3xf32> -> [T]) values(%rp : tensor<?xf32> -> [TK])
          by %plan on @experts : [P])mlir",
                               "[T], [TK]");
    text.replace(text.find("return %r "), 10, "return %r#0, %r#1 ");
    SCOPED_TRACE(text);
    std::vector<Numbers> ids = getRandomIds(layout);
    RankNumbers arguments;
    for (const Numbers &ofRank : ids)
      arguments.push_back({getRandom(layout.tokens * 3), getRandom(layout.getSlots()), ofRank});
    for (auto [argument, result] : llvm::zip_equal(arguments, evaluateOnRanks(text, arguments)))
      for (size_t slot = 0; slot < layout.getSlots(); ++slot) {
        EXPECT_EQ(result[1][slot], argument[2][slot] < 0 ? 0 : argument[1][slot]);
        if (slot % layout.topK)
          continue;
        int64_t token = slot / layout.topK;
        auto experts = std::count_if(argument[2].begin() + slot, argument[2].begin() + slot + layout.topK,
                                     [](double id) { return id >= 0; });
        for (int64_t c = 0; c < 3; ++c)
          EXPECT_NEAR(result[0][token * 3 + c], experts * argument[0][token * 3 + c], 1e-14);
      }
  }
}

// (2^60 − 2^60) + 1 in the order of slots; the one is lost in the order of rows (2^60, 1, −2^60) and from the last slot
// on.
TEST_F(Dispatch, CombineAddsInOrderOfSlots) {
  double big = std::ldexp(1.0, 60);
  Layout layout = {{1}, 3, 1, 3};
  EXPECT_EQ(evaluateOnRanks(getCombine(layout), {{{big, big, 1, 1, 1, 1, -big, -big, -1}, {0, 2, 1}}}),
            RankNumbers({{{1, 1, 1}}}));
}

TEST_F(Dispatch, NoRows) {
  for (Layout layout : {Layout{{2}, 4, 3, 2}, Layout{{2}, 4, 0, 2}}) {
    Numbers ids(layout.getSlots(), -1), x(layout.tokens * 3, 1);
    EXPECT_EQ(evaluateOnRanks(getDispatch(layout), RankNumbers(2, {x, ids})), RankNumbers(2, {Numbers()}));
    EXPECT_EQ(evaluateOnRanks(getCombine(layout), RankNumbers(2, {Numbers(), ids})),
              RankNumbers(2, {Numbers(layout.tokens * 3, 0)}));
  }
}

TEST_F(Dispatch, ExactModeMovesAndAddsElements) {
  Layout layout = {{2}, 4, 2, 2};
  RankNumbers arguments = {{{1, 1, 1, 2, 2, 2}, {3, 0, 1, 3}}, {{3, 3, 3, 4, 4, 4}, {0, -1, 2, 2}}};
  auto rows = evaluateOnRanks(parse(getDispatch(layout)), Mode::Exact, arguments);
  EXPECT_EQ(getIntegers(rows[0][0]), std::vector<int64_t>({1, 1, 1, 3, 3, 3, 2, 2, 2}));
  EXPECT_EQ(rows[1][0].getShape(), ArrayRef<int64_t>({4, 3}));
  arguments[0][0] = {1, 0, 0, 2, 0, 0, 4, 0, 0};
  arguments[1][0] = {8, 1, 0, 16, 2, 0, 32, 4, 0, 64, 8, 0};
  auto sums = evaluateOnRanks(parse(getCombine(layout)), Mode::Exact, arguments);
  EXPECT_EQ(getIntegers(sums[0][0]), std::vector<int64_t>({33, 4, 0, 68, 8, 0}));
}

TEST_F(Dispatch, Adjoints) {
  for (const Layout &layout : layouts) {
    std::vector<Numbers> ids = getRandomIds(layout), received = getExpectedNames(layout, ids);
    for (bool ofValues : {false, true}) {
      RankNumbers forDispatch, forCombine;
      for (int rank = 0; rank < layout.getRanks(); ++rank) {
        size_t columns = ofValues ? 1 : 3;
        forDispatch.push_back({getRandom(ofValues ? layout.getSlots() : 3 * layout.tokens), ids[rank]});
        forCombine.push_back({getRandom(columns * received[rank].size()), ids[rank]});
      }
      std::string dispatch = ofValues ? getDispatchOfValues(layout) : getDispatch(layout);
      std::string combine = ofValues ? getCombineOfValues(layout) : getCombine(layout);
      SCOPED_TRACE(dispatch);
      checkAdjointOnRanks(dispatch, forDispatch);
      checkAdjointOnRanks(combine, forCombine);
    }
  }
}

TEST_F(Dispatch, RefusesOtherIds) {
  Layout layout = {{2}, 4, 2, 3};
  for (int id : {4, -2}) {
    Numbers ids = {0, 1, 2, 3, static_cast<double>(id), 0};
    EXPECT_EQ(getErrorsOnRanks(getDispatch(layout), {{Numbers(6), Numbers(6)}, {Numbers(6), ids}}),
              llvm::formatv("'moe.plan' op rank 1: token 1, slot 1 has id {0}, which is neither -1 nor one of the 4 "
                            "experts\n",
                            id)
                  .str());
  }
}

TEST_F(Dispatch, RefusesOtherRanksAndRows) {
  Layout layout = {{2}, 4, 2, 1};
  EXPECT_EQ(getErrorsOnRanks(getDispatch(layout), RankNumbers(3, {Numbers(6), Numbers(2)})),
            "'moe.plan' op rank 0: grid @experts has 2 ranks, and the program runs on 3\n");
  EXPECT_EQ(getErrorsOnRanks(getCombine(layout), RankNumbers(2, {Numbers(9), Numbers(2)})),
            "'moe.combine' op rank 0: has an operand of 3 rows, and by the plan the rank receives 4\n");
  std::string text = getDispatch({{2, 2}, 4, 2, 1});
  text.replace(text.find("by %plan on @experts"), 20, "by %plan on @pair");
  EXPECT_EQ(getErrorsOnRanks("shard.grid @pair(shape = 2)\n" + text, RankNumbers(4, {Numbers(6), Numbers(2)})),
            "'moe.dispatch' op rank 0: grid @pair has 2 ranks, and the program runs on 4\n");
}
} // namespace
