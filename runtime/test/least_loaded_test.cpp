//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// The least-loaded plan: figures that were computed elsewhere, and the plan as its definition reads, step by step.
#include "host/least_loaded.h"
#include "host/routes.h"
#include "plan_shape.h"
#include "plan_truth.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>
#include <vector>

using namespace plateau::rt::host;
using namespace plateau::rt::test;

namespace {

/// An assignment and its memory.
struct Assigned {
  std::vector<Piece> pieces;
  std::vector<int32_t> firstPiece, helped;
  std::vector<int64_t> numbers;
  int64_t ranks;
  plr_plan_shape shape;

  Assigned(int64_t ranks, const plr_plan_shape &shape, const std::vector<int64_t> &loads)
      : pieces(2 * shape.experts + ranks * shape.helper_slots, Piece{-7, -7, -7}), firstPiece(shape.experts, -7),
        helped(ranks * shape.helper_slots, -7), numbers(2 * shape.experts + 2 * ranks, -7), ranks(ranks), shape(shape) {
    std::copy(loads.begin(), loads.end(), numbers.begin());
    int64_t *loadsAndMore = numbers.data();
    AssignmentScratch scratch = {loadsAndMore, loadsAndMore + shape.experts, loadsAndMore + 2 * shape.experts,
                                 loadsAndMore + 2 * shape.experts + ranks};
    assignLeastLoaded(ranks, shape, get(), scratch);
  }
  Assignment get() { return {pieces.data(), firstPiece.data(), helped.data()}; }
  int64_t countMoves() const {
    return std::count_if(helped.begin(), helped.end(), [](int32_t expert) { return expert >= 0; });
  }
  /// (rank, slot) of each position of an expert's list.
  std::vector<std::pair<int32_t, int32_t>> list(int64_t expert, int64_t load) const {
    std::vector<std::pair<int32_t, int32_t>> result;
    for (int64_t piece = firstPiece[expert]; static_cast<int64_t>(result.size()) < load; ++piece)
      while (static_cast<int64_t>(result.size()) < std::min(load, pieces[piece].end))
        result.emplace_back(pieces[piece].rank, pieces[piece].slot);
    return result;
  }
};

/// How tokens choose experts in a profile: the first tokens all choose the same few.
struct Profile {
  const char *name;
  double share;
  int64_t few;

