//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The least-loaded plan and the cut into iterations: on the published profiles of routing, and by hand.
//===----------------------------------------------------------------------===//

#include "../../../lib/Interpreter/LeastLoaded.h"
#include "../../../lib/Interpreter/ChunkCut.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace mlir::plateau::interpreter;

namespace {
using List = std::vector<int64_t>;

// 65,536 tokens on each of 8 ranks, 128 experts, 8 slots, 10 chunks.
constexpr int64_t tokens = 65536, experts = 128, topK = 8, ranks = 8, chunks = 10, chunkTokens = 6554;
constexpr LeastLoadedRule paper = {1, 1, 1024, 13, 10};

/// The first `percent` of a rank's tokens choose among the first `hot` experts, the others among the rest. Without hot
/// experts the load is even.
struct Profile {
  int64_t percent, hot;

  int64_t getExpert(int64_t token, int64_t slot) const {
    return token < tokens * percent / 100 ? slot % hot : hot + (token + slot) % (experts - hot);
  }
  /// Of one rank; all ranks choose alike.
  List getLoads() const {
    List loads(experts);
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t slot = 0; slot < topK; ++slot)
        ++loads[getExpert(token, slot)];
    return loads;
  }
};

List getAllLoads(const Profile &profile) {
  List loads = profile.getLoads();
  for (int64_t &load : loads)
    load *= ranks;
  return loads;
}

List getRankLoads(const Assignment &assignment, int64_t count) {
  List loads(count);
  for (const std::vector<Piece> &pieces : assignment.pieces)
    for (const Piece &piece : pieces)
      loads[piece.rank] += piece.end - piece.begin;
  return loads;
}

int64_t countMoves(const Assignment &assignment) {
  int64_t moves = 0;
  for (const List &held : assignment.helped)
    moves += llvm::count_if(held, [](int64_t expert) { return expert >= 0; });
  return moves;
}

/// Three digits of the largest number over the mean.
std::string getRatio(const List &loads) {
  return llvm::formatv("{0:f3}", double(*std::max_element(loads.begin(), loads.end())) * double(loads.size()) /
                                     double(std::accumulate(loads.begin(), loads.end(), int64_t(0))));
}

/// [source][chunk][destination]: rows, when token t of a rank is in chunk `chunkOf(t)`.
template <typename Function>
std::vector<LeafRows> countRows(const Profile &profile, const Assignment &assignment, Function chunkOf) {
  std::vector<LeafRows> rows(ranks, LeafRows(chunks, List(ranks)));
  List positions(experts), piece(experts); // in each expert's list
  for (int64_t source = 0; source < ranks; ++source)
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t slot = 0; slot < topK; ++slot) {
        int64_t expert = profile.getExpert(token, slot);
        while (assignment.pieces[expert][piece[expert]].end <= positions[expert])
          ++piece[expert];
        ++positions[expert];
        ++rows[source][chunkOf(token)][assignment.pieces[expert][piece[expert]].rank];
      }
  return rows;
}

/// The largest send of a chunk over its mean, and the rows that the busiest rank receives over the bound.
template <typename Function>
std::pair<std::string, std::string> getRatios(const Profile &profile, const Assignment &assignment, Function chunkOf) {
  std::vector<LeafRows> rows = countRows(profile, assignment, chunkOf);
  double sends = 0, received = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    List sums(ranks);
    for (int64_t source = 0; source < ranks; ++source) {
      const List &sent = rows[source][chunk];
      double mean = double(std::accumulate(sent.begin(), sent.end(), int64_t(0))) / ranks;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        sends = std::max(sends, double(sent[rank]) / mean);
        sums[rank] += sent[rank];
      }
    }
    received = std::max(received, double(*std::max_element(sums.begin(), sums.end())));
  }
  return {llvm::formatv("{0:f3}", sends), llvm::formatv("{0:f4}", received / double(ranks * topK * chunkTokens))};
}

