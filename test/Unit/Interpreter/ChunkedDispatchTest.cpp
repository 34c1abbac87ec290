//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The rows of one iteration, the experts in helper slots, and what goes wrong with them.
//===----------------------------------------------------------------------===//

#include "../../../lib/Interpreter/LeastLoaded.h"
#include "ChunkedTest.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;
using interpreter::Assignment;
using interpreter::Piece;

namespace {
class ChunkedDispatch : public ChunkedTest {
protected:
  /// @f(values of slots, ids): those that the rank receives in each iteration.
  static std::string getDispatches(const ChunkedLayout &layout) {
    std::string body, results, types;
    for (int64_t i = 0; i < layout.getIterations(); ++i) {
      body += llvm::formatv("%i{0} = arith.constant {0} : index\n"
                            "%r{0} = moe.dispatch values(%x : !slots -> !values) by %plan{1} on @experts : !plan\n",
                            i, layout.isLoop() ? " at %i" + std::to_string(i) : "");
      results += (i ? ", %r" : "%r") + std::to_string(i);
      types += i ? ", !values" : "!values";
    }
    return expand(layout,
                  llvm::formatv("func.func @f(%x: !slots, %ids: !ids) -> ({0}) {{\n$plan\n{1}return {2} : {0}\n}",
                                types, body, results));
  }

  /// The names of the slots that each rank receives in each iteration.
  RankNumbers getNames(const ChunkedLayout &layout, const Routing &ids) {
    RankNumbers arguments;
    for (int64_t rank = 0; rank < layout.getRanks(); ++rank) {
      Numbers names;
      for (int64_t token = 0; token < layout.tokens; ++token)
        for (int64_t slot = 0; slot < layout.topK; ++slot)
          names.push_back(getName(rank, token, slot));
      arguments.push_back({names, ids[rank]});
    }
    return evaluateOnRanks(getDispatches(layout), arguments);
  }
};

// Ranks 0 and 1 have experts {0, 1} and {2, 3}. Of expert 0 are 6 of all 8 rows: rank 0 keeps its own 3 beside the one
// of expert 1, which makes the mean of 4, and rank 1 takes the 3 that are its own. Leaf q is token q, and chunks are
// tokens 0, 2 and 1, 3.
const ChunkedLayout byHand = {{2}, 2, 4, 1, /*helperSlots=*/1, /*chunks=*/2, /*leaves=*/2, /*capacity=*/2};
const std::vector<Numbers> byHandIds = {{0, 0, 1, 0}, {0, 2, 0, 0}};

TEST_F(ChunkedDispatch, RowsByHand) {
  EXPECT_EQ(getNames(byHand, byHandIds),
            RankNumbers({{{0, 200}, {100, 300}, {}, {}}, {{10000, 10200}, {10100, 10300}, {}, {}}}));
  ChunkedLayout layout = byHand;
  layout.capacity = 1;
  EXPECT_EQ(getNames(layout, byHandIds),
            RankNumbers({{{0}, {200}, {100}, {300}}, {{10000}, {10200}, {10100}, {10300}}}));
  layout.chunks = 1;
  layout.leaves = 1;
  layout.capacity = 0; // by expert slot: token 2 is of expert 1, and a helper's rows come last
  EXPECT_EQ(getNames(layout, byHandIds), RankNumbers({{{0, 100, 300, 200}}, {{10100, 10000, 10200, 10300}}}));
  layout.helperSlots = 0;
  EXPECT_EQ(getNames(layout, byHandIds), RankNumbers({{{0, 100, 300, 10000, 10200, 10300, 200}}, {{10100}}}));
}

TEST_F(ChunkedDispatch, CombineWritesItsTokensAlone) {
  std::string text = expand(byHand, R"mlir(
    func.func @f(%x: !values, %before: !slots, %ids: !ids) -> (!slots, !slots) {
      $plan
      %i = arith.constant 1 : index
      %j = arith.constant 3 : index
      %empty = moe.dispatch values(%before : !slots -> !values) by %plan at %j on @experts : !plan
      %0 = moe.combine values(%x : !values -> !slots) by %plan at %i values_into(%before : !slots) on @experts : !plan
      %1 = moe.combine values(%empty : !values -> !slots) by %plan at %j values_into(%before : !slots) on @experts : !plan
      return %0, %1 : !slots, !slots
    })mlir");
  Numbers before = {5, 6, 7, 8};
  EXPECT_EQ(evaluateOnRanks(text, {{{1, 2}, before, byHandIds[0]}, {{3, 4}, before, byHandIds[1]}}),
            RankNumbers({{{5, 1, 7, 2}, before}, {{5, 3, 7, 4}, before}}));
  // A token of the iteration that sends nothing is 0. (Of 7 rows the mean is 3: rank 1 must take 3 of expert 0, and
  // rank 0 then has room for the one of expert 2, behind its own.)
  EXPECT_EQ(evaluateOnRanks(text, {{{1, 2}, before, {0, -1, 1, 0}}, {{3}, before, byHandIds[1]}}),
            RankNumbers({{{5, 0, 7, 1}, before}, {{5, 2, 7, 3}, before}}));
}

constexpr StringLiteral helperOps = R"mlir(
    func.func @matmul(%x: !tokens, %downs: !downs, %ids: !ids) -> (!rows, !downs_helpers) {
      $plan
      %i = arith.constant 1 : index
      %rows = moe.dispatch rows(%x : !tokens -> !rows) by %plan at %i on @experts : !plan
      %downs_helpers = moe.migrate_experts %downs by %plan on @experts : (!downs, !plan) -> !downs_helpers
      %u = moe.grouped_matmul %rows, %downs helpers(%downs_helpers) by %plan at %i
          : (!rows, !downs, !plan, !downs_helpers, index) -> !rows
      return %u, %downs_helpers : !rows, !downs_helpers
    }
    func.func @grad(%x: !tokens, %before: !downs, %helpers_before: !downs_helpers, %ids: !ids)
        -> (!downs, !downs_helpers, !downs, !downs, !downs_helpers) {
      $plan
      %i = arith.constant 1 : index
      %rows = moe.dispatch rows(%x : !tokens -> !rows) by %plan at %i on @experts : !plan
      %own, %helped = moe.grouped_matmul_grad %rows, %rows by %plan at %i onto %before, %helpers_before
          : (!rows, !rows, !plan, !downs, !downs_helpers, index) -> (!downs, !downs_helpers)
      %all = moe.return_expert_grads %own, %helped by %plan on @experts : !downs, !downs_helpers, !plan
      %none = arith.constant 2 : index
      %empty = moe.dispatch rows(%x : !tokens -> !rows) by %plan at %none on @experts : !plan
      %same, %helped_same = moe.grouped_matmul_grad %empty, %empty by %plan at %none onto %before, %helpers_before
          : (!rows, !rows, !plan, !downs, !downs_helpers, index) -> (!downs, !downs_helpers)
      return %own, %helped, %all, %same, %helped_same : !downs, !downs_helpers, !downs, !downs, !downs_helpers
    })mlir";

