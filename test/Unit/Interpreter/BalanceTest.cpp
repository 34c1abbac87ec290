//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The ops that even out experts: small numbers, gradients against central differences, and what the exact mode must and
// must not tell apart.
//===----------------------------------------------------------------------===//

#include "InterpreterTest.h"
#include "mlir/IR/Verifier.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
struct Case {
  int64_t tokens, experts, topK;
  StringRef score;
  int64_t sequence = 0, sequences = 0; ///< With ids where they are not 0.

  bool hasIds() const { return sequence > 0; }
  int64_t countIntegers() const { return hasIds() ? tokens * topK : experts; }
};

class Balance : public InterpreterTest {
protected:
  /// `text` with {0} the type of the logits, {1} that of counts or ids, {2} how these are given, {3} the rest of the op
  /// up to its type.
  static std::string fill(const char *text, const Case &c) {
    std::string logits = llvm::formatv("tensor<{0}x{1}xf32>", c.tokens, c.experts);
    std::string integers = c.hasIds() ? llvm::formatv("tensor<{0}x{1}xi32>", c.tokens, c.topK).str()
                                      : llvm::formatv("tensor<{0}xi32>", c.experts).str();
    std::string rest = c.hasIds() ? llvm::formatv("sequence({0}) sequences({1}) ", c.sequence, c.sequences).str() : "";
    rest += llvm::formatv("coefficient(0.5) routing <top_k = {0}, score = {1}, groups = 1, kept_groups = 1, normalize "
                          "= true, scale = 1.0 : f32>",
                          c.topK, c.score);
    return llvm::formatv(text, logits, integers, c.hasIds() ? "ids" : "counts", rest);
  }
  static std::string getLoss(const Case &c) {
    return fill(R"mlir(
      func.func @f(%x: {0}, %i: {1}) -> tensor<f32> {{
        %l = moe.balance_loss %x {2}(%i) {3} : ({0}, {1}) -> tensor<f32>
        return %l : tensor<f32>
      })mlir",
                c);
  }
  static std::string getGradient(const Case &c) {
    return fill(R"mlir(
      func.func @f(%g: tensor<f32>, %x: {0}, %i: {1}) -> {0} {{
        %d = moe.balance_loss_grad %g, %x {2}(%i) {3} : (tensor<f32>, {0}, {1}) -> {0}
        return %d : {0}
      })mlir",
                c);
  }
  /// Experts and −1, or counts.
  Numbers getIntegers(const Case &c) {
    Numbers numbers(c.countIntegers());
    for (double &number : numbers)
      number = double(generator() % (c.hasIds() ? c.experts + 1 : 9)) - (c.hasIds() ? 1 : 0);
    return numbers;
  }

  /// Central differences of the one result of `function` by argument 0.
  Numbers getDifferences(func::FuncOp function, std::vector<Numbers> arguments) {
    constexpr double step = 1e-5;
    Numbers differences;
    for (double &number : arguments[0]) {
      double middle = number;
      number = middle + step;
      double above = evaluate(function, arguments)[0][0];
      number = middle - step;
      double below = evaluate(function, arguments)[0][0];
      number = middle;
      differences.push_back((above - below) / (2 * step));
    }
    return differences;
  }

