//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Pipelines/Rewrite.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "plateau/InitAllDialects.h"
#include "plateau/InitAllPasses.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::plateau;

TEST(Rewrite, AVerifierStandsBehindEachPass) {
  auto expect = [](llvm::StringRef pipeline, llvm::StringRef expected) {
    EXPECT_EQ(addVerifiers(pipeline), expected.str());
  };
  expect("a", "a,moe-verify-spaces");
  expect("a,b{x=1,2 y={3,4}},c", "a,moe-verify-spaces,b{x=1,2 y={3,4}},moe-verify-spaces,c,moe-verify-spaces");
  expect("func.func(a, b)", "func.func(a,moe-verify-spaces, b,moe-verify-spaces)");
  expect("a,func.func(b{c=(d)}),builtin.module(func.func(e))",
         "a,moe-verify-spaces,func.func(b{c=(d)},moe-verify-spaces),builtin.module(func.func(e,moe-verify-spaces))");
}

namespace {
class RewriteFunction : public testing::Test {
protected:
  RewriteFunction()
      : context(getRegistry(), MLIRContext::Threading::DISABLED), handler(&context, [this](Diagnostic &diagnostic) {
          diagnostics += diagnostic.str() + "\n";
          return success();
        }) {
    context.loadAllAvailableDialects();
    static const bool isRegistered = [] {
      registerTransformsPasses();
      registerAllPasses();
      return true;
    }();
    (void)isRegistered;
    module = parseSourceString<ModuleOp>(R"(
      func.func private @two(%a: tensor<2xf32> {plateau.same}) -> tensor<2xf32> {
        %b = arith.addf %a, %a : tensor<2xf32>
        %c = arith.addf %a, %a : tensor<2xf32>
        %d = arith.addf %b, %c : tensor<2xf32>
        return %d : tensor<2xf32>
      }
      func.func @other() { return }
    )",
                                         &context);
  }

  static DialectRegistry &getRegistry() {
    static DialectRegistry registry = [] {
      DialectRegistry made;
      made.insert<arith::ArithDialect, func::FuncDialect>();
      plateau::registerAllDialects(made);
      return made;
    }();
    return registry;
  }

  static int64_t count(func::FuncOp function) {
    int64_t ops = 0;
    function.walk([&](arith::AddFOp) { ++ops; });
    return ops;
  }

  MLIRContext context;
  std::string diagnostics;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
};
} // namespace

TEST_F(RewriteFunction, ChangesACopy) {
  auto function = module->lookupSymbol<func::FuncOp>("two");
  for (const char *pipeline : {"cse", "func.func(cse,canonicalize)"}) {
    auto made = rewriteFunction(function, pipeline);
    ASSERT_TRUE(static_cast<bool>(made)) << llvm::toString(made.takeError());
    EXPECT_EQ(made->function.getName(), "two");
    EXPECT_EQ(count(made->function), 2);
    EXPECT_EQ(count(function), 3);
    EXPECT_FALSE(made->module->lookupSymbol("other"));
  }
  EXPECT_EQ(diagnostics, "");
}

TEST_F(RewriteFunction, RefusesTextsThatAreNoPipeline) {
  auto text = [](llvm::StringRef pipeline) { return llvm::toString(checkRewrite(pipeline)); };
  EXPECT_EQ(text("cse"), "");
  EXPECT_EQ(text("bogus"), "'bogus': 'bogus' does not refer to a registered pass or pass pipeline");
  EXPECT_EQ(text(" "), "a pipeline of no passes");
  EXPECT_NE(text("canonicalize{no-such-option=1}").find("'canonicalize{no-such-option=1}': "), std::string::npos);
}

TEST_F(RewriteFunction, TheFunctionStaysOne) {
  auto made = rewriteFunction(module->lookupSymbol<func::FuncOp>("two"), "cse,plateau-schedule");
  ASSERT_FALSE(static_cast<bool>(made));
  EXPECT_EQ(llvm::toString(made.takeError()),
            "--rewrite 'cse,plateau-schedule': @two is no function on the same tensors after it: it must be "
            "made of passes that rewrite the body of a function");
}
