//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Parses small modules and evaluates their functions.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_INTERPRETER_INTERPRETERTEST_H
#define PLATEAU_TEST_UNIT_INTERPRETER_INTERPRETERTEST_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "plateau/InitAllDialects.h"
#include "plateau/Interpreter/Interpreter.h"
#include <gtest/gtest.h>
#include <random>

namespace mlir::plateau::test {

using Numbers = std::vector<double>;
using Tensor = interpreter::Tensor;
using Field = interpreter::Field;
using Mode = Interpreter::Mode;

class InterpreterTest : public ::testing::Test {
protected:
  InterpreterTest() {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                    tensor::TensorDialect>();
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) { errors += diagnostic.str() + "\n"; });
  }

  /// The function `name` of a module's text; the text stays alive with the fixture.
  func::FuncOp parse(StringRef text, StringRef name = "f") {
    modules.push_back(parseSourceString<ModuleOp>(text, &context));
    EXPECT_TRUE(modules.back()) << errors;
    return modules.back() ? modules.back()->lookupSymbol<func::FuncOp>(name) : func::FuncOp();
  }

  /// All results of @f in float64; empty, with a failed expectation, when it has none.
  std::vector<Numbers> evaluate(func::FuncOp function, ArrayRef<Numbers> arguments) {
    auto results = Interpreter::evaluate(function, arguments);
    EXPECT_TRUE(succeeded(results)) << errors;
    return succeeded(results) ? *results : std::vector<Numbers>(function.getNumResults());
  }
  std::vector<Numbers> evaluate(StringRef text, ArrayRef<Numbers> arguments) {
    return evaluate(parse(text), arguments);
  }

  /// The diagnostics of an evaluation that must fail.
  std::string getErrors(StringRef text, ArrayRef<Numbers> arguments) {
    func::FuncOp function = parse(text);
    errors.clear();
    EXPECT_TRUE(failed(Interpreter::evaluate(function, arguments)));
    return errors;
  }

  /// All results in exact mode on one rank, from numbers.
  SmallVector<Tensor> evaluateExactly(func::FuncOp function, ArrayRef<Numbers> arguments) {
    SmallVector<Tensor> tensors;
    for (auto [numbers, type] : llvm::zip_equal(arguments, function.getArgumentTypes())) {
      auto tensor = cast<RankedTensorType>(type);
      if (isa<FloatType>(tensor.getElementType())) {
        auto elements = llvm::map_range(numbers, Field::fromDouble);
        tensors.push_back(Tensor::make(tensor.getShape(), std::vector<Field>(elements.begin(), elements.end())));
      } else {
        tensors.push_back(Tensor::make(tensor.getShape(), std::vector<int64_t>(numbers.begin(), numbers.end())));
      }
    }
    auto results = Interpreter::evaluate(function, 1, Mode::Exact, {tensors});
    EXPECT_TRUE(succeeded(results)) << errors;
    return succeeded(results) ? results->front() : SmallVector<Tensor>();
  }
  SmallVector<Tensor> evaluateExactly(StringRef text, ArrayRef<Numbers> arguments) {
    return evaluateExactly(parse(text), arguments);
  }

  /// Numbers spread evenly over -1 … 1.
  Numbers getRandom(size_t count) {
    Numbers numbers(count);
    for (double &number : numbers)
      number = static_cast<double>(generator() >> 11) / double(uint64_t(1) << 52) - 1;
    return numbers;
  }

  MLIRContext context;
  std::string errors;
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::mt19937_64 generator{7};
};

/// The values of field elements as integers near zero.
inline std::vector<int64_t> getIntegers(const Tensor &tensor) {
  std::vector<int64_t> integers;
  for (Field element : tensor.get<Field>())
    integers.push_back(element.getSigned());
  return integers;
}

inline bool areEqual(const Tensor &a, const Tensor &b) {
  return a.getShape() == b.getShape() && a.get<Field>() == b.get<Field>();
}

inline void expectNear(const Numbers &actual, const Numbers &expected, double tolerance = 1e-14) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

} // namespace mlir::plateau::test

#endif // PLATEAU_TEST_UNIT_INTERPRETER_INTERPRETERTEST_H
