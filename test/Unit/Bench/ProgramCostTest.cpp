//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/ProgramCost.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "plateau/InitAllDialects.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::plateau::bench;

namespace {
class ProgramCostTest : public ::testing::Test {
protected:
  ProgramCostTest() : context(getRegistry()) {}

  static DialectRegistry getRegistry() {
    DialectRegistry registry;
    mlir::registerAllDialects(registry);
    mlir::plateau::registerAllDialects(registry);
    return registry;
  }

  FailureOr<ProgramCost> count(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return getProgramCost(*module->getOps<func::FuncOp>().begin());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

// Two loops of 3 and 5 rounds around a product of [2, 7] and [7, 4]; the product outside has its left side transposed.
TEST_F(ProgramCostTest, CountsProductsAsOftenAsTheyRun) {
  FailureOr<ProgramCost> cost = count(R"(
    func.func @f(%a: tensor<2x7xf32>, %b: tensor<7x4xf32>, %c: tensor<2x4xf32>, %d: tensor<7x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c10 = arith.constant 10 : index
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%outer = %c) -> tensor<2x4xf32> {
        %s = scf.for %j = %c0 to %c10 step %c2 iter_args(%inner = %outer) -> tensor<2x4xf32> {
          %p = linalg.matmul ins(%a, %b : tensor<2x7xf32>, tensor<7x4xf32>) outs(%inner : tensor<2x4xf32>) -> tensor<2x4xf32>
          scf.yield %p : tensor<2x4xf32>
        }
        scf.yield %s : tensor<2x4xf32>
      }
      %q = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%d, %b : tensor<7x2xf32>, tensor<7x4xf32>) outs(%c : tensor<2x4xf32>) -> tensor<2x4xf32>
      return %r, %q : tensor<2x4xf32>, tensor<2x4xf32>
    })");
  ASSERT_TRUE(succeeded(cost));
  EXPECT_EQ(cost->flops, (3 * 5 + 1) * 2 * 2 * 7 * 4);
  EXPECT_EQ(cost->sentBytes, 0);
}

// On 4 ranks each of 3 rounds hands on 40 bytes; the gather sends 24 bytes to each of the 3 others.
TEST_F(ProgramCostTest, CountsBytesAsOftenAsTheyAreSent) {
  FailureOr<ProgramCost> cost = count(R"(
    shard.grid @ranks(shape = 4)
    func.func @f(%a: tensor<10xf32>, %b: tensor<10xf32>, %c: tensor<3x2xf32>) -> (tensor<10xf32>, tensor<12x2xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%there = %a, %free = %b) -> (tensor<10xf32>, tensor<10xf32>) {
        %next = moe.shift %there into %free on @ranks hops(1) : tensor<10xf32>
        scf.yield %next, %there : tensor<10xf32>, tensor<10xf32>
      }
      %all = shard.all_gather %c on @ranks grid_axes = [0] gather_axis = 0 : tensor<3x2xf32> -> tensor<12x2xf32>
      return %r#0, %all : tensor<10xf32>, tensor<12x2xf32>
    })");
  ASSERT_TRUE(succeeded(cost));
  EXPECT_EQ(cost->flops, 0);
  EXPECT_EQ(cost->sentBytes, 3 * 40 + 3 * 24);
}

TEST_F(ProgramCostTest, RefusesLoopsWithoutAConstantCount) {
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &diagnostic) {
    EXPECT_NE(diagnostic.str().find("no constant trip count"), std::string::npos);
    return success();
  });
  EXPECT_TRUE(failed(count(R"(
    func.func @f(%n: index, %a: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %a) -> tensor<2x2xf32> {
        %p = linalg.matmul ins(%a, %a : tensor<2x2xf32>, tensor<2x2xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
        scf.yield %p : tensor<2x2xf32>
      }
      return %r : tensor<2x2xf32>
    })")));
}