  int64_t choose(int64_t token, int64_t slot, int64_t tokens, int64_t experts) const {
    if (static_cast<double>(token) < std::floor(share * static_cast<double>(tokens)))
      return slot % few;
    return few + (token + slot) % (experts - few);
  }
};
constexpr Profile profiles[] = {{"balanced", 0, 0}, {"95/16", 0.95, 16}, {"80/16", 0.80, 16}, {"50/4", 0.5, 4}};

constexpr int64_t ranks = 8, tokens = 65536, experts = 128, topK = 8, chunks = 10;

std::vector<int32_t> makeIds(const Profile &profile) {
  std::vector<int32_t> ids(tokens * topK);
  for (int64_t route = 0; route < tokens * topK; ++route)
    ids[route] = static_cast<int32_t>(profile.choose(route / topK, route % topK, tokens, experts));
  return ids;
}

plr_plan_shape makeBalanced(int64_t helperSlots) {
  plr_plan_shape shape = makeShape(tokens, topK, experts);
  shape.helper_slots = helperSlots;
  shape.chunks = chunks;
  shape.alpha_numerator = 1;
  shape.min_rows = 1024;
  return shape;
}

/// Rows of the fullest rank over the mean, of all ranks with the same ids.
double getMaxOverMean(const Assigned &assigned, const std::vector<int64_t> &loads) {
  std::vector<int64_t> ofRank(ranks);
  int64_t total = 0;
  for (int64_t e = 0; e < experts; ++e) {
    int64_t begin = 0;
    for (int64_t piece = assigned.firstPiece[e]; begin < loads[e]; ++piece) {
      int64_t end = std::min(loads[e], assigned.pieces[piece].end);
      ofRank[assigned.pieces[piece].rank] += end - begin;
      begin = end;
    }
    total += loads[e];
  }
  return static_cast<double>(*std::max_element(ofRank.begin(), ofRank.end())) * ranks / static_cast<double>(total);
}

std::string format(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

} // namespace

// Moves, the load of the fullest rank without balance, and for chunks of every tenth token and for chunks of
// neighbours: the largest part of what a rank sends of a chunk that goes to one rank, over the mean; and the rows that
// the busiest rank receives of a chunk over all that it could.
TEST(LeastLoaded, HasTheFiguresOfTheProfiles) {
  const std::array<std::array<std::string, 6>, 4> expected = {{{"0", "1.000", "1.000", "0.1251", "1.016", "0.1269"},
                                                               {"13", "7.600", "1.350", "0.1251", "2.628", "0.1581"},
                                                               {"13", "6.400", "2.400", "0.1251", "4.000", "0.1563"},
                                                               {"10", "4.387", "2.290", "0.1251", "6.001", "0.1712"}}};
  for (size_t number = 0; number < expected.size(); ++number) {
    SCOPED_TRACE(profiles[number].name);
    const std::vector<int32_t> ids = makeIds(profiles[number]);
    std::vector<int64_t> own(experts), loads(experts);
    ASSERT_EQ(countRoutes(tokens, topK, experts, ids.data(), own.data()), "");
    std::transform(own.begin(), own.end(), loads.begin(), [](int64_t count) { return ranks * count; });
    const plr_plan_shape shape = makeBalanced(experts - experts / ranks);
    Assigned assigned(ranks, shape, loads);
    EXPECT_EQ(std::to_string(assigned.countMoves()), expected[number][0]);
    EXPECT_EQ(format(getMaxOverMean(Assigned(ranks, makeBalanced(0), loads), loads), 3), expected[number][1]);
    EXPECT_EQ(format(getMaxOverMean(assigned, loads), 3), "1.000");

    const int64_t slots = experts / ranks + shape.helper_slots, mostTokens = (tokens + chunks - 1) / chunks;
    double ratio[2] = {};
    std::vector<std::vector<int64_t>> received[2] = {
        std::vector<std::vector<int64_t>>(chunks, std::vector<int64_t>(8)),
        std::vector<std::vector<int64_t>>(chunks, std::vector<int64_t>(8))};
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<int64_t> positions(experts);
      std::transform(own.begin(), own.end(), positions.begin(), [&](int64_t count) { return rank * count; });
      Assigned copy = assigned;
      std::vector<int32_t> bins(tokens * topK), counts(chunks * ranks * slots);
      chooseBins(shape, ranks, ids.data(), copy.get(), positions.data(), bins.data(), counts.data());
      std::vector<std::vector<int64_t>> sent[2] = {std::vector<std::vector<int64_t>>(chunks, std::vector<int64_t>(8)),
                                                   std::vector<std::vector<int64_t>>(chunks, std::vector<int64_t>(8))};
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        for (int64_t bin = 0; bin < ranks * slots; ++bin)
          sent[0][chunk][bin / slots] += counts[chunk * ranks * slots + bin];
      for (int64_t route = 0; route < tokens * topK; ++route)
        ++sent[1][route / topK / mostTokens][bins[route] / slots];
      for (int way : {0, 1})
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
          const std::vector<int64_t> &row = sent[way][chunk];
          ratio[way] = std::max(ratio[way], static_cast<double>(*std::max_element(row.begin(), row.end())) * ranks /
                                                static_cast<double>(std::accumulate(row.begin(), row.end(), 0)));
          for (int64_t to = 0; to < ranks; ++to)
            received[way][chunk][to] += row[to];
        }
    }
    for (int way : {0, 1}) {
      int64_t most = 0;
      for (const std::vector<int64_t> &row : received[way])
        most = std::max(most, *std::max_element(row.begin(), row.end()));
      EXPECT_EQ(format(ratio[way], 3), expected[number][2 + 2 * way]);
      EXPECT_EQ(format(static_cast<double>(most) / (ranks * topK * mostTokens), 4), expected[number][3 + 2 * way]);
    }
  }
}

// The load of the fullest rank over the mean with 0 ... 4 helper slots, and the moves.
TEST(LeastLoaded, HasTheFiguresOfFewHelperSlots) {
  const std::array<std::array<const char *, 5>, 3> expected = {
      {{"7.600 (0)", "3.804 (8)", "1.935 (16)", "1.867 (24)", "1.000 (13)"},
       {"6.400 (0)", "3.214 (8)", "1.743 (16)", "1.471 (24)", "1.000 (13)"},
       {"4.387 (0)", "1.485 (8)", "1.193 (16)", "1.000 (10)", "1.000 (10)"}}};
  for (size_t number = 0; number < expected.size(); ++number) {
    const std::vector<int32_t> ids = makeIds(profiles[number + 1]);
    std::vector<int64_t> loads(experts);
    ASSERT_EQ(countRoutes(tokens, topK, experts, ids.data(), loads.data()), "");
    for (int64_t &load : loads)
      load *= ranks;
    for (int64_t slots = 0; slots < 5; ++slots) {
      Assigned assigned(ranks, makeBalanced(slots), loads);
      EXPECT_EQ(format(getMaxOverMean(assigned, loads), 3) + " (" + std::to_string(assigned.countMoves()) + ")",
                expected[number][slots])
          << profiles[number + 1].name << " " << slots;
    }
  }
}

