//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A whole layer with experts: its gradients against central differences, and in exact mode the same bits however many
// ranks share the experts and the tokens, whatever the routing.
//===----------------------------------------------------------------------===//

#include "RanksTest.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
enum class Choice { ByRouter, ByArgument };
enum class Region { None, Checkpoint };

using Elements = std::vector<Field>;

/// A layer of 16 tokens in all, on a grid whose last axis shares the experts.
class RoutedLayer : public RanksTest {
protected:
  static constexpr int64_t allTokens = 16, experts = 8, topK = 3, columns = 5, hidden = 4;

  using Shape = std::vector<int64_t>; // of the grid
  static int64_t getRanks(const Shape &grid) { return ShapedType::getNumElements(grid); }

  /// @loss(x, router or weights of slots, gate and up, down, ids, cotangent) on one rank; trained are the first four.
  static std::string getText(const Shape &grid, Choice choice, Region region = Region::None) {
    int64_t tokens = allTokens / getRanks(grid), localExperts = experts / grid.back();
    auto type = [](ArrayRef<int64_t> shape, StringRef element = "f32") {
      return llvm::formatv("tensor<{0:$[x]}x{1}>", llvm::make_range(shape.begin(), shape.end()), element).str();
    };
    std::string rows = type({tokens, columns}), logits = type({tokens, experts}), ids = type({tokens, topK}, "i32"),
                slots = type({tokens, topK}), second = choice == Choice::ByRouter ? type({experts, columns}) : slots,
                gateAndUp = type({localExperts, 2 * hidden, columns}), down = type({localExperts, columns, hidden}),
                one = type({1, tokens * columns}), flat = type({tokens * columns}),
                plan = llvm::formatv("!moe.plan<experts = {0}, ranks = {1}, tokens = {2}, top_k = {3}>", experts,
                                     grid.back(), tokens, topK);
    std::string choose = choice == Choice::ByArgument ? std::string()
                                                      : llvm::formatv(R"mlir(
      %zero = arith.constant dense<0.0> : {0}
      %logits = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                               affine_map<(m, n, k) -> (m, n)>]
          ins(%x, %second : {1}, {2}) outs(%zero : {0}) -> {0}
      %chosen, %p, %counts = moe.route %logits
          routing <top_k = {3}, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32>
          : ({0}) -> ({4}, {5}, tensor<{6}xi32>))mlir",
                                                                      logits, rows, second, topK, ids, slots, experts)
                                                            .str();
    std::string layer =
        llvm::formatv(R"mlir({0}
      %plan = moe.plan {1} on @experts : {2} -> {3}
      %rows, %rp = moe.dispatch rows(%x : {4} -> tensor<?x{5}xf32>) values({6} : {7} -> tensor<?xf32>)
          by %plan on @experts : {3}
      %h = moe.grouped_matmul %rows, %gate_up transpose by %plan
          : (tensor<?x{5}xf32>, {8}, {3}) -> tensor<?x{9}xf32>
      %a = moe.swiglu %h : tensor<?x{9}xf32> -> tensor<?x{10}xf32>
      %u = moe.grouped_matmul %a, %down transpose by %plan
          : (tensor<?x{10}xf32>, {11}, {3}) -> tensor<?x{5}xf32>
      %z = moe.scale_rows %u, %rp : tensor<?x{5}xf32>, tensor<?xf32>
      %combined = moe.combine rows(%z : tensor<?x{5}xf32> -> {4}) by %plan on @experts : {3})mlir",
                      choose, choice == Choice::ByRouter ? "%chosen" : "%ids", ids, plan, rows, columns,
                      choice == Choice::ByRouter ? "%p" : "%second", slots, gateAndUp, 2 * hidden, hidden, down);
    StringRef suffix = region == Region::None ? "" : "_outside";
    if (region == Region::Checkpoint)
      layer = llvm::formatv(R"mlir(
      %combined = moe.checkpoint (%x = %x_outside : {0}, %second = %second_outside : {1}, %gate_up = %gate_up_outside : {2},
                           %down = %down_outside : {3}, %ids = %ids_outside : {4}) -> {0} {{ {5}
        moe.yield %combined : {0}
      })mlir",
                            rows, second, gateAndUp, down, ids, layer);
    auto parameter = [](StringRef name) {
      return llvm::formatv("{{moe.parameter = #moe.parameter<\"{0}\", decay = true, mean = 0.0 : f64, "
                           "deviation = 1.0 : f64>}",
                           name)
          .str();
    };
    return llvm::formatv(R"mlir(
    shard.grid @experts(shape = {0:$[x]})
    func.func @loss(%x{1}: {2} {3}, %second{1}: {4} {5}, %gate_up{1}: {6} {7}, %down{1}: {8} {9}, %ids{1}: {10}, %c: {2})
        -> tensor<f32> {{{11}
      %y0 = tensor.collapse_shape %combined [[0, 1]] : {2} into {12}
      %y1 = tensor.expand_shape %y0 [[0, 1]] output_shape [1, {13}] : {12} into {14}
      %c0 = tensor.collapse_shape %c [[0, 1]] : {2} into {12}
      %c1 = tensor.expand_shape %c0 [[0, 1]] output_shape [1, {13}] : {12} into {14}
      %dot = moe.row_dot %y1, %c1 : {14} -> tensor<1xf32>
      %loss = tensor.collapse_shape %dot [] : tensor<1xf32> into tensor<f32>
      return %loss : tensor<f32>
    })mlir",
                         llvm::make_range(grid.begin(), grid.end()), suffix, rows, parameter("x"), second,
                         parameter("second"), gateAndUp, parameter("gate_up"), down, parameter("down"), ids, layer,
                         flat, tokens * columns, one);
  }

  /// The function of the loss and of the gradients of x, second, gate and up, and down; in that order.
  func::FuncOp getGradients(StringRef text, bool fold = false) {
    auto module = parse(text, "loss")->getParentOfType<ModuleOp>();
    PassManager manager(&context);
    manager.addPass(moe::createMoEDifferentiate());
    if (fold)
      manager.addPass(moe::createMoEFoldRouteGrad());
    EXPECT_TRUE(succeeded(manager.run(module))) << errors;
    return module.lookupSymbol<func::FuncOp>("loss_and_gradients");
  }

  /// The arguments of one rank that has everything.
  std::vector<Numbers> getArguments(Choice choice, const Numbers &ids) {
    return {getRandom(allTokens * columns),
            getRandom(choice == Choice::ByRouter ? experts * columns : allTokens * topK),
            getRandom(experts * 2 * hidden * columns),
            getRandom(experts * columns * hidden),
            ids,
            getRandom(allTokens * columns)};
  }

  /// Part `index` of `parts`.
  template <typename List>
  static List cut(const List &whole, int64_t index, int64_t parts) {
    int64_t size = whole.size() / parts;
    return List(whole.begin() + index * size, whole.begin() + (index + 1) * size);
  }

  /// The same on the ranks of a grid.
  static RankNumbers divide(const std::vector<Numbers> &whole, const Shape &grid, Choice choice) {
    RankNumbers arguments;
    int64_t ranks = getRanks(grid), shards = grid.back();
    for (int64_t rank = 0; rank < ranks; ++rank) {
      auto &ofRank = arguments.emplace_back();
      for (auto [index, numbers] : llvm::enumerate(whole))
        if (index == 1 && choice == Choice::ByRouter)
          ofRank.push_back(numbers);
        else if (index == 2 || index == 3)
          ofRank.push_back(cut(numbers, rank % shards, shards));
        else
          ofRank.push_back(cut(numbers, rank, ranks));
    }
    return arguments;
  }

  static void addTo(Elements &sums, ArrayRef<Field> elements) {
    sums.resize(elements.size(), Field());
    for (auto [sum, element] : llvm::zip_equal(sums, elements))
      sum += element;
  }

  /// Loss and gradients of all ranks together: what belongs to the tokens side by side, what several ranks hold summed.
  static std::vector<Elements> unite(const RankTensors &results, const Shape &grid, Choice choice) {
    std::vector<Elements> united(5);
    int64_t shards = grid.back();
    std::vector<Elements> gateAndUp(shards), down(shards);
    for (auto [rank, tensors] : llvm::enumerate(results)) {
      addTo(united[0], tensors[0].get<Field>());
      llvm::append_range(united[1], tensors[1].get<Field>());
      if (choice == Choice::ByRouter)
        addTo(united[2], tensors[2].get<Field>());
      else
        llvm::append_range(united[2], tensors[2].get<Field>());
      addTo(gateAndUp[rank % shards], tensors[3].get<Field>());
      addTo(down[rank % shards], tensors[4].get<Field>());
    }
    for (int64_t shard = 0; shard < shards; ++shard) {
      llvm::append_range(united[3], gateAndUp[shard]);
      llvm::append_range(united[4], down[shard]);
    }
    return united;
  }

  std::vector<Elements> run(const Shape &grid, Choice choice, const RankNumbers &arguments,
                            Region region = Region::None, bool fold = false) {
    std::string text = getText(grid, choice, region);
    return unite(evaluateOnRanks(getGradients(text, fold), Mode::Exact, arguments), grid, choice);
  }

  /// Loss and all gradients have the same bits on every grid as on one rank.
  void checkSplits(Choice choice, const Numbers &ids) {
    std::vector<Numbers> arguments = getArguments(choice, ids);
    std::vector<Elements> whole = run({1}, choice, {arguments});
    for (const Shape &grid : std::vector<Shape>{{2}, {4}, {8}, {2, 2}, {4, 1}, {2, 4}, {2, 2, 2}})
      for (auto [index, values] : llvm::enumerate(run(grid, choice, divide(arguments, grid, choice))))
        EXPECT_TRUE(values == whole[index])
            << "result " << index << ", " << getRanks(grid) << " ranks, " << grid.back() << " parts of the experts";
  }

  Numbers getRandomIds(int least = 0) {
    Numbers ids(allTokens * topK);
    for (double &id : ids)
      id = static_cast<double>(generator() % (experts - least)) + least;
    return ids;
  }
};

