//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PipelineDispatchGroups.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

std::optional<RoutedKind> mlir::plateau::moe::getRoutedKind(Operation *op) {
  if (auto routed = dyn_cast<RoutedOpInterface>(op))
    return routed.getRoutedKind();
  if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1 && isPure(op))
    return RoutedKind::Row;
  return std::nullopt;
}

Value mlir::plateau::moe::getNamedPlan(Operation *op) {
  for (Value operand : op->getOperands())
    if (isa<PlanType>(operand.getType()))
      return operand;
  return {};
}

bool mlir::plateau::moe::hasRows(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), isRoutedType) || llvm::any_of(op->getResultTypes(), isRoutedType);
}

SmallVector<DispatchComponent> mlir::plateau::moe::findComponents(Block &block, RefusePlan refuse) {
  llvm::EquivalenceClasses<Operation *> connected;
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    if (hasRows(&op)) {
      ops.push_back(&op);
      connected.insert(&op);
    }
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (isRoutedType(operand.getType()) && operand.getParentBlock() == &block && operand.getDefiningOp())
        connected.unionSets(op, operand.getDefiningOp());

  llvm::MapVector<Operation *, DispatchComponent> components; // By leader.
  for (Operation *op : ops) {
    DispatchComponent &component = components[connected.getLeaderValue(op)];
    component.ops.push_back(op);
    if (Value plan = getNamedPlan(op); plan && !component.plan)
      component.plan = plan;
  }
  SmallVector<DispatchComponent> found;
  for (auto &entry : components) {
    DispatchComponent &component = entry.second;
    if (!component.plan)
      continue; // Rows without a plan are not those of an exchange.
    bool isWhole = true;
    auto complain = [&](Operation *op, const Twine &reason) {
      isWhole = false;
      refuse(component.plan, op, reason);
    };
    for (Operation *op : component.ops) {
      if (Value plan = getNamedPlan(op); plan && plan != component.plan) {
        complain(op, "has rows of two plans");
        refuse(plan, op, "has rows of two plans");
      }
      if (!getRoutedKind(op))
        complain(op, "is not known to take rows in parts");
      for (Value operand : op->getOperands())
        if (isRoutedType(operand.getType()) && (!operand.getDefiningOp() || operand.getParentBlock() != &block))
          complain(op, "reads rows that come from outside its block");
      for (Operation *user : op->getUsers())
        if (hasRows(op) && user->getBlock() != &block && llvm::any_of(user->getOperands(), [&](Value operand) {
              return operand.getDefiningOp() == op && isRoutedType(operand.getType());
            }))
          complain(user, "reads rows that come from outside its block");
    }
    if (isWhole)
      found.push_back(std::move(component));
  }
  return found;
}

DispatchLoopShape DispatchGroup::getShape() const {
  DispatchLoopShape shape;
  llvm::DenseMap<Value, size_t> numbers;
  llvm::SmallDenseSet<Value> weights;
  auto getBytes = [](Value value, int64_t elementBytes) {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t elements = 1;
    for (int64_t size : type.getShape().drop_front())
      elements *= size;
    return elements * (elementBytes ? elementBytes : type.getElementTypeBitWidth() / 8);
  };
  // The order in which they stand in the loop.
  SmallVector<Operation *> ordered;
  auto isExit = [](Operation *op) { return getRoutedKind(op) == RoutedKind::Exit; };
  auto isEntry = [](Operation *op) { return getRoutedKind(op) == RoutedKind::Entry; };
  llvm::copy_if(ops, std::back_inserter(ordered), isEntry);
  llvm::copy_if(ops, std::back_inserter(ordered), [&](Operation *op) { return !isEntry(op) && !isExit(op); });
  llvm::copy_if(ops, std::back_inserter(ordered), isExit);
  for (auto [number, op] : llvm::enumerate(ordered)) {
    int64_t staged = 0;
    for (Value operand : op->getOperands())
      if (auto it = numbers.find(operand); it != numbers.end()) {
        shape.rows[it->second].last = number;
        shape.rows[it->second].isReturned |= isExit(op);
        staged += shape.rows[it->second].rowBytes;
      }
    if (isEntry(op))
      for (Value result : op->getResults())
        staged += getBytes(result, 0);
    if (isEntry(op) || isExit(op))
      shape.stagedBytes = std::max(shape.stagedBytes, staged);
    for (Value result : op->getResults())
      if (isRoutedType(result.getType())) {
        numbers[result] = shape.rows.size();
        int64_t at = static_cast<int64_t>(number);
        shape.rows.push_back({getBytes(result, 0), at, at, isEntry(op), false});
      }
    if (auto matmul = dyn_cast<GroupedMatmulOp>(op); matmul && weights.insert(matmul.getWeights()).second)
      shape.helperSlotBytes += getBytes(matmul.getWeights(), 0);
    if (auto grad = dyn_cast<GroupedMatmulGradOp>(op))
      shape.helperSlotBytes += getBytes(grad.getResult(), /*elementBytes=*/4);
  }
  // Rows that are scaled by their last reader are scaled where they lie.
  for (auto [number, op] : llvm::enumerate(ordered)) {
    auto scale = dyn_cast<ScaleRowsOp>(op);
    if (!scale)
      continue;
    DispatchLoopShape::Rows &input = shape.rows[numbers.at(scale.getInput())],
                            &result = shape.rows[numbers.at(scale.getResult())];
    if (input.last != static_cast<int64_t>(number) || (input.isSent && result.isReturned))
      continue;
    input.last = input.isSent ? result.last : input.last - 1;
    result.rowBytes = input.isSent ? 0 : result.rowBytes;
  }
  shape.ops = static_cast<int64_t>(ordered.size());
  return shape;
}

