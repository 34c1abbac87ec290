//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/ProgramCost.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "plateau/Interfaces/Matmul.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;

/// How often the body of the loops around `op` runs.
static FailureOr<int64_t> getTripCount(Operation *op) {
  int64_t trips = 1;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>()) {
    std::optional<APInt> count = loop.getStaticTripCount();
    if (!count)
      return loop.emitError("has no constant trip count, so that what it costs cannot be counted");
    trips *= count->getSExtValue();
  }
  return trips;
}

static FailureOr<int64_t> getSentBytes(CollectiveOpInterface op) {
  FailureOr<Grid> grid = Grid::lookup(op, op.getCollectiveGrid());
  if (failed(grid))
    return op->emitError() << "names grid " << op.getCollectiveGrid() << ", which is not there";
  return op.getSentBytes(grid->getSize(op.getCollectiveAxes(grid->shape.size())));
}

static FailureOr<int64_t> getFlops(linalg::MatmulOp op) {
  FailureOr<MatmulForm> form = MatmulForm::get(op);
  if (failed(form))
    return op.emitError("is no product of two matrices");
  auto left = cast<RankedTensorType>(op.getDpsInputs()[0].getType());
  auto result = cast<RankedTensorType>(op.getDpsInits()[0].getType());
  return 2 * result.getDimSize(0) * result.getDimSize(1) * left.getDimSize(form->transposeA ? 0 : 1);
}

FailureOr<ProgramCost> bench::getProgramCost(func::FuncOp function) {
  ProgramCost cost;
  auto add = [](Operation *op, int64_t &sum, FailureOr<int64_t> once) {
    FailureOr<int64_t> trips = getTripCount(op);
    if (failed(once) || failed(trips))
      return WalkResult::interrupt();
    sum += *once * *trips;
    return WalkResult::advance();
  };
  auto walked = function.walk([&](Operation *op) {
    if (auto product = dyn_cast<linalg::MatmulOp>(op))
      return add(op, cost.flops, getFlops(product));
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      return add(op, cost.sentBytes, getSentBytes(collective));
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return cost;
}
