//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A whole layer with experts in loops over the iterations of a plan, with helpers: in exact mode the same bits as the
// plain layer, forward and every gradient, whatever the routing; and gradients against central differences.
//===----------------------------------------------------------------------===//

#include "ChunkedTest.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
constexpr int64_t columns = 3, hidden = 2;

class ChunkedLayer : public ChunkedTest {
protected:
  /// @f(x, weights of slots, gates and ups, downs, ids), and @f_adjoint with a cotangent behind them: the gradients of
  /// the first four. Where a loop writes tokens there is nothing before: each token must be written.
  static std::string getText(const ChunkedLayout &layout) {
    bool helps = layout.helperSlots > 0, loops = layout.isLoop();
    std::string migrate = helps ? R"mlir(
      %gates_helpers = moe.migrate_experts %gates by %plan on @experts : (!gates, !plan) -> !gates_helpers
      %downs_helpers = moe.migrate_experts %downs by %plan on @experts : (!downs, !plan) -> !downs_helpers)mlir"
                                : "";
    std::string bounds = loops ? R"mlir(
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %last = arith.constant $Q : index)mlir"
                               : "";
    std::string forward = "func.func @f(%x: !tokens, %p: !slots, %gates: !gates, %downs: !downs, %ids: !ids) -> "
                          "!tokens {\n$plan" +
                          migrate + bounds;
    if (loops)
      forward += R"mlir(
      %y_empty = tensor.empty() : !tokens
      %r = scf.for %i = %c0 to %last step %c1 iter_args(%y_before = %y_empty) -> (!tokens) {)mlir";
    forward += R"mlir(
      %rows, %rp = moe.dispatch rows(%x : !tokens -> !rows) values(%p : !slots -> !values) by %plan$at on @experts
          : !plan
      %h = moe.grouped_matmul %rows, %gates$help(gates) transpose by %plan$at : (!rows, !gates, !plan$H(gates)$I) -> !wide
      %a = moe.swiglu %h : !wide -> !narrow
      %u = moe.grouped_matmul %a, %downs$help(downs) transpose by %plan$at : (!narrow, !downs, !plan$H(downs)$I) -> !rows
      %z = moe.scale_rows %u, %rp : !rows, !values
      %y = moe.combine rows(%z : !rows -> !tokens) by %plan$at)mlir";
    forward += loops ? " into(%y_before : !tokens) on @experts : !plan\nscf.yield %y : !tokens\n}\nreturn %r : "
                       "!tokens\n}\n"
                     : " on @experts : !plan\nreturn %y : !tokens\n}\n";

    std::string backward = "func.func @f_adjoint(%x: !tokens, %p: !slots, %gates: !gates, %downs: !downs, %ids: !ids, "
                           "%dy: !tokens) -> (!tokens, !slots, !gates, !downs) {\n$plan" +
                           migrate + bounds;
    StringRef helperArguments = helps ? ", %dgh_before = %dgh_zero, %ddh_before = %ddh_zero" : "",
              helperTypes = helps ? ", !gates_helpers, !downs_helpers" : "";
    if (loops) {
      backward += R"mlir(
      %dx_empty = tensor.empty() : !tokens
      %dp_empty = tensor.empty() : !slots
      %dg_zero = arith.constant dense<0.0> : !gates
      %zero = arith.constant 0.0 : f32
      %dd_empty = tensor.empty() : !downs
      %dd_zero = linalg.fill ins(%zero : f32) outs(%dd_empty : !downs) -> !downs)mlir";
      if (helps)
        backward += R"mlir(
      %dgh_zero = arith.constant dense<0.0> : !gates_helpers
      %ddh_zero = arith.constant dense<0.0> : !downs_helpers)mlir";
      backward += llvm::formatv(R"mlir(
      %all:{2} = scf.for %i = %c0 to %last step %c1
          iter_args(%dx_before = %dx_empty, %dp_before = %dp_empty, %dg_before = %dg_zero, %dd_before = %dd_zero{0})
          -> (!tokens, !slots, !gates, !downs{1}) {{)mlir",
                                helperArguments, helperTypes, helps ? 6 : 4);
    }
    auto onto = [&](StringRef name) { // … of a gradient of weights
      return loops ? llvm::formatv(helps ? " onto %{0}_before, %{0}h_before" : " onto %{0}_before", name).str()
                   : std::string();
    };
    auto gradTypes = [&](StringRef a, StringRef b, StringRef type) {
      std::string own = ("!" + type).str(), helpers = own + "_helpers";
      std::string before = !loops ? "" : helps ? ", " + own + ", " + helpers : ", " + own;
      return llvm::formatv(" : (!{0}, !{1}, !plan{2}$I) -> {3}", a, b, before,
                           helps ? "(" + own + ", " + helpers + ")" : own)
          .str();
    };
    auto gradNames = [&](StringRef name) {
      return llvm::formatv(helps ? "\n      %{0}, %{0}h = " : "\n      %{0} = ", name).str();
    };
    backward += R"mlir(
      %rows, %rp = moe.dispatch rows(%x : !tokens -> !rows) values(%p : !slots -> !values) by %plan$at on @experts
          : !plan
      %dz = moe.dispatch rows(%dy : !tokens -> !rows) by %plan$at on @experts : !plan
      %h = moe.grouped_matmul %rows, %gates$help(gates) transpose by %plan$at : (!rows, !gates, !plan$H(gates)$I) -> !wide
      %a = moe.swiglu %h : !wide -> !narrow
      %g = moe.grouped_matmul %dz, %downs$help(downs) by %plan$at : (!rows, !downs, !plan$H(downs)$I) -> !narrow
      %drp = moe.row_dot %g, %a : !narrow -> !values
      %du = moe.scale_rows %dz, %rp : !rows, !values)mlir";
    backward += gradNames("dd") + "moe.grouped_matmul_grad %du, %a by %plan$at" + onto("dd") +
                gradTypes("rows", "narrow", "downs");
    backward += R"mlir(
      %da = moe.scale_rows %g, %rp : !narrow, !values
      %dh = moe.swiglu_grad %da, %h : !narrow, !wide)mlir";
    backward += gradNames("dg") + "moe.grouped_matmul_grad %dh, %rows by %plan$at" + onto("dg") +
                gradTypes("wide", "rows", "gates");
    backward += R"mlir(
      %drows = moe.grouped_matmul %dh, %gates$help(gates) by %plan$at : (!wide, !gates, !plan$H(gates)$I) -> !rows
      %dx, %dp = moe.combine rows(%drows : !rows -> !tokens) values(%drp : !values -> !slots) by %plan$at)mlir";
    if (loops)
      backward += llvm::formatv(" into(%dx_before : !tokens) values_into(%dp_before : !slots) on @experts : !plan\n"
                                "scf.yield %dx, %dp, %dg, %dd{0} : !tokens, !slots, !gates, !downs{1}\n}",
                                helps ? ", %dgh, %ddh" : "", helperTypes);
    else
      backward += " on @experts : !plan";
    auto result = [&](StringRef name, int number) {
      return loops ? "%all#" + std::to_string(number) : ("%" + name).str();
    };
    std::string dg = result("dg", 2), dd = result("dd", 3);
    if (helps) {
      backward += llvm::formatv(R"mlir(
      %dg_all = moe.return_expert_grads {0}, {1} by %plan on @experts : !gates, !gates_helpers, !plan
      %dd_all = moe.return_expert_grads {2}, {3} by %plan on @experts : !downs, !downs_helpers, !plan)mlir",
                                dg, result("dgh", 4), dd, result("ddh", 5));
      dg = "%dg_all";
      dd = "%dd_all";
    }
    backward += llvm::formatv("\nreturn {0}, {1}, {2}, {3} : !tokens, !slots, !gates, !downs\n}\n", result("dx", 0),
                              result("dp", 1), dg, dd);
    return expand(layout, forward + backward, columns, hidden);
  }

  /// x, weights of slots, gates and ups, downs, ids.
  RankNumbers getArguments(const ChunkedLayout &layout, const Routing &ids) {
    RankNumbers arguments;
    for (const Numbers &ofRank : ids)
      arguments.push_back({getRandom(layout.tokens * columns), getRandom(layout.getSlots()),
                           getRandom(layout.localExperts * 2 * hidden * columns),
                           getRandom(layout.localExperts * columns * hidden), ofRank});
    if (layout.grid.size() > 1) // ranks that are no shards of each other hold the same experts
      for (int64_t rank = 0; rank < layout.getRanks(); ++rank)
        for (int index : {2, 3})
          arguments[rank][index] = arguments[rank % layout.getShards()][index];
    return arguments;
  }
  RankNumbers addCotangents(const ChunkedLayout &layout, RankNumbers arguments) {
    for (auto &ofRank : arguments)
      ofRank.push_back(getRandom(layout.tokens * columns));
    return arguments;
  }

  static bool areSame(const RankTensors &a, const RankTensors &b) {
    return llvm::all_of(llvm::zip_equal(a, b), [](auto ofRank) {
      return llvm::all_of(llvm::zip_equal(std::get<0>(ofRank), std::get<1>(ofRank)),
                          [](auto tensors) { return areEqual(std::get<0>(tensors), std::get<1>(tensors)); });
    });
  }

  RankTensors run(const std::string &text, StringRef name, const RankNumbers &arguments) {
    return evaluateOnRanks(parse(text, name), Mode::Exact, arguments);
  }

  /// The result and the gradients have the bits of the plain layer.
  void check(const ChunkedLayout &layout, const Routing &ids) {
    std::string plain = getText(layout.getPlain()), chunked = getText(layout);
    SCOPED_TRACE(chunked);
    RankNumbers arguments = getArguments(layout, ids), withCotangents = addCotangents(layout, arguments);
    EXPECT_TRUE(areSame(run(chunked, "f", arguments), run(plain, "f", arguments)));
    EXPECT_TRUE(areSame(run(chunked, "f_adjoint", withCotangents), run(plain, "f_adjoint", withCotangents)));
  }
};