namespace {
/// Groups, and which of them each group and each op of the block waits for.
class Grouping {
public:
  explicit Grouping(ArrayRef<DispatchComponent> components) {
    for (auto [number, component] : llvm::enumerate(components))
      for (Operation *op : component.ops)
        componentOf[op] = number;
    groupsOf.resize(components.size());
  }

  void add(Operation *op) {
    llvm::BitVector needed = getNeeded(op);
    auto component = componentOf.find(op);
    if (component == componentOf.end() || !isSink(op)) {
      neededBy[op] = std::move(needed);
      return;
    }
    unsigned group = chooseGroup(component->second, needed);
    sinks[group].push_back(op);
    unite(waitsFor[group], needed);
    llvm::BitVector own(group + 1);
    own.set(group);
    neededBy[op] = std::move(own);
  }

  ArrayRef<SmallVector<Operation *>> getSinks() const { return sinks; }
  unsigned getComponent(unsigned group) const { return componentOf.lookup(sinks[group].front()); }

private:
  static void unite(llvm::BitVector &all, const llvm::BitVector &more) { all |= more; }

  llvm::BitVector getNeeded(Operation *op) {
    llvm::BitVector needed;
    auto add = [&](Value value) {
      Operation *source = value.getDefiningOp();
      if (!source)
        return;
      if (Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*source); ancestor && ancestor != op)
        unite(needed, neededBy[ancestor]);
    };
    llvm::for_each(op->getOperands(), add);
    if (op->getNumRegions() > 0) {
      llvm::SetVector<Value> captured;
      getUsedValuesDefinedAbove(op->getRegions(), captured);
      llvm::for_each(captured, add);
    }
    return needed;
  }

  /// Whether one of `groups`, or what one of them waits for, is `wanted`.
  bool reaches(const llvm::BitVector &groups, unsigned wanted) const {
    llvm::BitVector seen(static_cast<unsigned>(sinks.size()));
    SmallVector<unsigned> open(groups.set_bits());
    while (!open.empty()) {
      unsigned group = open.pop_back_val();
      if (group == wanted)
        return true;
      if (seen.test(group))
        continue;
      seen.set(group);
      llvm::append_range(open, waitsFor[group].set_bits());
    }
    return false;
  }

  unsigned chooseGroup(unsigned component, const llvm::BitVector &needed) {
    for (unsigned group : groupsOf[component])
      if (!reaches(needed, group))
        return group;
    groupsOf[component].push_back(sinks.size());
    sinks.emplace_back();
    waitsFor.emplace_back();
    return sinks.size() - 1;
  }

  llvm::DenseMap<Operation *, unsigned> componentOf;
  SmallVector<SmallVector<unsigned>> groupsOf; ///< By component.
  SmallVector<SmallVector<Operation *>> sinks; ///< By group.
  SmallVector<llvm::BitVector> waitsFor;       ///< By group.
  llvm::DenseMap<Operation *, llvm::BitVector> neededBy;
};
} // namespace

SmallVector<DispatchGroup> mlir::plateau::moe::groupSinks(Block &block, ArrayRef<DispatchComponent> components) {
  Grouping grouping(components);
  for (Operation &op : block)
    grouping.add(&op);
  SmallVector<DispatchGroup> groups;
  SmallVector<llvm::SmallDenseSet<Operation *>> taken(components.size());
  for (auto [number, sinks] : llvm::enumerate(grouping.getSinks())) {
    unsigned component = grouping.getComponent(number);
    llvm::SetVector<Operation *> slice(sinks.begin(), sinks.end());
    for (size_t next = 0; next < slice.size(); ++next)
      for (Value operand : slice[next]->getOperands())
        if (isRoutedType(operand.getType()))
          slice.insert(operand.getDefiningOp());
    DispatchGroup group;
    group.plan = components[component].plan;
    for (Operation *op : components[component].ops)
      if (slice.contains(op)) {
        group.ops.push_back(op);
        if (!taken[component].insert(op).second)
          group.repeated.insert(op);
      }
    groups.push_back(std::move(group));
  }
  return groups;
}
