//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The vocabulary loss by tiles, with weights that go round the ranks, against the loss as one op; each op of it alone;
// lookups by shards; and the slices and loops that tiles are made with.
//===----------------------------------------------------------------------===//

#include "VocabularyTest.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class VocabularyTiles : public VocabularyTest {
protected:
  VocabularyTiles() { context.loadDialect<scf::SCFDialect>(); }

  /// The loss and its gradients row by row and by tiles of columns, the shards of the table going round; a shard's
  /// gradient goes with it, and one hop further, home.
  static std::string getText(const VocabularyCase &test) {
    int64_t columns = test.shardRows % 2 == 0 ? 2 : test.shardRows % 3 == 0 ? 3 : 1;
    std::string text = R"mlir(
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cn = arith.constant $n : index
  %cr = arith.constant $r : index
  %cc = arith.constant $c : index
  %zero = arith.constant 0.0 : f32
  %s0 = arith.constant dense<0.0> : $state
)mlir";
    for (int hop = 0; hop < test.ranks; ++hop)
      text += number(R"mlir(
  %first@ = moe.shard_start on @vocab hops(@) rows($r)
  %s# = scf.for %i = %c0 to %cn step %c1 iter_args(%sa = %s@) -> ($state) {
    %xi = tensor.extract_slice %x[%i, 0] [1, $h] [1, 1] : $x to $row
    %li = tensor.extract_slice %labels[%i] [1] [1] : $labels to tensor<1xi32>
    %si = tensor.extract_slice %sa[%i, 0] [1, $s] [1, 1] : $state to tensor<1x$sxf32>
    %sn = scf.for %j = %c0 to %cr step %cc iter_args(%sb = %si) -> (tensor<1x$sxf32>) {
      %w = tensor.extract_slice %t@[%j, 0] [$c, $h] [1, 1] : $table to $tile
?     %bj = tensor.extract_slice %b@[%j] [$c] [1] : $bias to tensor<$cxf32>
      %e = tensor.empty() : tensor<1x$cxf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x$cxf32>) -> tensor<1x$cxf32>
      %y = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%xi, %w : $row, $tile) outs(%z : tensor<1x$cxf32>)
        -> tensor<1x$cxf32>
      %f = moe.fold_logits %y, %li first(%first@) column(%j) $usebias into %sb $voc
        : (tensor<1x$cxf32>, tensor<1xi32>, tensor<i32>, index$biastype, tensor<1x$sxf32>) -> tensor<1x$sxf32>
      scf.yield %f : tensor<1x$sxf32>
    }
    %sm = tensor.insert_slice %sn into %sa[%i, 0] [1, $s] [1, 1] : tensor<1x$sxf32> into $state
    scf.yield %sm : $state
  }
  %place@ = tensor.empty() : $table
  %t# = moe.shift %t@ into %place@ on @vocab hops(1) : $table