// In iteration 1 rank 0 has tokens 1 and 3 for expert 0; rank 1 has token 1 for expert 2, and token 3 for expert 0.
TEST_F(ChunkedDispatch, HelpersByHand) {
  std::string text = expand(byHand, helperOps.str(), 1, 1);
  Numbers x = {1, 10, 100, 1000};
  RankNumbers arguments = {{x, {2, 3}, byHandIds[0]}, {x, {5, 7}, byHandIds[1]}};
  RankNumbers results = evaluateOnRanks(parse(text, "matmul"), arguments);
  EXPECT_EQ(results[0][0], Numbers({20, 2000}));
  EXPECT_EQ(results[1], std::vector<Numbers>({{50, 2000}, {2}}));
  EXPECT_TRUE(std::isnan(results[0][1][0])); // no expert in the slot
  auto exact = evaluateOnRanks(parse(text, "matmul"), Mode::Exact, arguments);
  EXPECT_EQ(getIntegers(exact[1][0]), std::vector<int64_t>({50, 2000}));
  EXPECT_EQ(getIntegers(exact[1][1]), std::vector<int64_t>({2}));
  EXPECT_GT(std::abs(getIntegers(exact[0][1])[0]), 1000000);

  results = evaluateOnRanks(parse(text, "grad"), {{x, {1, 2}, {3}, byHandIds[0]}, {x, {4, 5}, {6}, byHandIds[1]}});
  EXPECT_EQ(results[0], std::vector<Numbers>({{1000101, 2}, {3}, {1000101 + 1000006, 2}, {1, 2}, {3}}));
  EXPECT_EQ(results[1], std::vector<Numbers>({{104, 5}, {1000006}, {104, 5}, {4, 5}, {6}}));
}

