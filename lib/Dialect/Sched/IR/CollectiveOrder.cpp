//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/IR/CollectiveOrder.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::plateau::sched;

void mlir::plateau::sched::numberCollectives(ProgramOp program) {
  int64_t number = 0;
  program.walk([&](CollectiveOp op) { op.setOrdinal(number++); });
}

uint64_t mlir::plateau::sched::getCollectiveDigest(ProgramOp program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << program.getRanks();
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<LoopOp>(op))
      os << "loop " << loop.getFrom() << " " << loop.getTo() << "\n";
    else if (auto yield = dyn_cast<YieldOp>(op))
      os << "end\n";
    else if (auto collective = dyn_cast<CollectiveOp>(op))
      os << collective.getCallee() << collective.getArgs() << collective.getGrid() << collective.getAxesAttr()
         << stringifyLane(collective.getLane()) << "\n";
  });
  return llvm::xxh3_64bits(text);
}
