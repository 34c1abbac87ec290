//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Builds the adjoint of a function from the adjoints of its ops.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_INTERPRETER_ADJOINTTEST_H
#define PLATEAU_TEST_UNIT_INTERPRETER_ADJOINTTEST_H

#include "InterpreterTest.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "plateau/Interfaces/Differentiation.h"

namespace mlir::plateau::test {

class AdjointTest : public InterpreterTest {
protected:
  /// Argument numbers of floating-point type.
  static SmallVector<unsigned> getFloatArguments(func::FuncOp function) {
    SmallVector<unsigned> indices;
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
      if (isa<FloatType>(getElementTypeOrSelf(type)))
        indices.push_back(index);
    return indices;
  }

  /// Adds to the text's @f(arguments) -> result a function @f_adjoint(arguments, cotangent) that gives the gradient of
  /// each floating-point argument; null with a failed expectation when it cannot be built.
  func::FuncOp buildAdjoint(func::FuncOp function) {
    auto adjoint = cast<func::FuncOp>(function->clone());
    function->getParentOfType<ModuleOp>().push_back(adjoint);
    adjoint.setName((function.getName() + "_adjoint").str());
    adjoint.removeArgAttrsAttr(); // one argument more will follow
    Block &block = adjoint.getBody().front();
    Operation *terminator = block.getTerminator();
    Value result = terminator->getOperand(0);
    SmallVector<Value> inputs;
    for (unsigned index : getFloatArguments(function))
      inputs.push_back(block.getArgument(index));
    llvm::DenseMap<Value, Value> cotangents = {{result, block.addArgument(result.getType(), function.getLoc())}};
    OpBuilder builder(terminator);
    if (failed(buildBlockAdjoint(builder, block, inputs, IRMapping(), cotangents, [](Location loc) { return loc; }))) {
      ADD_FAILURE() << errors;
      return {};
    }
    SmallVector<Value> gradients = llvm::map_to_vector(inputs, [&](Value input) { return cotangents.lookup(input); });
    EXPECT_FALSE(llvm::is_contained(gradients, Value())) << "an argument has no gradient";
    if (llvm::is_contained(gradients, Value()))
      return {};
    terminator->setOperands(gradients);
    adjoint.setFunctionType(FunctionType::get(&context, block.getArgumentTypes(), TypeRange(ValueRange(gradients))));
    EXPECT_TRUE(succeeded(verify(adjoint))) << errors;
    return adjoint;
  }
};

} // namespace mlir::plateau::test

#endif // PLATEAU_TEST_UNIT_INTERPRETER_ADJOINTTEST_H