TEST_F(RoutedLayer, SplitsWithARouter) { checkSplits(Choice::ByRouter, Numbers(allTokens * topK)); }

TEST_F(RoutedLayer, SplitsWithRandomIds) { // some twice in one token
  checkSplits(Choice::ByArgument, getRandomIds());
  checkSplits(Choice::ByArgument, getRandomIds(-1));
}

TEST_F(RoutedLayer, SplitsWithOneExpert) {
  for (double expert : {0.0, 5.0, 7.0}) {
    checkSplits(Choice::ByArgument, Numbers(allTokens * topK, expert)); // each token three times
    Numbers once(allTokens * topK, -1);
    for (size_t slot = 1; slot < once.size(); slot += topK)
      once[slot] = expert;
    checkSplits(Choice::ByArgument, once);
  }
}

TEST_F(RoutedLayer, SplitsWithEmptyExperts) {
  Numbers ids = getRandomIds();
  for (double &id : ids)
    id = id < 4 ? 3 : 6; // the other six have no rows
  checkSplits(Choice::ByArgument, ids);
}

TEST_F(RoutedLayer, SplitsWithRanksWithoutTokens) {
  Numbers ids = getRandomIds();
  for (int64_t token = 0; token < allTokens; ++token)
    if (token < 4 || token / 2 == 5) // ranks 0 and 1 of 4; 0, 1 and 5 of 8
      std::fill_n(ids.begin() + token * topK, topK, -1);
  checkSplits(Choice::ByArgument, ids);
  checkSplits(Choice::ByArgument, Numbers(allTokens * topK, -1));
}