// The gradients written here are those of the ops' adjoints.
TEST_F(ChunkedLayer, PlainGradients) {
  for (const ChunkedLayout &layout : {ChunkedLayout{{1}, 3, 4, 2}, {{2}, 2, 3, 2}, {{2, 2}, 2, 3, 2}}) {
    func::FuncOp function = parse(getText(layout));
    function->getParentOfType<ModuleOp>().lookupSymbol("f_adjoint")->erase();
    func::FuncOp adjoint = buildAdjoint(function);
    ASSERT_TRUE(adjoint);
    RankNumbers arguments = addCotangents(layout, getArguments(layout, getRandomIds(layout)));
    RankNumbers expected = evaluateOnRanks(adjoint, arguments);
    RankNumbers gradients = evaluateOnRanks(parse(getText(layout), "f_adjoint"), arguments);
    for (auto [ofRank, expectedOfRank] : llvm::zip_equal(gradients, expected))
      for (auto [actual, numbers] : llvm::zip_equal(ofRank, expectedOfRank))
        expectNear(actual, numbers);
  }
}

TEST_F(ChunkedLayer, EveryRoutingOnEveryGrid) {
  int number = 0; // takes turns through slots, capacities and routings, whose counts are coprime
  for (int64_t ranks = 1; ranks <= 8; ++ranks)
    for (int64_t chunks : {1, 2, 3, 4, 11, 13})
      for (int repeat = 0; repeat < 4; ++repeat, ++number) {
        ChunkedLayout layout = {{ranks}, ranks > 4 ? 1 : 2, 12, 2};
        layout.chunks = chunks;
        layout.helperSlots = std::min(number % 5, static_cast<int>(layout.getExperts() - layout.localExperts));
        int64_t least = layout.getLeastCapacity(), most = least * ((layout.tokens + chunks - 1) / chunks);
        switch (number % 3) {
        case 0:
          layout.setCapacity(least);
          break;
        case 1:
          layout.setCapacity(std::min(most, least + 1 + static_cast<int64_t>(generator() % (most - least + 1))));
          break;
        default: // none
          break;
        }
        check(layout, getHardIds(layout, number % kinds));
      }
}