? %bplace@ = tensor.empty() : $bias
? %b# = moe.shift %b@ into %bplace@ on @vocab hops(1) : $bias
)mlir",
                     hop);
    text += number("  %losses, %lse = moe.finish_losses %s@, %labels $voc : ($state, $labels) -> ($rows, $rows)\n"
                   "  %dx@ = arith.constant dense<0.0> : $x\n  %dt@ = arith.constant dense<0.0> : $table\n"
                   "  %db@ = arith.constant dense<0.0> : $bias\n",
                   test.ranks);
    for (int hop = test.ranks; hop < 2 * test.ranks; ++hop) {
      std::string round = R"mlir(
  %first@ = moe.shard_start on @vocab hops(@) rows($r)
  %dx#, %ds@, %du@ = scf.for %i = %c0 to %cn step %c1 iter_args(%xa = %dx@, %ta = %dt@, %ba = %db@)
      -> ($x, $table, $bias) {
    %xi = tensor.extract_slice %x[%i, 0] [1, $h] [1, 1] : $x to $row
    %li = tensor.extract_slice %labels[%i] [1] [1] : $labels to tensor<1xi32>
    %lsei = tensor.extract_slice %lse[%i] [1] [1] : $rows to tensor<1xf32>
    %gi = tensor.extract_slice %g[%i] [1] [1] : $rows to tensor<1xf32>
    %xs, %ts, %bs = scf.for %j = %c0 to %cr step %cc iter_args(%xb = %xa, %tb = %ta, %bb = %ba) -> ($x, $table, $bias) {
      %w = tensor.extract_slice %t@[%j, 0] [$c, $h] [1, 1] : $table to $tile
?     %bj = tensor.extract_slice %b@[%j] [$c] [1] : $bias to tensor<$cxf32>
      %e = tensor.empty() : tensor<1x$cxf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x$cxf32>) -> tensor<1x$cxf32>
      %y = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%xi, %w : $row, $tile) outs(%z : tensor<1x$cxf32>)
        -> tensor<1x$cxf32>
      %d = moe.logits_grad %y, %li, %lsei, %gi first(%first@) column(%j) $usebias $voc : (tensor<1x$cxf32>,
        tensor<1xi32>, tensor<1xf32>, tensor<1xf32>, tensor<i32>, index$biastype) -> tensor<1x$cxf32>
      %xr = tensor.extract_slice %xb[%i, 0] [1, $h] [1, 1] : $x to $row
      %xm = linalg.matmul ins(%d, %w : tensor<1x$cxf32>, $tile) outs(%xr : $row) -> $row
      %xn = tensor.insert_slice %xm into %xb[%i, 0] [1, $h] [1, 1] : $row into $x
      %tr = tensor.extract_slice %tb[%j, 0] [$c, $h] [1, 1] : $table to $tile
      %tm = linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%d, %xi : tensor<1x$cxf32>, $row) outs(%tr : $tile)
        -> $tile
      %tn = tensor.insert_slice %tm into %tb[%j, 0] [$c, $h] [1, 1] : $tile into $table
      %br = tensor.extract_slice %bb[%j] [$c] [1] : $bias to tensor<$cxf32>
      %bm = moe.column_sums %d into %br : tensor<1x$cxf32>, tensor<$cxf32>
      %bn = tensor.insert_slice %bm into %bb[%j] [$c] [1] : tensor<$cxf32> into $bias
      scf.yield %xn, %tn, %bn : $x, $table, $bias
    }
    scf.yield %xs, %ts, %bs : $x, $table, $bias
  }
  %place@ = tensor.empty() : $table
  %t# = moe.shift %t@ into %place@ on @vocab hops(1) : $table
  %dplace@ = tensor.empty() : $table
  %dt# = moe.shift %ds@ into %dplace@ on @vocab hops(1) : $table
  %bplace@ = tensor.empty() : $bias
  %db# = moe.shift %du@ into %bplace@ on @vocab hops(1) : $bias