// The check above on programs that are not the same.
TEST_F(RoutedLayer, SplitsSeeAnError) {
  Numbers ids = getRandomIds();
  std::vector<Numbers> arguments = getArguments(Choice::ByArgument, ids);
  std::vector<Elements> whole = run({1}, Choice::ByArgument, {arguments});
  RankNumbers parts = divide(arguments, {2}, Choice::ByArgument), others = parts;
  EXPECT_TRUE(run({2}, Choice::ByArgument, parts) == whole);
  std::swap(others[0][3], others[1][3]); // down of the other experts
  for (auto [index, values] : llvm::enumerate(run({2}, Choice::ByArgument, others)))
    if (index != 4) // the gradient of down does not read down
      EXPECT_FALSE(values == whole[index]) << "result " << index;
  others = parts;
  others[1][4][7] = static_cast<int>(others[1][4][7] + 1) % experts; // one slot
  for (auto [index, values] : llvm::enumerate(run({2}, Choice::ByArgument, others)))
    EXPECT_FALSE(values == whole[index]) << "result " << index;
  std::swap(parts[0][4], parts[1][4]); // the tokens' ids, not their rows
  EXPECT_FALSE(run({2}, Choice::ByArgument, parts)[0] == whole[0]);
}

TEST_F(RoutedLayer, ChangesNoBitByRegionsAndFolds) {
  for (Choice choice : {Choice::ByRouter, Choice::ByArgument}) {
    RankNumbers arguments = divide(getArguments(choice, getRandomIds(-1)), {2, 2}, choice);
    std::vector<Elements> plain = run({2, 2}, choice, arguments);
    EXPECT_TRUE(run({2, 2}, choice, arguments, Region::None, /*fold=*/true) == plain);
    EXPECT_TRUE(run({2, 2}, choice, arguments, Region::Checkpoint) == plain);
    EXPECT_TRUE(run({2, 2}, choice, arguments, Region::Checkpoint, /*fold=*/true) == plain);
  }
}

TEST_F(RoutedLayer, GradientsAgainstDifferences) {
  for (const Shape &grid : std::vector<Shape>{{1}, {4}, {2, 2}})
    for (Choice choice : {Choice::ByRouter, Choice::ByArgument}) {
      func::FuncOp function = parse(getText(grid, choice), "loss"), adjoint = buildAdjoint(function);
      ASSERT_TRUE(adjoint);
      EXPECT_LT(getGradientError(function, adjoint, divide(getArguments(choice, getRandomIds(-1)), grid, choice)),
                1e-8);
    }
}

// Without routing that depends on it, the sum over ranks does not depend on how tokens and experts are divided.
TEST_F(RoutedLayer, LossInFloat64) {
  std::vector<Numbers> arguments = getArguments(Choice::ByRouter, Numbers(allTokens * topK));
  double whole = evaluateOnRanks(parse(getText({1}, Choice::ByRouter), "loss"), {arguments})[0][0][0];
  for (const Shape &grid : std::vector<Shape>{{2}, {8}, {2, 4}}) {
    double sum = 0;
    for (const auto &results :
         evaluateOnRanks(parse(getText(grid, Choice::ByRouter), "loss"), divide(arguments, grid, Choice::ByRouter)))
      sum += results[0][0];
    EXPECT_NEAR(sum, whole, 1e-12);
  }
}
} // namespace