TEST_F(ChunkedLayer, EveryCapacity) {
  for (int64_t slots : {0, 1, 3})
    for (int64_t rows = 6; rows <= 24; ++rows)
      for (int kind : {1, 3, 6}) {
        ChunkedLayout layout = {{2}, 3, 8, 3};
        layout.chunks = 2;
        layout.helperSlots = slots;
        layout.setCapacity(rows);
        check(layout, getHardIds(layout, kind));
      }
}

TEST_F(ChunkedLayer, OtherGridsAndRules) {
  for (const std::vector<int64_t> &grid : std::vector<std::vector<int64_t>>{{2, 2}, {3, 1}, {1, 3}, {2, 1, 2}})
    for (StringRef rule : {"alpha = 3 over 2, min_rows = 1, threshold = 1 over 1",
                           "alpha = 1 over 1, min_rows = 4, threshold = 1 over 1",
                           "alpha = 1 over 2, min_rows = 2, threshold = 5 over 4"})
      for (int kind = 0; kind < kinds; ++kind) {
        ChunkedLayout layout = {grid, 2, 6, 2};
        layout.balance = rule;
        layout.helperSlots = grid.back() > 1 ? 2 : 0;
        layout.chunks = 2;
        layout.setCapacity(layout.getLeastCapacity() * 2);
        check(layout, getHardIds(layout, kind));
      }
}

