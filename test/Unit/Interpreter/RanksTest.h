//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Evaluates functions on several ranks, and compares the adjoints of programs of several ranks with differences.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_INTERPRETER_RANKSTEST_H
#define PLATEAU_TEST_UNIT_INTERPRETER_RANKSTEST_H

#include "AdjointTest.h"
#include <cmath>

namespace mlir::plateau::test {

/// [rank][index], of arguments or results.
using RankNumbers = std::vector<std::vector<Numbers>>;
using RankTensors = SmallVector<SmallVector<Tensor>>;

class RanksTest : public AdjointTest {
protected:
  /// Numbers as an argument of `type`; their count says how many rows there are when the type leaves that open.
  static Tensor makeTensor(Type type, const Numbers &numbers, Mode mode) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    if (!shape.empty() && ShapedType::isDynamic(shape.front()))
      shape.front() = static_cast<int64_t>(numbers.size()) / ShapedType::getNumElements(ArrayRef(shape).drop_front());
    if (!isa<FloatType>(tensor.getElementType()))
      return Tensor::make(shape, std::vector<int64_t>(numbers.begin(), numbers.end()));
    if (mode == Mode::Float64)
      return Tensor::make(shape, numbers);
    auto elements = llvm::map_range(numbers, Field::fromDouble);
    return Tensor::make(shape, std::vector<Field>(elements.begin(), elements.end()));
  }

  FailureOr<RankTensors> tryOnRanks(func::FuncOp function, Mode mode, const RankNumbers &arguments) {
    RankTensors tensors;
    for (const std::vector<Numbers> &ofRank : arguments) {
      tensors.emplace_back();
      for (auto [type, numbers] : llvm::zip_equal(function.getArgumentTypes(), ofRank))
        tensors.back().push_back(makeTensor(type, numbers, mode));
    }
    return Interpreter::evaluate(function, static_cast<int>(arguments.size()), mode, tensors);
  }

  /// All results in `mode`; none of a rank, with a failed expectation, when there are none.
  RankTensors evaluateOnRanks(func::FuncOp function, Mode mode, const RankNumbers &arguments) {
    FailureOr<RankTensors> results = tryOnRanks(function, mode, arguments);
    EXPECT_TRUE(succeeded(results)) << errors;
    return succeeded(results)
               ? *results
               : RankTensors(arguments.size(), SmallVector<Tensor>(function.getNumResults(), Tensor::make({0}, 0.0)));
  }

  /// In float64, as numbers; integers too.
  RankNumbers evaluateOnRanks(func::FuncOp function, const RankNumbers &arguments) {
    RankNumbers numbers;
    for (ArrayRef<Tensor> tensors : evaluateOnRanks(function, Mode::Float64, arguments)) {
      numbers.emplace_back();
      for (const Tensor &tensor : tensors)
        numbers.back().push_back(toNumbers(tensor));
    }
    return numbers;
  }
  RankNumbers evaluateOnRanks(StringRef text, const RankNumbers &arguments) {
    return evaluateOnRanks(parse(text), arguments);
  }

  /// The diagnostics of an evaluation that must fail.
  std::string getErrorsOnRanks(StringRef text, const RankNumbers &arguments) {
    func::FuncOp function = parse(text);
    errors.clear();
    EXPECT_TRUE(failed(tryOnRanks(function, Mode::Float64, arguments)));
    return errors;
  }

  static Numbers toNumbers(const Tensor &tensor) {
    if (tensor.holds<double>())
      return tensor.get<double>().vec();
    auto integers = tensor.holds<Field>() ? getIntegers(tensor) : tensor.get<int64_t>().vec();
    return Numbers(integers.begin(), integers.end());
  }

  /// Σ over ranks of ⟨cotangent, first result⟩
  double contract(func::FuncOp function, const RankNumbers &arguments, ArrayRef<Numbers> cotangents) {
    double sum = 0;
    for (auto [results, cotangent] : llvm::zip_equal(evaluateOnRanks(function, arguments), cotangents))
      for (auto [number, factor] : llvm::zip_equal(results.front(), cotangent))
        sum += number * factor;
    return sum;
  }

  /// The largest difference between the gradients that `adjoint` (as buildAdjoint makes it) gives on each rank and the
  /// central differences of the sum over ranks, relative to the largest difference quotient of its argument.
  double getGradientError(func::FuncOp function, func::FuncOp adjoint, RankNumbers arguments) {
    SmallVector<Numbers> cotangents;
    for (const std::vector<Numbers> &results : evaluateOnRanks(function, arguments))
      cotangents.push_back(getRandom(results.front().size()));
    RankNumbers withCotangents = arguments;
    for (auto [ofRank, cotangent] : llvm::zip_equal(withCotangents, cotangents))
      ofRank.push_back(cotangent);
    RankNumbers gradients = evaluateOnRanks(adjoint, withCotangents);

    constexpr double step = 1e-5;
    double error = 0;
    for (auto [position, index] : llvm::enumerate(getFloatArguments(function))) {
      double largest = 0, difference = 0;
      for (size_t rank = 0; rank < arguments.size(); ++rank) {
        Numbers &numbers = arguments[rank][index];
        EXPECT_EQ(gradients[rank][position].size(), numbers.size());
        for (auto [number, gradient] : llvm::zip_equal(numbers, gradients[rank][position])) {
          double middle = number;
          number = middle + step;
          double above = contract(function, arguments, cotangents);
          number = middle - step;
          double below = contract(function, arguments, cotangents);
          number = middle;
          double quotient = (above - below) / (2 * step);
          largest = std::max(largest, std::abs(quotient));
          difference = std::max(difference, std::abs(quotient - gradient));
        }
      }
      EXPECT_GT(largest, 1e-3) << "the test says nothing about argument " << index;
      error = std::max(error, difference / largest);
    }
    return error;
  }

  void checkAdjointOnRanks(StringRef text, const RankNumbers &arguments) {
    func::FuncOp function = parse(text);
    if (func::FuncOp adjoint = buildAdjoint(function))
      EXPECT_LT(getGradientError(function, adjoint, arguments), 1e-8);
  }
};

} // namespace mlir::plateau::test

#endif // PLATEAU_TEST_UNIT_INTERPRETER_RANKSTEST_H
