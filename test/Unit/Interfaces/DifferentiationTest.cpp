//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Adjoints that break the rules are refused, with a diagnostic that says which rule.
//===----------------------------------------------------------------------===//

#include "plateau/Interfaces/Differentiation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::plateau;

namespace {
/// Reads its operand without declaring it.
struct ReadsUndeclared : DifferentiableOpInterface::ExternalModel<ReadsUndeclared, math::SinOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *op, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    Value cosine = math::CosOp::create(builder, loc, op->getOperand(0));
    operands[0] = arith::MulFOp::create(builder, loc, cosine, results[0]);
    return success();
  }
};

/// The same, declared: the rule lets it pass.
struct ReadsDeclared : DifferentiableOpInterface::ExternalModel<ReadsDeclared, math::CosOp> {
  SmallVector<Value> getResiduals(Operation *op) const { return {op->getOperand(0)}; }
  LogicalResult buildAdjoint(Operation *, OpBuilder &builder, Location loc, ValueRange residuals,
                             ArrayRef<Value> results, MutableArrayRef<Value> operands) const {
    Value sine = arith::NegFOp::create(builder, loc, math::SinOp::create(builder, loc, residuals[0]));
    operands[0] = arith::MulFOp::create(builder, loc, sine, results[0]);
    return success();
  }
};

/// Gives a cotangent of another type than the operand's.
struct WrongType : DifferentiableOpInterface::ExternalModel<WrongType, math::TanOp> {
  SmallVector<Value> getResiduals(Operation *) const { return {}; }
  LogicalResult buildAdjoint(Operation *, OpBuilder &builder, Location loc, ValueRange, ArrayRef<Value> results,
                             MutableArrayRef<Value> operands) const {
    auto wide = cast<RankedTensorType>(results[0].getType()).clone(builder.getF64Type());
    operands[0] = arith::ExtFOp::create(builder, loc, wide, results[0]);
    return success();
  }
};

class Differentiation : public testing::Test {
protected:
  Differentiation() {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, func::FuncDialect, math::MathDialect, moe::MoEDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    math::SinOp::attachInterface<ReadsUndeclared>(context);
    math::CosOp::attachInterface<ReadsDeclared>(context);
    math::TanOp::attachInterface<WrongType>(context);
  }

  /// The diagnostic of differentiating `body`, a function of %x that yields %y; empty when all is well.
  std::string differentiate(const std::string &body) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        "func.func @f(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {" + body + "return %y : tensor<4xf32> }",
        &context);
    EXPECT_TRUE(module);
    auto function = *module->getOps<func::FuncOp>().begin();
    Block &block = function.getBody().front();
    std::string text;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { text += diagnostic.str(); });
    OpBuilder builder(block.getTerminator());
    llvm::DenseMap<Value, Value> cotangents = {{block.getTerminator()->getOperand(0), block.getArgument(1)}};
    LogicalResult result = buildBlockAdjoint(builder, block, block.getArgument(0), IRMapping(), cotangents,
                                             [](Location loc) { return loc; });
    EXPECT_EQ(succeeded(result), text.empty());
    return text;
  }

  MLIRContext context;
};
} // namespace

TEST_F(Differentiation, DeclaredResidualsMayBeRead) {
  EXPECT_EQ(differentiate("%y = math.cos %x : tensor<4xf32>"), "");
}

TEST_F(Differentiation, UndeclaredResidualsAreRefused) {
  EXPECT_EQ(differentiate("%y = math.sin %x : tensor<4xf32>"),
            "'math.sin' op builds an adjoint that reads a value it does not declare as a residual");
}

TEST_F(Differentiation, UndeclaredResidualsAreRefusedInsideACheckpoint) {
  EXPECT_EQ(differentiate("%y = moe.checkpoint (%a = %x : tensor<4xf32>) -> tensor<4xf32> {"
                          "%s = math.sin %a : tensor<4xf32> moe.yield %s : tensor<4xf32> }"),
            "'math.sin' op builds an adjoint that reads a value it does not declare as a residual");
}

TEST_F(Differentiation, CotangentsOfAnotherTypeAreRefused) {
  EXPECT_EQ(differentiate("%y = math.tan %x : tensor<4xf32>"),
            "'math.tan' op builds a cotangent of type 'tensor<4xf64>' for an operand of type 'tensor<4xf32>'");
}

TEST_F(Differentiation, OpsWithoutAdjointAreNamed) {
  EXPECT_EQ(differentiate("%y = math.sqrt %x : tensor<4xf32>"),
            "'math.sqrt' op has no adjoint: it does not implement DifferentiableOpInterface");
}