? %cplace@ = tensor.empty() : $bias
? %b# = moe.shift %b@ into %cplace@ on @vocab hops(1) : $bias
)mlir";
      text += number(round, hop);
    }
    std::string kept; // lines of the bias begin with a question mark
    for (StringRef line : llvm::split(text, '\n'))
      if (!line.consume_front("?") || test.hasBias)
        kept += line.str() + "\n";
    for (auto [name, with] : {std::pair<StringRef, std::string>{"$usebias", test.hasBias ? "bias %bj" : ""},
                              {"$biastype", test.hasBias ? ", tensor<$cxf32>" : ""},
                              {"$state", "tensor<$nx$sxf32>"},
                              {"$table", "tensor<$rx$hxf32>"},
                              {"$tile", "tensor<$cx$hxf32>"},
                              {"$labels", "tensor<$nxi32>"},
                              {"$bias", "tensor<$rxf32>"},
                              {"$rows", "tensor<$nxf32>"},
                              {"$row", "tensor<1x$hxf32>"},
                              {"$voc", test.vocabulary.getAttribute()},
                              {"$x", "tensor<$nx$hxf32>"},
                              {"$n", std::to_string(test.rows)},
                              {"$r", std::to_string(test.shardRows)},
                              {"$c", std::to_string(columns)},
                              {"$h", std::to_string(test.width)},
                              {"$s", test.vocabulary.smoothing > 0 ? "4" : "3"}})
      VocabularyCase::replaceAll(kept, name, with);
    std::string step = test.wrapStep(kept);
    VocabularyCase::replaceAll(step, "%dx, %dt", number("%dx@, %dt@", 2 * test.ranks));
    VocabularyCase::replaceAll(step, ", %db :", number(", %db@ :", 2 * test.ranks));
    VocabularyCase::replaceAll(step, "%t: ", "%t0: ");
    VocabularyCase::replaceAll(step, "%b: ", "%b0: ");
    return "#mk = affine_map<(m, n, k) -> (m, k)>\n#nk = affine_map<(m, n, k) -> (n, k)>\n"
           "#mn = affine_map<(m, n, k) -> (m, n)>\n#km = affine_map<(m, n, k) -> (k, m)>\n"
           "#kn = affine_map<(m, n, k) -> (k, n)>\n" +
           test.getGrid() + step;
  }

  /// `text` with @ as `index` and # as the one after it; affine maps keep their #.
  static std::string number(std::string text, int index) {
    for (StringRef value : {"%s#", "%t#", "%b#", "%dx#", "%dt#", "%db#"})
      VocabularyCase::replaceAll(text, value, (value.drop_back() + std::to_string(index + 1)).str());
    for (StringRef grid : {"on @vocab"})
      VocabularyCase::replaceAll(text, grid, "on $grid");
    VocabularyCase::replaceAll(text, "@", std::to_string(index));
    VocabularyCase::replaceAll(text, "$grid", "@vocab");
    return text;
  }
};

TEST_F(VocabularyTiles, GiveTheLossAndItsGradients) {
  for (const VocabularyCase &test : getVocabularyCases()) {
    std::string text = getText(test);
    SCOPED_TRACE(text);
    RankNumbers arguments = getStepArguments(test);
    expectAllNear(evaluateOnRanks(text, arguments), evaluateOnRanks(test.getStepText(), arguments), 1e-13);
  }
}

// Logits 0 … 7 with label 3, by columns in two parts: each part's state on its own, and both merged.
TEST_F(VocabularyTiles, FoldAndMerge) {
  auto results = evaluate(R"mlir(
    func.func @f(%a: tensor<1x4xf32>, %b: tensor<1x4xf32>, %l: tensor<1xi32>)
        -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1xf32>, tensor<1xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %first = arith.constant dense<0> : tensor<i32>
      %three = arith.constant dense<3> : tensor<i32>
      %zero = arith.constant dense<0.0> : tensor<1x4xf32>
      %s = moe.fold_logits %a, %l first(%first) column(%c0) into %zero
        vocabulary<size = 8, label_smoothing = 0.1>
        : (tensor<1x4xf32>, tensor<1xi32>, tensor<i32>, index, tensor<1x4xf32>) -> tensor<1x4xf32>
      %u = moe.fold_logits %b, %l first(%three) column(%c1) into %zero
        vocabulary<size = 8, label_smoothing = 0.1>
        : (tensor<1x4xf32>, tensor<1xi32>, tensor<i32>, index, tensor<1x4xf32>) -> tensor<1x4xf32>
      %both = tensor.concat dim(0) %u, %s : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
      %m = moe.merge_states %both vocabulary<size = 8, label_smoothing = 0.1> : tensor<2x4xf32> -> tensor<1x4xf32>
      %losses, %lse = moe.finish_losses %m, %l vocabulary<size = 8, label_smoothing = 0.1>
        : (tensor<1x4xf32>, tensor<1xi32>) -> (tensor<1xf32>, tensor<1xf32>)
      return %s, %m, %losses, %lse : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1xf32>, tensor<1xf32>
    })mlir",
                          {{0, 1, 2, 3}, {4, 5, 6, 7}, {3}});
  auto getSum = [](int count) { return (1 - std::exp(-count)) / (1 - std::exp(-1)); }; // 1 + 1/e + …
  expectNear(results[0], {3, getSum(4), 3, 6});
  expectNear(results[1], {7, getSum(8), 3, 28});
  expectNear(results[2], {4.408340}, 2e-7);
  expectNear(results[3], {7 + std::log(getSum(8))});
}