// Ranks may choose so that each leaf is far below what it may have: a chunk is then one iteration, of the Q there may
// be.
TEST_F(ChunkedLayer, TokensWithoutRowsAndEmptyIterations) {
  ChunkedLayout layout = {{2}, 2, 9, 2};
  layout.helperSlots = 1;
  layout.chunks = 3;
  layout.setCapacity(layout.getLeastCapacity());
  Routing ids(2, Numbers(18, -1));
  ids[0][4] = 1;
  check(layout, ids);
  layout.tokens = 0;
  layout.leaves = 2;
  check(layout, Routing(2));
}

/// One text with `from` replaced once, behind `after`.
std::string replace(std::string text, StringRef after, StringRef from, StringRef to) {
  size_t start = text.find(after);
  EXPECT_NE(start, std::string::npos) << after.str();
  size_t at = text.find(from, start);
  EXPECT_NE(at, std::string::npos) << from.str();
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// The checks above on programs that are not the same.
TEST_F(ChunkedLayer, ChecksSeeAnError) {
  ChunkedLayout layout = {{2}, 2, 8, 2};
  layout.helperSlots = 2;
  layout.chunks = 2;
  layout.setCapacity(layout.getLeastCapacity() * 2);
  layout.capacity = 4; // All rows are for the last expert, and half of a leaf's 8 go to a helper: 4 iterations.
  Routing ids = getHardIds(layout, 1);
  std::string plain = getText(layout.getPlain()), chunked = getText(layout);
  RankNumbers arguments = addCotangents(layout, getArguments(layout, ids));
  RankTensors expected = run(plain, "f_adjoint", arguments);
  EXPECT_TRUE(areSame(run(chunked, "f_adjoint", arguments), expected));
  auto expectOther = [&](const std::string &text, std::initializer_list<int> results) {
    SCOPED_TRACE(text);
    FailureOr<RankTensors> other = tryOnRanks(parse(text, "f_adjoint"), Mode::Exact, arguments);
    ASSERT_TRUE(succeeded(other)) << errors;
    for (int index = 0; index < 4; ++index) {
      bool same = true;
      for (size_t rank = 0; rank < expected.size(); ++rank)
        same &= areEqual((*other)[rank][index], expected[rank][index]);
      EXPECT_EQ(!same, llvm::is_contained(results, index)) << index;
    }
  };
  StringRef adjoint = "@f_adjoint";
  // The helper's weights are not there.
  expectOther(replace(chunked, adjoint, "moe.migrate_experts %gates by %plan on @experts : (!gates, !plan) ->",
                      "arith.constant dense<0.0> :"),
              {0, 1, 2, 3});
  // Gradients of a helper are lost.
  expectOther(replace(chunked, adjoint, "%dd_all = moe.return_expert_grads %all#3, %all#5",
                      "%dd_all = moe.return_expert_grads %all#3, %ddh_zero"),
              {3});
  // The last iteration is lost, of weights and of tokens.
  expectOther(replace(replace(chunked, adjoint, "%dx_empty = tensor.empty()", "%dx_empty = arith.constant dense<0.0>"),
                      adjoint, llvm::formatv("constant {0} : index", layout.getIterations()).str(),
                      llvm::formatv("constant {0} : index", layout.getIterations() - 1).str()),
              {0, 1, 2, 3});
  // An accumulator starts anew.
  expectOther(replace(chunked, "moe.grouped_matmul_grad %dh", "onto %dg_before", "onto %dg_zero"), {2});
  // A token's row is put into nothing.
  expectOther(replace(chunked, "%dx, %dp = moe.combine", "into(%dx_before", "into(%dx_empty"), {0});
}

// --- Float64 ---

bool areSameBits(const Numbers &a, const Numbers &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// Sums over a token's slots and over columns have one order however tokens are cut and experts are spread. Poison
// (slots without an expert, tokens before they are written) does not come through. Gradients of weights are summed in
// another order, but for one chunk without a capacity and helpers.
TEST_F(ChunkedLayer, Float64) {
  for (int kind = 0; kind < kinds; ++kind)
    for (int64_t chunks : {1, 3})
      for (int64_t slots : {0, 3}) {
        ChunkedLayout layout = {{2}, 3, 7, 2};
        layout.chunks = chunks;
        layout.helperSlots = slots;
        if (chunks > 1)
          layout.setCapacity(layout.getLeastCapacity());
        RankNumbers arguments = getArguments(layout, getHardIds(layout, kind)),
                    withCotangents = addCotangents(layout, arguments);
        std::string plain = getText(layout.getPlain()), chunked = getText(layout);
        RankNumbers expected = evaluateOnRanks(parse(plain), arguments),
                    results = evaluateOnRanks(parse(chunked), arguments),
                    expectedGradients = evaluateOnRanks(parse(plain, "f_adjoint"), withCotangents),
                    gradients = evaluateOnRanks(parse(chunked, "f_adjoint"), withCotangents);
        for (size_t rank = 0; rank < results.size(); ++rank) {
          EXPECT_TRUE(areSameBits(results[rank][0], expected[rank][0]));
          for (size_t index = 0; index < 4; ++index)
            if (index < 2)
              EXPECT_TRUE(areSameBits(gradients[rank][index], expectedGradients[rank][index])) << index;
            else
              expectNear(gradients[rank][index], expectedGradients[rank][index]);
        }
      }
}

TEST_F(ChunkedLayer, GradientsAgainstDifferences) {
  for (int kind : {0, 3, 6})
    for (int64_t slots : {0, 2}) {
      ChunkedLayout layout = {{2}, 2, 4, 2};
      layout.chunks = 2;
      layout.helperSlots = slots;
      layout.setCapacity(layout.getLeastCapacity());
      func::FuncOp function = parse(getText(layout));
      auto adjoint = function->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>("f_adjoint");
      EXPECT_LT(getGradientError(function, adjoint, getArguments(layout, getHardIds(layout, kind))), 1e-8);
    }
}
} // namespace