  void checkGradient(StringRef loss, StringRef gradient, const std::vector<Numbers> &arguments) {
    constexpr double cotangent = -1.25;
    Numbers expected = getDifferences(parse(loss), arguments);
    std::vector<Numbers> withCotangent = {{cotangent}};
    withCotangent.insert(withCotangent.end(), arguments.begin(), arguments.end());
    Numbers actual = evaluate(gradient, withCotangent)[0];
    double largest = 0;
    for (double &number : expected)
      largest = std::max(largest, std::abs(number *= cotangent));
    ASSERT_EQ(actual.size(), expected.size());
    EXPECT_GT(largest, 1e-3) << "the test says nothing";
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-8 * largest) << "element " << i;
  }

  /// The adjoint that the first op of `loss` builds, as @f(cotangent, arguments).
  func::FuncOp buildGradient(StringRef loss) {
    func::FuncOp forward = parse(loss);
    Operation *op = &forward.getBody().front().front();
    Type scalar = op->getResult(0).getType(), logits = op->getOperand(0).getType();
    SmallVector<Type> types = {scalar};
    llvm::append_range(types, forward.getArgumentTypes());
    OpBuilder builder = OpBuilder::atBlockEnd(modules.back()->getBody());
    Location loc = forward.getLoc();
    auto function = func::FuncOp::create(builder, loc, "gradient", builder.getFunctionType(types, logits));
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToStart(block);
    auto differentiable = cast<DifferentiableOpInterface>(op);
    SmallVector<Value> residuals, cotangents(op->getNumOperands());
    for (Value residual : differentiable.getResiduals())
      residuals.push_back(block->getArgument(1 + cast<BlockArgument>(residual).getArgNumber()));
    EXPECT_TRUE(succeeded(differentiable.buildAdjoint(builder, loc, residuals, {block->getArgument(0)}, cotangents)));
    for (Value cotangent : ArrayRef(cotangents).drop_front())
      EXPECT_FALSE(cotangent) << "integers have no derivative";
    func::ReturnOp::create(builder, loc, cotangents[0]);
    EXPECT_TRUE(succeeded(verify(function))) << errors;
    return function;
  }
};

// Scores 1/4 and 3/4, then 1/2 and 1/2; 4 routes of 2 tokens, 3 to expert 0: f = (3/4, 1/4), P = (3/8, 5/8).
TEST_F(Balance, ByHand) {
  double third = std::log(3.0);
  expectNear(evaluate(getLoss({2, 2, 2, "softmax"}), {{0, third, 1, 1}, {3, 1}})[0], {0.5 * 2 * (9. / 32 + 5. / 32)});
  // The first of two ranks has the first token alone.
  expectNear(evaluate(getLoss({1, 2, 2, "top_k_softmax"}), {{0, third}, {3, 1}})[0],
             {0.5 * 2 * (3. / 4 / 8 + 1. / 4 * 3 / 8)});
  // Sigmoids 1/2 and 3/4, so scores 2/5 and 3/5.
  expectNear(evaluate(getLoss({1, 2, 1, "sigmoid"}), {{0, third}, {1, 0}})[0], {0.5 * 2 * 0.4});
}

// Sequences of one token, of which the rank has 3 of 4: both experts alike; expert 1 alone; none.
TEST_F(Balance, SequencesByHand) {
  double third = std::log(3.0);
  expectNear(evaluate(getLoss({3, 2, 2, "softmax", 1, 4}), {{0, third, 0, third, 0, third}, {0, 1, 1, 1, -1, -1}})[0],
             {0.5 / 4 * (1 + 2 * 0.75)});
  // In one sequence: counts (1, 3) of 4 routes that are 2 tokens' worth.
  expectNear(evaluate(getLoss({3, 2, 2, "softmax", 3, 4}), {{0, third, 0, third, 0, third}, {0, 1, 1, 1, -1, -1}})[0],
             {0.5 / 4 * 2 * (1. / 4 * 3. / 8 + 3. / 4 * 9. / 8)});
}

TEST_F(Balance, EvenCountsGiveTheCoefficient) {
  for (StringRef score : {"softmax", "top_k_softmax", "sigmoid"})
    expectNear(evaluate(getLoss({6, 4, 2, score}), {getRandom(24), {3, 3, 3, 3}})[0], {0.5}, 1e-12);
}

TEST_F(Balance, NoRoutes) {
  EXPECT_EQ(evaluate(getLoss({2, 2, 2, "softmax"}), {{0, 1, 2, 3}, {0, 0}})[0], Numbers{0});
  EXPECT_EQ(evaluate(getLoss({2, 2, 1, "sigmoid", 2, 1}), {{0, 1, 2, 3}, {-1, -1}})[0], Numbers{0});
  EXPECT_EQ(evaluate(getGradient({2, 2, 2, "softmax"}), {{1}, {0, 1, 2, 3}, {0, 0}})[0], Numbers(4));
  EXPECT_EQ(evaluate(getLoss({0, 2, 2, "softmax"}), {{}, {3, 1}})[0], Numbers{0});
}

