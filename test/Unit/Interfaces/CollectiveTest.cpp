//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which ranks an op brings together, and how much each sends.
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Parser/Parser.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "plateau/Interfaces/ExternalModels.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::plateau;

namespace {
class CollectiveTest : public testing::Test {
protected:
  CollectiveTest() {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, func::FuncDialect, moe::MoEDialect, shard::ShardDialect>();
    registerShardModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The collective that comes last in `body`, a function of %x, %ids and %p on the grid @grid.
  CollectiveOpInterface get(llvm::StringRef body, llvm::StringRef shape = "2x4") {
    std::string text =
        "!plan = !moe.plan<experts = 8, ranks = 4, tokens = 6, top_k = 2>\n"
        "shard.grid @grid(shape = " +
        shape.str() +
        ")\n"
        "func.func @f(%x: tensor<6x5xf32>, %h: tensor<6x5xbf16>, %ids: tensor<6x2xi32>, %p: tensor<6x2xf32>, "
        "%s: tensor<f64>) {\n" +
        body.str() + "\nreturn }\n";
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    CollectiveOpInterface last;
    module->walk([&](CollectiveOpInterface op) { last = op; });
    return last;
  }
  using Axes = llvm::SmallVector<int64_t>;

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

const char plan[] = "%plan = moe.plan %ids on @grid : tensor<6x2xi32> -> !plan\n";
const char rows[] = "%rows, %v = moe.dispatch rows(%x : tensor<6x5xf32> -> tensor<?x5xf32>) values(%p : "
                    "tensor<6x2xf32> -> tensor<?xf32>) "
                    "by %plan on @grid : !plan\n";
} // namespace

TEST_F(CollectiveTest, ReductionsSendTheirPartsTwice) {
  CollectiveOpInterface op =
      get("%r = shard.all_reduce %x on @grid grid_axes = [1] : tensor<6x5xf32> -> tensor<6x5xf32>");
  EXPECT_EQ(op.getCollectiveGrid().getValue(), "grid");
  EXPECT_EQ(op.getCollectiveAxes(2), Axes({1}));
  EXPECT_EQ(op.getSentBytes(4), 2 * 3 * 120 / 4);
  EXPECT_EQ(op.getSentBytes(7), 2 * 6 * 18); // Parts of 17.1 bytes.
  EXPECT_EQ(op.getSentBytes(1), 0);
  op = get("%r = shard.all_reduce %s on @grid grid_axes = [0, 1] : tensor<f64> -> tensor<f64>");
  EXPECT_EQ(op.getCollectiveAxes(2), Axes({0, 1}));
  EXPECT_EQ(op.getSentBytes(8), 2 * 7);
}

TEST_F(CollectiveTest, GathersAndScattersSendAPartToEachOther) {
  CollectiveOpInterface op =
      get("%r = shard.all_gather %h on @grid grid_axes = [0] gather_axis = 0 : tensor<6x5xbf16> -> tensor<12x5xbf16>");
  EXPECT_EQ(op.getCollectiveAxes(2), Axes({0}));
  EXPECT_EQ(op.getSentBytes(2), 60);
  op = get(
      "%r = shard.reduce_scatter %x on @grid grid_axes = [0] scatter_axis = 0 : tensor<6x5xf32> -> tensor<3x5xf32>");
  EXPECT_EQ(op.getSentBytes(2), 60);
  EXPECT_EQ(op.getSentBytes(1), 0);
}

TEST_F(CollectiveTest, PlansAndRowsGoAlongTheLastAxis) {
  CollectiveOpInterface op = get(plan);
  EXPECT_EQ(op.getCollectiveAxes(2), Axes({1}));
  EXPECT_EQ(op.getCollectiveAxes(1), Axes({0}));
  // To three others the counts of their two experts; and the rows of four ranks, summed: 2 · 3/4 of them.
  EXPECT_EQ(op.getSentBytes(4), 3 * 2 * 4 + 2 * 3 * 8);
  op = get(
      "%plan = moe.plan %ids balance <alpha = 1 over 1, min_rows = 1, "
      "threshold = 1 over 1> on @grid : tensor<6x2xi32> -> !moe.plan<experts = 8, ranks = 4, tokens = 6, top_k = 2, "
      "helper_slots = 1, chunks = 3, leaves = 2, capacity = 8>");
  // Six iterations of three expert slots a rank, and the rows of eight experts.
  EXPECT_EQ(op.getSentBytes(4), 6 * (3 * 3 * 4 + 2 * 3 * 8) + 3 * 8 * 4);
  op = get(std::string(plan) + rows);
  EXPECT_EQ(op.getCollectiveAxes(2), Axes({1}));
  EXPECT_EQ(op.getSentBytes(4), 12 * (20 + 4)); // 12 slots.
  op = get(std::string(plan) +
           "%r = moe.dispatch rows(%h : tensor<6x5xbf16> -> tensor<?x5xbf16>) by %plan on @grid : !plan");
  EXPECT_EQ(op.getSentBytes(4), 12 * 10);
  op = get(std::string(plan) + rows +
           "%y = moe.combine rows(%rows : tensor<?x5xf32> -> tensor<6x5xf32>) by %plan on @grid : !plan");
  EXPECT_EQ(op.getSentBytes(4), 48 * 20); // All slots of four ranks came to this one.
  op = get(std::string(plan) + rows +
           "%q = moe.combine values(%v : tensor<?xf32> -> tensor<6x2xf32>) by %plan on @grid : !plan");
  EXPECT_EQ(op.getSentBytes(4), 48 * 4);
}

TEST_F(CollectiveTest, GridsHaveCopiesAndParts) {
  CollectiveOpInterface op =
      get("%r = shard.all_reduce %x on @grid grid_axes = [] : tensor<6x5xf32> -> tensor<6x5xf32>", "2x3x4");
  Grid grid = *Grid::lookup(op, op.getCollectiveGrid());
  EXPECT_EQ(grid.getRanks(), 24);
  EXPECT_EQ(grid.getShards(), 4);
  EXPECT_EQ(grid.getReplicaAxes(), Axes({0, 1}));
  EXPECT_EQ(grid.getSize(grid.getReplicaAxes()), 6);
  EXPECT_EQ(grid.getSize({}), 1);
  auto symbol = [&](llvm::StringRef name) { return FlatSymbolRefAttr::get(&context, name); };
  EXPECT_TRUE(failed(Grid::lookup(op, symbol("other"))));
  EXPECT_TRUE(failed(Grid::lookup(op, symbol("f"))));

  op = get("%r = shard.all_reduce %x on @grid grid_axes = [0] : tensor<6x5xf32> -> tensor<6x5xf32>", "8");
  EXPECT_EQ(Grid::lookup(op, symbol("grid"))->getReplicaAxes(), Axes());
  op = get("%r = shard.all_reduce %x on @grid grid_axes = [0] : tensor<6x5xf32> -> tensor<6x5xf32>", "?x2");
  EXPECT_TRUE(failed(Grid::lookup(op, symbol("grid"))));
}