// (2^60 − 2^60) + 1, ranks in order. Expert 0 of rank 0 has all rows, a third on each rank; rank 0 itself helps nobody.
TEST_F(ChunkedDispatch, GradientsReturnInOrderOfRanks) {
  ChunkedLayout layout = {{3}, 1, 3, 1, /*helperSlots=*/1};
  double big = std::ldexp(1.0, 60);
  std::string text = expand(layout, R"mlir(
    func.func @f(%own: !downs, %helped: !downs_helpers, %ids: !ids) -> !downs {
      $plan
      %r = moe.return_expert_grads %own, %helped by %plan on @experts : !downs, !downs_helpers, !plan
      return %r : !downs
    })mlir",
                            1, 1);
  Numbers ids(3, 0);
  EXPECT_EQ(evaluateOnRanks(text, {{{big}, {5}, ids}, {{2}, {-big}, ids}, {{3}, {1}, ids}}),
            RankNumbers({{{1}}, {{2}}, {{3}}}));
}

/// Where a slot's row goes: iteration, expert slot of the rank, and where it comes from.
using Place = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>;

/// For each rank of a group of `ranks` the rows that it receives in order, and how many iterations there are.
std::pair<std::vector<std::vector<Place>>, int64_t> getPlaces(const ChunkedLayout &layout, ArrayRef<Numbers> ids,
                                                              const interpreter::LeastLoadedRule &rule) {
  std::vector<int64_t> loads(layout.getExperts()), positions(layout.getExperts());
  for (const Numbers &ofRank : ids)
    for (double id : ofRank)
      if (id >= 0)
        ++loads[static_cast<size_t>(id)];
  Assignment assignment = layout.helperSlots
                              ? interpreter::assignLeastLoaded(loads, layout.getShards(), layout.helperSlots, rule)
                              : interpreter::assignToOwners(loads, layout.getShards(), 0);
  // All places, with leaves for iterations.
  std::vector<std::vector<Place>> places(ids.size());
  std::map<int64_t, std::vector<int64_t>> leaves; // rows of each rank
  for (int64_t source = 0; source < static_cast<int64_t>(ids.size()); ++source)
    for (int64_t i = 0; i < layout.getSlots(); ++i) {
      auto id = static_cast<int64_t>(ids[source][i]);
      if (id < 0)
        continue;
      int64_t position = positions[id]++, token = i / layout.topK, leaf = token % layout.getIterations();
      for (const Piece &piece : assignment.pieces[id])
        if (position >= piece.begin && position < piece.end) {
          int64_t slot = id % layout.localExperts;
          if (piece.rank != id / layout.localExperts)
            for (slot = layout.localExperts; assignment.helped[piece.rank][slot - layout.localExperts] != id;)
              ++slot;
          places[piece.rank].emplace_back(leaf, slot, source, token, i % layout.topK);
          auto &counts = leaves[leaf];
          counts.resize(ids.size());
          ++counts[piece.rank];
        }
    }
  // Leaves of a chunk until one of the sums is too much.
  std::map<int64_t, int64_t> iterations;
  int64_t iteration = 0;
  for (int64_t chunk = 0; chunk < layout.chunks; ++chunk, ++iteration) {
    std::vector<int64_t> sums(ids.size());
    for (int64_t j = 0; j < layout.leaves; ++j) {
      int64_t leaf = chunk + j * layout.chunks;
      std::vector<int64_t> next = leaves[leaf];
      next.resize(ids.size());
      std::vector<int64_t> both = next;
      for (size_t rank = 0; rank < both.size(); ++rank)
        both[rank] += sums[rank];
      if (layout.capacity && *llvm::max_element(both) > layout.capacity) {
        ++iteration;
        both = next;
      }
      sums = both;
      iterations[leaf] = iteration;
    }
  }
  for (auto &ofRank : places) {
    for (Place &place : ofRank)
      std::get<0>(place) = iterations[std::get<0>(place)];
    llvm::sort(ofRank);
  }
  return {places, iteration};
}