/// Tiles of one column folded in, or the derivative of one: logits [rows of 1], state, and what the vocabulary masks.
constexpr StringLiteral foldColumns = R"mlir(
    func.func @f(%y: tensor<3x1xf32>, %l: tensor<3xi32>, %s: tensor<3x3xf32>, %first: tensor<i32>) -> tensor<3x3xf32> {
      %c1 = arith.constant 1 : index
      %r = moe.fold_logits %y, %l first(%first) column(%c1) into %s vocabulary<size = 4>
        : (tensor<3x1xf32>, tensor<3xi32>, tensor<i32>, index, tensor<3x3xf32>) -> tensor<3x3xf32>
      return %r : tensor<3x3xf32>
    })mlir";

TEST_F(VocabularyTiles, FoldGuards) {
  double infinity = std::numeric_limits<double>::infinity();
  Numbers state = {0, 0, 0, -800, 2, 5, -1e4, 1, 0};
  // −inf leaves the largest and the sum as they were, empty or not; as a label's logit it counts.
  expectNear(evaluate(foldColumns, {Numbers(3, -infinity), {0, 1, 2}, state, {2}})[0], state);
  EXPECT_EQ(evaluate(foldColumns, {Numbers(3, -infinity), {3, 1, 2}, state, {2}})[0][2], -infinity);
  // Column 2 + 1 of the vocabulary; the first logit of a row, one much larger, and one much smaller.
  expectNear(evaluate(foldColumns, {{-900, 3, -2e4}, {3, 1, 3}, state, {2}})[0],
             {-900, 1, -900, 3, 1, 5, -1e4, 1, -2e4});
  // Column 3 + 1 does not exist.
  expectNear(evaluate(foldColumns, {{1, 2, 3}, {4, 1, 2}, state, {3}})[0], state);
}

// The label's 1 − ε comes off its own column alone; rows that do not count and columns that do not exist are zero.
TEST_F(VocabularyTiles, LogitsGrad) {
  auto results = evaluate(R"mlir(
    func.func @f(%y: tensor<3x3xf32>, %l: tensor<3xi32>, %lse: tensor<3xf32>, %g: tensor<3xf32>) -> tensor<3x3xf32> {
      %c2 = arith.constant 2 : index
      %first = arith.constant dense<4> : tensor<i32>
      %d = moe.logits_grad %y, %l, %lse, %g first(%first) column(%c2)
        vocabulary<size = 8, label_smoothing = 0.5, z_loss = 0.25>
        : (tensor<3x3xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, index) -> tensor<3x3xf32>
      return %d : tensor<3x3xf32>
    })mlir",
                          {{0, 2, 9, -HUGE_VAL, 1, 9, 1, 1, 1}, {7, 1, -100}, {2, 1, 5}, {1, -2, 3}});
  // exp(y − lse) · (1 + lse / 2) − 1/16 − 1/2 at the label, times g
  expectNear(results[0], {2 * std::exp(-2) - 0.0625, 2 - 0.5625, 0, 0, -2 * (1.5 - 0.0625), 0, 0, 0, 0});
}