TEST_F(Balance, Gradients) {
  for (StringRef score : {"softmax", "top_k_softmax", "sigmoid"})
    for (Case c :
         {Case{5, 4, 2, score}, Case{1, 3, 1, score}, Case{6, 4, 2, score, 3, 5}, Case{2, 3, 3, score, 2, 1}}) {
      SCOPED_TRACE(getLoss(c));
      checkGradient(getLoss(c), getGradient(c), {getRandom(c.tokens * c.experts), getIntegers(c)});
    }
}

TEST_F(Balance, AdjointsThatAreBuilt) {
  for (Case c : {Case{3, 4, 2, "sigmoid"}, Case{6, 4, 2, "softmax", 3, 5}}) {
    std::vector<Numbers> arguments = {{2.5}, getRandom(c.tokens * c.experts), getIntegers(c)};
    EXPECT_EQ(evaluate(buildGradient(getLoss(c)), arguments), evaluate(getGradient(c), arguments));
  }
}

TEST_F(Balance, BadIntegers) {
  EXPECT_NE(getErrors(getLoss({2, 2, 2, "softmax"}), {{0, 1, 2, 3}, {4, -1}})
                .find("expert 1 has count -1, which is negative"),
            std::string::npos);
  for (double bad : {-2., 2.})
    EXPECT_NE(getErrors(getGradient({2, 2, 2, "softmax", 1, 2}), {{1}, {0, 1, 2, 3}, {0, 1, bad, 1}})
                  .find("token 1, slot 0 has id " + std::to_string(int(bad))),
              std::string::npos)
        << errors;
}

// A rank's tokens, one after the other or together, make the same sum, whatever their order.
TEST_F(Balance, ExactSharesAddUp) {
  Numbers logits = getRandom(12), counts = {2, 5, 1};
  Numbers first(logits.begin(), logits.begin() + 3), rest(logits.begin() + 3, logits.end()), moved = rest;
  llvm::append_range(moved, first);
  auto loss = [&](const Numbers &rows) {
    return evaluateExactly(getLoss({int64_t(rows.size()) / 3, 3, 2, "softmax"}), {rows, counts})[0].get<Field>()[0];
  };
  EXPECT_EQ(loss(logits), loss(first) + loss(rest));
  EXPECT_EQ(loss(logits), loss(moved));
  EXPECT_FALSE(loss(logits) == loss(rest));
  // So do whole sequences.
  Numbers ids = {0, 1, 2, 0};
  auto ofSequences = [&](int64_t begin, int64_t count) {
    Numbers rows(logits.begin() + begin * 6, logits.begin() + (begin + count) * 6);
    Numbers own(ids.begin() + begin * 2, ids.begin() + (begin + count) * 2);
    return evaluateExactly(getLoss({2 * count, 3, 1, "softmax", 2, 2}), {rows, own})[0].get<Field>()[0];
  };
  EXPECT_EQ(ofSequences(0, 2), ofSequences(0, 1) + ofSequences(1, 1));
}

TEST_F(Balance, ExactDependsOnAllThatCounts) {
  Numbers logits = getRandom(6), other = logits, counts = {2, 5, 1};
  other[4] += 0.5;
  auto loss = [&](const Case &c, const Numbers &rows, const Numbers &integers) {
    return evaluateExactly(getLoss(c), {rows, integers})[0].get<Field>()[0].getValue();
  };
  Case global = {2, 3, 2, "softmax"}, local = {2, 3, 1, "softmax", 2, 1}, apart = {2, 3, 1, "softmax", 1, 1};
  std::set<uint64_t> values = {loss(global, logits, counts),
                               loss(global, other, counts),
                               loss(global, logits, {2, 4, 1}),
                               loss({2, 3, 1, "softmax"}, logits, counts),
                               loss({2, 3, 2, "sigmoid"}, logits, counts),
                               loss(local, logits, {0, 1}),
                               loss(local, other, {0, 1}),
                               loss(local, logits, {1, 0}),
                               loss({2, 3, 1, "softmax", 2, 2}, logits, {0, 1})};
  EXPECT_EQ(values.size(), 9u);
  // A token's gradient does not depend on the others, where the counts do not; in a sequence it does.
  auto gradient = [&](const Case &c, const Numbers &rows, const Numbers &integers) {
    ArrayRef<Field> all = evaluateExactly(getGradient(c), {{1}, rows, integers})[0].get<Field>();
    return std::vector<uint64_t>{all[0].getValue(), all[1].getValue(), all[2].getValue()};
  };
  EXPECT_EQ(gradient(global, logits, counts), gradient(global, other, counts));
  EXPECT_NE(gradient(global, logits, counts), gradient(global, logits, {2, 4, 1}));
  EXPECT_NE(gradient(local, logits, {0, 1}), gradient(local, other, {0, 1}));
  EXPECT_NE(gradient(local, logits, {0, 1}), gradient(local, logits, {0, 2}));
}

