//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the routes of a run came to: iterations, rows, and how evenly ranks were loaded.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_DISPATCHREPORT_H
#define PLATEAU_RUN_DISPATCHREPORT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "plateau/runtime.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <vector>

namespace mlir::plateau::run {

/// The number of ranks that divide the experts, where plans of `function` have iterations or helpers; otherwise none.
std::optional<int64_t> getDispatchRanks(func::FuncOp function);

/// How the plans of routes of a run went.
class DispatchReport {
public:
  DispatchReport() = default;
  /// `ranks` divide the experts.
  explicit DispatchReport(int64_t ranks) : ranks(ranks) {}

  /// The records of one step, of each rank. Ranks that divide the experts among them have made the same plan; of
  /// several such groups the worst counts.
  void addStep(llvm::ArrayRef<std::vector<plr_plan_record>> ofRanks);

  bool isEmpty() const { return last.empty(); }
  /// For people: a line with the worst of all layers and steps.
  void print(llvm::raw_ostream &os) const;
  /// One JSON object, in a line: an entry for each plan of the last step, in order.
  void printJSON(llvm::raw_ostream &os) const;

private:
  /// A plan of a step.
  struct Plan {
    int64_t layer = -1, iterations = 0, chunks = 0, capacity = 0, received = 0, moves = 0;
    double load = 0, homeLoad = 0; ///< Of the fullest rank, over the mean.
  };
  Plan makePlan(const plr_plan_record &record) const;
  static void takeWorst(Plan &worst, const Plan &plan);

  int64_t ranks = 1;
  std::vector<Plan> last; ///< Of the last step.
  Plan worst;
  int64_t fewestIterations = INT64_MAX;
};

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_DISPATCHREPORT_H