TEST_F(VocabularyTiles, FinishRefusesLabels) {
  StringRef text = R"mlir(
    func.func @f(%s: tensor<2x3xf32>, %l: tensor<2xi32>) -> tensor<2xf32> {
      %losses, %lse = moe.finish_losses %s, %l vocabulary<size = 3> : (tensor<2x3xf32>, tensor<2xi32>)
        -> (tensor<2xf32>, tensor<2xf32>)
      return %losses : tensor<2xf32>
    })mlir";
  for (auto [label, name] : {std::pair(1000, "1000"), {-1, "-1"}})
    EXPECT_EQ(getErrors(text, {{1, 1, 1, 1, 1, 1}, {0, static_cast<double>(label)}}),
              std::string("'moe.finish_losses' op rank 0: row 1 has label ") + name +
                  ", which is neither -100 (ignored) nor one of the 3 columns\n");
}

TEST_F(VocabularyTiles, HaveNoExactValue) {
  func::FuncOp function = parse(foldColumns);
  errors.clear();
  EXPECT_TRUE(failed(tryOnRanks(function, Mode::Exact, {{{1, 2, 3}, {0, 1, 2}, Numbers(9, 0), {0}}})));
  EXPECT_EQ(errors, "'moe.fold_logits' op rank 0: has no exact value: it rescales a running sum of exponentials; "
                    "compare in float64\n");
}

TEST_F(VocabularyTiles, ColumnSums) {
  StringRef text = R"mlir(
    func.func @f(%d: tensor<3x2xf32>, %s: tensor<2xf32>) -> tensor<2xf32> {
      %r = moe.column_sums %d into %s : tensor<3x2xf32>, tensor<2xf32>
      return %r : tensor<2xf32>
    })mlir";
  EXPECT_EQ(evaluate(text, {{1, 2, 3, 4, 5, 6}, {10, 20}})[0], Numbers({19, 32}));
  EXPECT_EQ(getIntegers(evaluateExactly(text, {{1, 2, 3, 4, 5, 6}, {10, 20}})[0]), std::vector<int64_t>({19, 32}));
}

// --- Round the ranks ---

TEST_F(VocabularyTiles, ShiftAndShardStart) {
  auto getText = [](StringRef grid, int hops) {
    return llvm::formatv(R"mlir(
    shard.grid @g(shape = {0})
    func.func @f(%x: tensor<2xi32>) -> (tensor<2xi32>, tensor<i32>) {{
      %e = tensor.empty() : tensor<2xi32>
      %r = moe.shift %x into %e on @g hops({1}) : tensor<2xi32>
      %s = moe.shard_start on @g hops({1}) rows(10)
      return %r, %s : tensor<2xi32>, tensor<i32>
    })mlir",
                         grid, hops)
        .str();
  };
  RankNumbers arguments = {{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}};
  RankNumbers one = {{{6, 7}, {30}}, {{0, 1}, {0}}, {{2, 3}, {10}}, {{4, 5}, {20}}};
  for (int hops : {1, 5, -3, -7})
    EXPECT_EQ(evaluateOnRanks(getText("4", hops), arguments), one) << hops;
  for (int hops : {0, 4, -4})
    EXPECT_EQ(evaluateOnRanks(getText("4", hops), arguments),
              RankNumbers({{{0, 1}, {0}}, {{2, 3}, {10}}, {{4, 5}, {20}}, {{6, 7}, {30}}}))
        << hops;
  EXPECT_EQ(evaluateOnRanks(getText("2x2", 1), arguments),
            RankNumbers({{{2, 3}, {10}}, {{0, 1}, {0}}, {{6, 7}, {10}}, {{4, 5}, {0}}}));
}

// --- Lookups by shards ---