// --- moe.z_loss ---

static const char *zLoss = R"mlir(
  func.func @f(%x: tensor<2x3xf32>) -> tensor<f32> {
    %l = moe.z_loss %x tokens(8) coefficient(0.5) : tensor<2x3xf32>
    return %l : tensor<f32>
  })mlir";
static const char *zLossGrad = R"mlir(
  func.func @f(%g: tensor<f32>, %x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %d = moe.z_loss_grad %g, %x tokens(8) coefficient(0.5) : tensor<2x3xf32>
    return %d : tensor<2x3xf32>
  })mlir";

TEST_F(Balance, ZLoss) {
  double four = std::log(4.0), three = std::log(3.0);
  expectNear(evaluate(zLoss, {{0, 0, std::log(2.0), 1000, 1000, 1000}})[0],
             {0.5 / 8 * (four * four + (1000 + three) * (1000 + three))});
  checkGradient(zLoss, zLossGrad, {getRandom(6)});
  std::vector<Numbers> arguments = {{2.5}, getRandom(6)};
  EXPECT_EQ(evaluate(buildGradient(zLoss), arguments), evaluate(zLossGrad, arguments));
}

TEST_F(Balance, ExactZLossAddsUp) {
  auto get = [&](int64_t rows, const char *rest, const Numbers &logits) {
    std::string text = llvm::formatv(R"mlir(
      func.func @f(%x: tensor<{0}x3xf32>) -> tensor<f32> {{
        %l = moe.z_loss %x {1} : tensor<{0}x3xf32>
        return %l : tensor<f32>
      })mlir",
                                     rows, rest);
    return evaluateExactly(text, {logits})[0].get<Field>()[0];
  };
  const char *rest = "tokens(8) coefficient(0.5)";
  Field first = get(1, rest, {1, 2, 3}), second = get(1, rest, {3, 2, 1});
  EXPECT_FALSE(first == second);
  EXPECT_EQ(get(2, rest, {1, 2, 3, 3, 2, 1}), first + second);
  EXPECT_FALSE(first == get(1, "tokens(9) coefficient(0.5)", {1, 2, 3}));
  EXPECT_FALSE(first == get(1, "tokens(8) coefficient(0.25)", {1, 2, 3}));
}

// --- moe.update_bias ---

static const char *updateBias = R"mlir(
  func.func @f(%b: tensor<4xf32>, %c: tensor<4xi32>, %s: tensor<f32>) -> tensor<4xf32> {
    %n = moe.update_bias %b, %c scale %s rate(0.25) : tensor<4xf32>, tensor<4xi32>
    return %n : tensor<4xf32>
  })mlir";

TEST_F(Balance, UpdateBias) {
  // 3 on average.
  EXPECT_EQ(evaluate(updateBias, {{1, 1, 1, 1}, {7, 2, 3, 0}, {0.5}})[0], (Numbers{0.75, 1.25, 1, 1.25}));
  for (double factor : {double(NAN), double(INFINITY)})
    EXPECT_EQ(evaluate(updateBias, {{1, 2, 3, 4}, {7, 2, 3, 0}, {factor}})[0], (Numbers{1, 2, 3, 4}));
}

TEST_F(Balance, ExactUpdateBias) {
  Field four = Field::fromInteger(4);
  std::vector<int64_t> quarters;
  for (Field bias : evaluateExactly(updateBias, {{1, 1, 1, 1}, {7, 2, 3, 0}, {0.5}})[0].get<Field>())
    quarters.push_back((bias * four).getSigned());
  EXPECT_EQ(quarters, (std::vector<int64_t>{3, 5, 4, 5}));
}
} // namespace