TEST(LeastLoaded, Profiles) {
  struct Line {
    Profile profile;
    int64_t moves;
    std::string plain;
    std::pair<std::string, std::string> strided, contiguous;
  };
  for (const Line &line : {Line{{0, 0}, 0, "1.000", {"1.000", "0.1251"}, {"1.016", "0.1269"}},
                           Line{{95, 16}, 13, "7.600", {"1.350", "0.1251"}, {"2.628", "0.1581"}},
                           Line{{80, 16}, 13, "6.400", {"2.400", "0.1251"}, {"4.000", "0.1563"}},
                           Line{{50, 4}, 10, "4.387", {"2.290", "0.1251"}, {"6.001", "0.1712"}}}) {
    SCOPED_TRACE(line.profile.percent);
    List loads = getAllLoads(line.profile);
    EXPECT_EQ(getRatio(getRankLoads(assignToOwners(loads, ranks, 0), ranks)), line.plain);
    Assignment assignment = assignLeastLoaded(loads, ranks, 4, paper);
    EXPECT_EQ(countMoves(assignment), line.moves);
    EXPECT_EQ(getRatios(line.profile, assignment, [](int64_t token) { return token % chunks; }), line.strided);
    EXPECT_EQ(getRatios(line.profile, assignment, [](int64_t token) { return token / chunkTokens; }), line.contiguous);
  }
}

TEST(LeastLoaded, HelperSlots) {
  using Results = std::vector<std::pair<std::string, int64_t>>; // for 0, 1, 2 ... slots
  for (const auto &[profile, expected] :
       {std::pair(Profile{95, 16}, Results{{"7.600", 0}, {"3.804", 8}, {"1.935", 16}, {"1.867", 24}, {"1.000", 13}}),
        {Profile{80, 16}, Results{{"6.400", 0}, {"3.214", 8}, {"1.743", 16}, {"1.471", 24}, {"1.000", 13}}},
        {Profile{50, 4}, Results{{"4.387", 0}, {"1.485", 8}, {"1.193", 16}, {"1.000", 10}, {"1.000", 10}}}}) {
    List loads = getAllLoads(profile);
    Results results;
    for (size_t slots = 0; slots < expected.size(); ++slots) {
      Assignment assignment = assignLeastLoaded(loads, ranks, static_cast<int64_t>(slots), paper);
      results.emplace_back(getRatio(getRankLoads(assignment, ranks)), countMoves(assignment));
    }
    EXPECT_EQ(results, expected) << profile.percent;
  }
}

std::string toString(const std::vector<Piece> &pieces) {
  std::string text;
  for (const Piece &piece : pieces)
    text += llvm::formatv("{0}:{1}-{2} ", piece.rank, piece.begin, piece.end);
  return text;
}

// Ranks 0, 1, 2 have experts {0, 1}, {2, 3}, {4, 5} of loads 12 1, 2 0, 0 0: a cap of 5.
TEST(LeastLoaded, ByHand) {
  List loads = {12, 1, 2, 0, 0, 0};
  LeastLoadedRule rule = {1, 1, 1, 1, 1};
  // Expert 0 has room for 4 beside the 1 that is pending. Rank 2 is empty and takes 5, rank 1 takes 3 beside its own 2.
  Assignment assignment = assignLeastLoaded(loads, 3, 1, rule);
  EXPECT_EQ(toString(assignment.pieces[0]), "0:0-4 2:4-9 1:9-12 ");
  EXPECT_EQ(toString(assignment.pieces[1]), "0:0-1 ");
  EXPECT_EQ(toString(assignment.pieces[2]), "1:0-2 ");
  EXPECT_EQ(assignment.helped, std::vector<List>({{-1}, {0}, {0}}));
  // Room for 3 is all that is left and so is enough; with a cap of 4 it is not, and all is forced on rank 1.
  rule.minRows = 5;
  EXPECT_EQ(toString(assignLeastLoaded(loads, 3, 1, rule).pieces[0]), "0:0-4 2:4-9 1:9-12 ");
  rule.alphaNumerator = 4;
  rule.alphaDenominator = 5;
  rule.minRows = 3;
  EXPECT_EQ(toString(assignLeastLoaded(loads, 3, 1, rule).pieces[0]), "0:0-3 2:3-7 1:7-12 ");
  // No slot: all stays.
  EXPECT_EQ(toString(assignLeastLoaded(loads, 3, 0, rule).pieces[0]), "0:0-3 0:3-12 ");
  // The fullest rank has 13 of a mean of 5: 13/5 is not below 13/5, but below 27/10.
  rule.thresholdNumerator = 13;
  rule.thresholdDenominator = 5;
  EXPECT_EQ(toString(assignLeastLoaded(loads, 3, 1, rule).pieces[0]), "0:0-3 2:3-7 1:7-12 ");
  rule.thresholdNumerator = 27;
  rule.thresholdDenominator = 10;
  EXPECT_EQ(toString(assignLeastLoaded(loads, 3, 1, rule).pieces[0]), "0:0-12 ");
  EXPECT_EQ(assignLeastLoaded(loads, 3, 1, rule).helped, std::vector<List>({{-1}, {-1}, {-1}}));
}

