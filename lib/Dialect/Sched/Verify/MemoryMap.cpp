//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/Verify/MemoryMap.h"

using namespace mlir;
using namespace mlir::plateau::sched;

Extent MemoryMap::get(const ByteRange &range) {
  auto [known, isNew] = bases.try_emplace(range.root);
  if (isNew) {
    auto slot = range.root.getDefiningOp<SlotOp>();
    if (slot && slot.getOffset())
      known->second = {static_cast<int64_t>(slot.getSpace()), static_cast<int64_t>(*slot.getOffset())};
    else
      known->second = {next++, 0};
  }
  const Base &base = known->second;
  return {base.memory, base.offset + range.begin, base.offset + range.end};
}
