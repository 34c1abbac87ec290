//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which ops on rows of a block can share one loop over the iterations of their plan.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHGROUPS_H
#define PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHGROUPS_H

#include "PipelineDispatchCost.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

namespace mlir::plateau::moe {

/// What an op does with rows; nothing for one that cannot take them in parts. An elementwise op is one on rows.
std::optional<RoutedKind> getRoutedKind(Operation *op);
/// The op gives tokens, or sums over rows.
inline bool isSink(Operation *op) {
  std::optional<RoutedKind> kind = getRoutedKind(op);
  return kind == RoutedKind::Exit || kind == RoutedKind::Reduce;
}
/// The plan that an op names; null for one that follows its rows.
Value getNamedPlan(Operation *op);
bool hasRows(Operation *op);

/// Ops of a block that rows connect, in its order.
struct DispatchComponent {
  Value plan;
  SmallVector<Operation *> ops;
};

/// Says that the rows of a plan cannot be taken in parts, where, and why.
using RefusePlan = llvm::function_ref<void(Value plan, Operation *op, const Twine &reason)>;

SmallVector<DispatchComponent> findComponents(Block &block, RefusePlan refuse);

/// Sinks of one component that do not wait for each other, and the ops on rows behind them.
struct DispatchGroup {
  Value plan;
  SmallVector<Operation *> ops; ///< In the block's order, sinks among them.
  /// Those of them that groups of the component before this one need too.
  llvm::SmallDenseSet<Operation *, 4> repeated;

  DispatchLoopShape getShape() const;
};

/// A group takes a sink of its component when nothing that the sink needs waits for the group: so two loops never wait
/// for each other. In block order, and a sink goes into the first group that can take it.
SmallVector<DispatchGroup> groupSinks(Block &block, ArrayRef<DispatchComponent> components);

} // namespace mlir::plateau::moe

#endif // PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_PIPELINEDISPATCHGROUPS_H