// The cap is 10: rank 0 keeps 10 of 17 rows, and ranks 1, 2, 3 have room for 2, 3 and 2.
TEST(LeastLoaded, MinRows) {
  for (auto [minRows, pieces] :
       {std::pair(1, "0:0-10 2:10-13 1:13-15 3:15-17 "), {3, "0:0-10 2:10-13 1:13-17 "}, {4, "0:0-10 2:10-17 "}})
    EXPECT_EQ(toString(assignLeastLoaded({17, 8, 7, 8}, 4, 1, {1, 1, minRows, 1, 1}).pieces[0]), pieces);
}

TEST(LeastLoaded, RandomLoads) {
  std::mt19937_64 generator(3);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    int64_t count = 1 + generator() % 8, own = 1 + generator() % 3, slots = generator() % 5;
    List loads(count * own);
    for (int64_t &load : loads)
      load = generator() % 3 ? generator() % 20 : generator() % 2 ? 0 : 100;
    LeastLoadedRule rule = {static_cast<int64_t>(1 + generator() % 3), static_cast<int64_t>(1 + generator() % 2),
                            static_cast<int64_t>(1 + generator() % 10), 1, 1};
    Assignment assignment = assignLeastLoaded(loads, count, slots, rule);
    for (size_t expert = 0; expert < loads.size(); ++expert) {
      int64_t next = 0;
      for (const Piece &piece : assignment.pieces[expert]) {
        EXPECT_EQ(piece.begin, next);
        EXPECT_LT(piece.begin, piece.end);
        next = piece.end;
        EXPECT_TRUE(piece.rank == static_cast<int64_t>(expert) / own ||
                    llvm::is_contained(assignment.helped[piece.rank], static_cast<int64_t>(expert)));
      }
      EXPECT_EQ(next, loads[expert]);
    }
    for (int64_t rank = 0; rank < count; ++rank) {
      List held = assignment.helped[rank];
      EXPECT_EQ(static_cast<int64_t>(held.size()), slots);
      for (int64_t expert : held)
        EXPECT_TRUE(expert == -1 || (expert / own != rank && llvm::count(held, expert) == 1));
    }
    // No slots are plain expert parallelism, whatever the rule.
    EXPECT_EQ(getRankLoads(assignLeastLoaded(loads, count, 0, rule), count),
              getRankLoads(assignToOwners(loads, count, 0), count));
  }
}

// As many slots as there are foreign experts never bind: more change nothing.
TEST(LeastLoaded, EnoughSlots) {
  std::mt19937_64 generator(4);
  for (int repeat = 0; repeat < 200; ++repeat) {
    List loads(12);
    for (int64_t &load : loads)
      load = generator() % 50;
    Assignment enough = assignLeastLoaded(loads, 4, 9, {1, 1, 3, 1, 1}),
               more = assignLeastLoaded(loads, 4, 12, {1, 1, 3, 1, 1});
    for (size_t expert = 0; expert < loads.size(); ++expert)
      EXPECT_EQ(toString(enough.pieces[expert]), toString(more.pieces[expert]));
  }
}

TEST(ChunkCut, ByHand) {
  LeafRows rows = {{2, 0}, {1, 1}, {2, 1}, {0, 3}, {0, 2}, {4, 0}, {1, 0}};
  EXPECT_EQ(cutChunks(rows, 1, 0), List({0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(cutChunks(rows, 7, 0), List({0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(cutChunks(rows, 1, 4), List({0, 0, 1, 1, 2, 2, 3}));
  rows.push_back({0, 0}); // two chunks of four leaves: 0 2 4 | 6 and 1 3 | 5 7
  EXPECT_EQ(cutChunks(rows, 2, 4), List({0, 2, 0, 2, 0, 3, 1, 3}));
  // A chunk without rows is an iteration too.
  EXPECT_EQ(cutChunks(LeafRows(6, List{0, 0}), 3, 1), List({0, 1, 2, 0, 1, 2}));
}
} // namespace
