//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What a run says about its routes.
//===----------------------------------------------------------------------===//

#include "plateau/Run/DispatchReport.h"
#include "FakeExecutor.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

namespace {
const plr_tag layers[] = {{"plan", 0, 0, 0}, {"plan", 3, 0, 0}};

plr_plan_record makeRecord(int layer, int64_t iterations, int64_t received, int64_t moves, int64_t load, int64_t home,
                           int64_t total) {
  plr_plan_record record = {};
  record.tag = &layers[layer];
  record.iterations = iterations;
  record.chunks = 9;
  record.capacity = 40;
  record.max_received = received;
  record.moves = moves;
  record.max_load = load;
  record.native_max_load = home;
  record.total_load = total;
  return record;
}

std::string print(const DispatchReport &report, bool isJSON) {
  std::string text;
  llvm::raw_string_ostream os(text);
  isJSON ? report.printJSON(os) : report.print(os);
  return text;
}

// 400 rows on 4 ranks are 100 on each.
TEST(DispatchReport, HasTheWorstOfStepsAndRanks) {
  DispatchReport report(4);
  report.addStep({{makeRecord(0, 14, 40, 1, 121, 231, 400), makeRecord(1, 9, 31, 3, 100, 125, 400)}});
  EXPECT_EQ(
      print(report, /*isJSON=*/false),
      "experts, per layer: 9 ... 14 iterations of 9 chunks, at most 40 of 40 rows at a rank, 3 moves, fullest rank "
      "1.21 x the mean (2.31 at home)\n");
  // Two groups of ranks: each figure is that of the worse one. JSON has the last step.
  report.addStep({{makeRecord(0, 10, 35, 1, 110, 150, 400), makeRecord(1, 12, 38, 0, 125, 125, 400)},
                  {makeRecord(0, 11, 34, 0, 105, 175, 400), makeRecord(1, 13, 36, 2, 100, 100, 400)}});
  EXPECT_EQ(
      print(report, /*isJSON=*/false),
      "experts, per layer: 9 ... 14 iterations of 9 chunks, at most 40 of 40 rows at a rank, 3 moves, fullest rank "
      "1.25 x the mean (2.31 at home)\n");
  EXPECT_EQ(print(report, /*isJSON=*/true),
            "{\"dispatch\": [{\"layer\": 0, \"iterations\": 11, \"chunks\": 9, \"capacity_rows\": 40, "
            "\"most_received\": 35, \"moves\": 1, \"load_max_over_mean\": 1.1, \"home_load_max_over_mean\": 1.75}, "
            "{\"layer\": 3, \"iterations\": 13, \"chunks\": 9, \"capacity_rows\": 40, \"most_received\": 38, "
            "\"moves\": 2, \"load_max_over_mean\": 1.25, \"home_load_max_over_mean\": 1.25}]}\n");
}

TEST(DispatchReport, OneOfEach) {
  DispatchReport report(2);
  plr_plan_record record = makeRecord(0, 1, 7, 1, 7, 8, 10);
  record.chunks = 1;
  record.capacity = 0;
  report.addStep({{record}});
  EXPECT_EQ(
      print(report, /*isJSON=*/false),
      "experts, per layer: 1 iteration of 1 chunk, at most 7 rows at a rank, 1 move, fullest rank 1.40 x the mean "
      "(1.60 at home)\n");
}

TEST(DispatchReport, NoRowsHaveNoMean) {
  DispatchReport report(2);
  report.addStep({{makeRecord(0, 9, 0, 0, 0, 0, 0)}});
  EXPECT_NE(print(report, /*isJSON=*/true).find("\"load_max_over_mean\": 0, \"home_load_max_over_mean\": 0}"),
            std::string::npos);
}

// A rank keeps a limited number of records: those beyond are empty.
TEST(DispatchReport, LeavesOutWhatWasNotKept) {
  DispatchReport report(4);
  report.addStep({{makeRecord(0, 9, 31, 0, 100, 100, 400), {}, {}}});
  std::string text = print(report, /*isJSON=*/true);
  EXPECT_EQ(llvm::StringRef(text).count("layer"), 1u) << text;
}

TEST(DispatchReport, SaysNothingOfNothing) {
  DispatchReport report(4);
  EXPECT_TRUE(report.isEmpty());
  report.addStep({{}, {}});
  EXPECT_EQ(print(report, /*isJSON=*/false) + print(report, /*isJSON=*/true), "");
}

class DispatchRanks : public RunTest {
protected:
  std::optional<int64_t> get(llvm::StringRef fields) {
    OwningOpRef<ModuleOp> module = parse(llvm::formatv(R"mlir(
      !plan = !moe.plan<experts = 4, ranks = 2, tokens = 6, top_k = 2{0}>
      shard.grid @experts(shape = 2)
      func.func @f(%ids: tensor<6x2xi32>) {{
        %plan = moe.plan %ids on @experts : tensor<6x2xi32> -> !plan
        return
      })mlir",
                                                       fields)
                                             .str());
    return getDispatchRanks(*module->getOps<func::FuncOp>().begin());
  }
};

TEST_F(DispatchRanks, AreThoseOfPlansThatDoMore) {
  EXPECT_EQ(get(""), std::nullopt);
  EXPECT_EQ(get(", chunks = 3"), 2);
  EXPECT_EQ(get(", leaves = 2, capacity = 12"), 2);
}
} // namespace