TEST(LeastLoaded, IsWhatItsDefinitionSays) {
  std::mt19937 generator(7);
  auto draw = [&](int64_t most) { return static_cast<int64_t>(generator() % static_cast<uint32_t>(most + 1)); };
  int64_t moved = 0, kept = 0;
  for (int round = 0; round < 4000; ++round) {
    const int64_t count = 1 + draw(7), local = 1 + draw(5);
    plr_plan_shape shape = makeShape(0, 1, count * local);
    shape.helper_slots = std::min(draw(6), shape.experts - local);
    shape.alpha_numerator = 1 + draw(12);
    shape.alpha_denominator = 1 + draw(8);
    shape.min_rows = 1 + draw(round % 2 ? 3 : 40);
    shape.threshold_numerator = 1 + draw(20);
    shape.threshold_denominator = 10;
    std::vector<int64_t> loads(shape.experts);
    const int64_t most = draw(2) ? 100 : 3;
    for (int64_t &load : loads)
      load = draw(3) == 0 ? 0 : draw(most) * (draw(5) == 0 ? 20 : 1);
    Assigned assigned(count, shape, loads);
    const BalanceTruth definition(count, shape, loads);
    for (int64_t e = 0; e < shape.experts; ++e) {
      std::vector<std::pair<int32_t, int32_t>> places = assigned.list(e, loads[e]);
      ASSERT_EQ(places.size(), definition.rankOf[e].size());
      for (size_t i = 0; i < places.size(); ++i) {
        auto [rank, slot] = places[i];
        ASSERT_EQ(rank, definition.rankOf[e][i]) << "round " << round << " expert " << e << " position " << i;
        if (rank == e / local)
          ASSERT_EQ(slot, e % local);
        else
          ASSERT_EQ(assigned.helped[rank * shape.helper_slots + slot - local], e);
      }
    }
    for (int64_t rank = 0; rank < count; ++rank)
      for (int64_t slot = 0; slot < shape.helper_slots; ++slot) {
        const std::vector<int64_t> &helped = definition.helped[rank];
        ASSERT_EQ(assigned.helped[rank * shape.helper_slots + slot],
                  slot < static_cast<int64_t>(helped.size()) ? helped[slot] : -1);
        moved += slot < static_cast<int64_t>(helped.size());
      }
    kept += assigned.countMoves() == 0;
  }
  EXPECT_GT(moved, 5000); // The draw has cases of either kind.
  EXPECT_GT(kept, 500);
}

// A forced remainder, and what the owner keeps. 2 ranks with 2 experts, cap 50: expert 0 has 90 rows and expert 3
// has 10. Rank 0 takes 50; rank 1 has room for 40, all that is left.
TEST(LeastLoaded, CutsAnExpertsList) {
  plr_plan_shape shape = makeShape(0, 1, 4);
  shape.helper_slots = 1;
  shape.alpha_numerator = 1;
  Assigned assigned(2, shape, {90, 0, 0, 10});
  const Piece *piece = &assigned.pieces[assigned.firstPiece[0]];
  EXPECT_EQ(std::make_tuple(piece->end, piece->rank, piece->slot), std::make_tuple(50, 0, 0));
  ++piece;
  EXPECT_EQ(std::make_tuple(piece->end, piece->rank, piece->slot), std::make_tuple(90, 1, 2));
  EXPECT_EQ(assigned.helped, (std::vector<int32_t>{-1, 0}));
  // Without a slot the owner has two pieces.
  shape.helper_slots = 0;
  Assigned alone(2, shape, {90, 0, 0, 10});
  EXPECT_EQ(alone.pieces[alone.firstPiece[0]].end, 50);
  EXPECT_EQ(alone.pieces[alone.firstPiece[0] + 1].end, 90);
  EXPECT_EQ(alone.pieces[alone.firstPiece[0] + 1].rank, 0);
}

// Loads whose products with alpha do not fit 64 bits.
TEST(LeastLoaded, CountsWithoutOverflow) {
  plr_plan_shape shape = makeShape(0, 1, 2);
  shape.helper_slots = 1;
  shape.alpha_numerator = shape.alpha_denominator = 1000000000000;
  shape.threshold_numerator = shape.threshold_denominator = 1000000000000;
  Assigned assigned(2, shape, {int64_t(1) << 32, 0});
  EXPECT_EQ(assigned.pieces[0].end, int64_t(1) << 31);
  EXPECT_EQ(assigned.pieces[1].end, int64_t(1) << 32);
  EXPECT_EQ(assigned.pieces[1].rank, 1);
}

// Equal ranks are below every threshold above 1 over 1, and no other.
TEST(LeastLoaded, LeavesEvenRanksAlone) {
  plr_plan_shape shape = makeShape(0, 1, 4);
  shape.helper_slots = 2;
  shape.alpha_numerator = 1;
  shape.alpha_denominator = 2;
  shape.threshold_numerator = 11;
  shape.threshold_denominator = 10;
  EXPECT_EQ(Assigned(2, shape, {5, 5, 5, 5}).countMoves(), 0);
  EXPECT_GT(Assigned(2, shape, {6, 5, 5, 4}).countMoves(), 0); // 11 of 20 rows are just the threshold.
  shape.threshold_numerator = 12;
  EXPECT_EQ(Assigned(2, shape, {6, 5, 5, 4}).countMoves(), 0);
  shape.threshold_numerator = 10;
  EXPECT_GT(Assigned(2, shape, {5, 5, 5, 5}).countMoves(), 0);
}