TEST_F(VocabularyTiles, EmbeddingShards) {
  std::string text = R"mlir(
    func.func @f(%shard: tensor<2x2xf32>, %ids: tensor<4xi32>, %first: tensor<i32>, %d: tensor<4x2xf32>)
        -> (tensor<4x2xf32>, tensor<2x2xf32>) {
      %x = moe.embedding_shard %shard, %ids first(%first) size(5)
        : (tensor<2x2xf32>, tensor<4xi32>, tensor<i32>) -> tensor<4x2xf32>
      %dt = moe.embedding_shard_grad %d, %ids first(%first) into %shard
        : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %x, %dt : tensor<4x2xf32>, tensor<2x2xf32>
    })mlir";
  std::vector<Numbers> arguments = {{1, 2, 3, 4}, {3, 0, 2, 3}, {2}, {10, 20, 30, 40, 50, 60, 70, 80}};
  auto results = evaluate(text, arguments);
  EXPECT_EQ(results[0], Numbers({3, 4, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(results[1], Numbers({51, 62, 83, 104}));
  auto exact = evaluateExactly(text, arguments);
  EXPECT_EQ(getIntegers(exact[0]), std::vector<int64_t>({3, 4, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(getIntegers(exact[1]), std::vector<int64_t>({51, 62, 83, 104}));
  for (auto [id, name] : {std::pair(5, "5"), {-1, "-1"}}) {
    arguments[1][2] = id;
    EXPECT_EQ(getErrors(text, arguments), std::string("'moe.embedding_shard' op rank 0: row 2 has token id ") + name +
                                              ", but the table has 5 rows\n");
  }
}

// --- Slices ---

// Rows of a matrix and of a vector doubled in place, one after the other but the first; then two tensors joined.
constexpr StringLiteral slices = R"mlir(
    func.func @f(%m: tensor<3x2xf32>, %v: tensor<3xf32>, %from: tensor<2x2xf32>)
        -> (tensor<3x2xf32>, tensor<3xf32>, tensor<5x2xf32>, tensor<3x4xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant $end : index
      %n:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %m, %b = %v) -> (tensor<3x2xf32>, tensor<3xf32>) {
        %next = arith.addi %i, %c1 : index
        %same = arith.subi %next, %c0 : index
        %r = tensor.extract_slice %a[%next, 0] [1, 2] [1, 1] : tensor<3x2xf32> to tensor<1x2xf32>
        %s = arith.addf %r, %r : tensor<1x2xf32>
        %a1 = tensor.insert_slice %s into %a[%same, 0] [1, 2] [1, 1] : tensor<1x2xf32> into tensor<3x2xf32>
        %e = tensor.extract_slice %b[%next] [1] [1] : tensor<3xf32> to tensor<1xf32>
        %d = arith.addf %e, %e : tensor<1xf32>
        %b1 = tensor.insert_slice %d into %b[%same] [1] [1] : tensor<1xf32> into tensor<3xf32>
        scf.yield %a1, %b1 : tensor<3x2xf32>, tensor<3xf32>
      }
      %j = tensor.concat dim(0) %n#0, %from : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
      %w = tensor.concat dim(1) %m, %n#0 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
      return %n#0, %n#1, %j, %w : tensor<3x2xf32>, tensor<3xf32>, tensor<5x2xf32>, tensor<3x4xf32>
    })mlir";

TEST_F(VocabularyTiles, SlicesAtOffsetsOfLoops) {
  std::string text = slices.str();
  VocabularyCase::replaceAll(text, "$end", "2");
  std::vector<Numbers> arguments = {{1, 2, 3, 4, 5, 6}, {7, 8, 9}, {-1, -2, -3, -4}};
  std::vector<Numbers> expected = {
      {1, 2, 6, 8, 10, 12}, {7, 16, 18}, {1, 2, 6, 8, 10, 12, -1, -2, -3, -4}, {1, 2, 1, 2, 3, 4, 6, 8, 5, 6, 10, 12}};
  EXPECT_EQ(evaluate(text, arguments), expected);
  auto exact = evaluateExactly(text, arguments);
  for (auto [tensor, numbers] : llvm::zip_equal(exact, expected))
    EXPECT_EQ(toNumbers(tensor), numbers);
}

TEST_F(VocabularyTiles, SlicesOutOfRange) {
  std::string text = slices.str();
  VocabularyCase::replaceAll(text, "$end", "3");
  EXPECT_EQ(getErrors(text, {Numbers(6, 0), Numbers(3, 0), Numbers(4, 0)}),
            "'tensor.extract_slice' op rank 0: takes elements 3 to 3 of dimension 0, which has 3\n");
}
} // namespace