TEST_F(ChunkedDispatch, OrderOfRows) {
  int64_t moved = 0, cut = 0, full = 0;
  for (int number = 0; number < 400; ++number) {
    ChunkedLayout layout = {{1 + number % 5}, 1 + number % 3, 1 + number % 11, 1 + number % 4};
    if (number % 7 == 0)
      layout.grid.insert(layout.grid.begin(), 2);
    layout.chunks = std::array{1, 2, 3, 5}[generator() % 4];
    layout.helperSlots = std::min<int64_t>(generator() % 4, layout.getExperts() - layout.localExperts);
    if (number % 4)
      layout.setCapacity(layout.getLeastCapacity() * (1 + generator() % 3) + generator() % 3);
    layout.balance = "alpha = 5 over 4, min_rows = 2, threshold = 6 over 5";
    Routing ids = getHardIds(layout, number % kinds);
    RankNumbers names = getNames(layout, ids);
    int64_t shards = layout.getShards();
    for (int64_t first = 0; first < layout.getRanks(); first += shards) {
      auto [places, iterations] = getPlaces(layout, ArrayRef(ids).slice(first, shards), {5, 4, 2, 6, 5});
      EXPECT_LE(layout.chunks, iterations);
      EXPECT_LE(iterations, layout.getIterations());
      cut += iterations > layout.chunks;
      for (int64_t rank = 0; rank < shards; ++rank) {
        std::vector<Numbers> expected(layout.getIterations());
        for (auto [iteration, expertSlot, source, token, slot] : places[rank]) {
          expected[iteration].push_back(getName(first + source, token, slot));
          moved += expertSlot >= layout.localExperts;
        }
        EXPECT_EQ(names[first + rank], expected) << getDispatches(layout) << "rank " << first + rank;
        for (const Numbers &received : names[first + rank]) {
          EXPECT_LE(static_cast<int64_t>(received.size()), layout.getShards() * layout.getSlots());
          if (layout.capacity)
            EXPECT_LE(static_cast<int64_t>(received.size()), layout.capacity);
          full += layout.capacity && static_cast<int64_t>(received.size()) == layout.capacity;
        }
      }
    }
  }
  // What the cases are about does happen.
  EXPECT_GT(moved, 100);
  EXPECT_GT(cut, 20);
  EXPECT_GT(full, 20);
}

// --- What goes wrong ---

TEST_F(ChunkedDispatch, RefusesALeafAboveTheCapacity) {
  ChunkedLayout layout = {{2}, 2, 4, 2, 0, /*chunks=*/2, /*leaves=*/2, /*capacity=*/3};
  std::string text = getDispatches(layout);
  Numbers x(8, 1), spread = {0, 1, 2, 3, -1, -1, 0, 2}, toLast = {0, -1, 2, -1, 3, 3, 3, -1};
  EXPECT_EQ(getErrorsOnRanks(text, {{x, toLast}, {x, toLast}}),
            "'moe.plan' op rank 1: receives 4 rows of leaf 2 alone, which are more than the capacity of 3 rows: a "
            "capacity of 4 holds every leaf\n");
  layout.capacity = 4;
  evaluateOnRanks(getDispatches(layout), {{x, toLast}, {x, toLast}});
  evaluateOnRanks(text, {{x, spread}, {x, Numbers(8, -1)}});
}

TEST_F(ChunkedDispatch, RefusesOtherIterationsAndRows) {
  func::FuncOp function = parse(expand(byHand, R"mlir(
    func.func @f(%x: !slots, %ids: !ids, %i: index) -> !values {
      $plan
      %r = moe.dispatch values(%x : !slots -> !values) by %plan at %i on @experts : !plan
      return %r : !values
    })mlir"));
  auto getErrorsAt = [&](int64_t first, int64_t second) {
    RankTensors arguments;
    for (auto [ids, index] : {std::pair(byHandIds[0], first), {byHandIds[1], second}})
      arguments.push_back({Tensor::make({4, 1}, 1.0),
                           Tensor::make({4, 1}, std::vector<int64_t>(ids.begin(), ids.end())),
                           Tensor::make({}, index)});
    errors.clear();
    EXPECT_TRUE(failed(Interpreter::evaluate(function, 2, Mode::Float64, arguments)));
    return errors;
  };
  EXPECT_EQ(getErrorsAt(4, 4), "'moe.dispatch' op rank 0: names iteration 4, and the plan has iterations 0 to 3\n");
  EXPECT_EQ(getErrorsAt(-1, -1), "'moe.dispatch' op rank 0: names iteration -1, and the plan has iterations 0 to 3\n");
  EXPECT_EQ(getErrorsAt(1, 2),
            "'moe.dispatch' op rank 1: names iteration 2, and rank 0 names 1: the ranks do not meet\n");
  EXPECT_EQ(getErrorsOnRanks(expand(byHand, R"mlir(
    func.func @f(%x: !values, %before: !slots, %ids: !ids) -> !slots {
      $plan
      %i = arith.constant 2 : index
      %r = moe.combine values(%x : !values -> !slots) by %plan at %i values_into(%before : !slots) on @experts : !plan
      return %r : !slots
    })mlir"),
                             {{{1, 2}, Numbers(4), byHandIds[0]}, {{}, Numbers(4), byHandIds[1]}}),
            "'moe.combine' op rank 0: has an operand of 2 rows, and by the plan the rank receives 0 in iteration 2\n");
}
} // namespace
