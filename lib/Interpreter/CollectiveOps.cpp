//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The collectives of the shard dialect. Sums are in rank order.
//===----------------------------------------------------------------------===//

#include "Cell.h"
#include "Groups.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

/// Σ of an operand over the ranks of a group.
template <typename Scalar>
static std::vector<Scalar> addUp(Value value, const Group &group, ArrayRef<RankCall> calls) {
  std::vector<Scalar> sums = calls[group.front()].read<Scalar>(value).vec();
  for (int rank : ArrayRef(group).drop_front())
    for (auto [sum, element] : llvm::zip_equal(sums, calls[rank].read<Scalar>(value)))
      sum += element;
  return sums;
}
template <>
std::vector<int64_t> addUp(Value value, const Group &group, ArrayRef<RankCall> calls) {
  std::vector<int64_t> sums(calls[group.front()].get(value).getSize());
  unsigned width = getIntegerWidth(value.getType());
  for (int rank : group)
    for (auto [sum, element] : llvm::zip_equal(sums, calls[rank].read<int64_t>(value)))
      sum = normalizeInteger(static_cast<uint64_t>(sum) + static_cast<uint64_t>(element), width);
  return sums;
}

/// Calls `function` with a value of the operand's own scalar type, and with the ranks of each group.
template <typename Function>
static LogicalResult onGroups(Operation *op, ArrayRef<RankCall> calls, Function &&function) {
  FailureOr<SmallVector<Group>> groups = getGroups(op, calls);
  if (failed(groups))
    return failure();
  for (const Group &group : *groups)
    calls.front().get(op->getOperand(0)).visit([&](auto elements) {
      function(typename decltype(elements)::value_type(), group);
    });
  return success();
}

/// Fails unless the op sums, and floating-point numbers to such or integers to the same integers.
template <typename OpTy>
static LogicalResult checkSum(OpTy op, RankCall &call) {
  if (op.getReduction() != shard::ReductionKind::Sum)
    return call.fail("the interpreter knows sums only");
  Type from = getElementTypeOrSelf(op.getInput().getType()), to = getElementTypeOrSelf(op.getResult().getType());
  if (from != to && !(isa<FloatType>(from) && isa<FloatType>(to)))
    return call.fail("the interpreter knows no sum of other integers than those summed");
  return success();
}

/// Fails unless `axis` is 0 and the rows of the larger tensor are those of the smaller one times the ranks of a group.
static LogicalResult checkParts(Operation *op, int64_t axis, Value whole, Value part, ArrayRef<RankCall> calls) {
  FailureOr<SmallVector<Group>> groups = getGroups(op, calls);
  if (failed(groups))
    return failure();
  if (axis != 0)
    return calls.front().fail("the interpreter gathers and scatters along axis 0, not " + Twine(axis));
  ArrayRef<int64_t> wholeShape = getShape(whole.getType()), partShape = getShape(part.getType());
  if (wholeShape.front() != partShape.front() * static_cast<int64_t>(groups->front().size()) ||
      wholeShape.drop_front() != partShape.drop_front())
    return calls.front().fail("the parts of " + Twine(groups->front().size()) + " ranks, each with " +
                              Twine(partShape.front()) + " rows, do not make a whole of " + Twine(wholeShape.front()) +
                              " rows");
  return success();
}

static LogicalResult evaluateAllReduce(shard::AllReduceOp op, MutableArrayRef<RankCall> calls) {
  if (failed(checkSum(op, calls.front())))
    return failure();
  return onGroups(op, calls, [&](auto scalar, const Group &group) {
    auto sums = addUp<decltype(scalar)>(op.getInput(), group, calls);
    for (int rank : group)
      calls[rank].set(op.getResult(), Tensor::make(getShape(op.getInput().getType()), sums));
  });
}

static LogicalResult evaluateAllGather(shard::AllGatherOp op, MutableArrayRef<RankCall> calls) {
  if (failed(checkParts(op, op.getGatherAxis().getSExtValue(), op.getResult(), op.getInput(), calls)))
    return failure();
  return onGroups(op, calls, [&](auto scalar, const Group &group) {
    std::vector<decltype(scalar)> whole;
    for (int rank : group)
      llvm::append_range(whole, calls[rank].template read<decltype(scalar)>(op.getInput()));
    for (int rank : group)
      calls[rank].set(op.getResult(), Tensor::make(getShape(op.getResult().getType()), whole));
  });
}

static LogicalResult evaluateReduceScatter(shard::ReduceScatterOp op, MutableArrayRef<RankCall> calls) {
  if (failed(checkSum(op, calls.front())) ||
      failed(checkParts(op, op.getScatterAxis().getSExtValue(), op.getInput(), op.getResult(), calls)))
    return failure();
  return onGroups(op, calls, [&](auto scalar, const Group &group) {
    auto sums = addUp<decltype(scalar)>(op.getInput(), group, calls);
    int64_t size = sums.size() / group.size();
    for (auto [position, rank] : llvm::enumerate(group)) {
      auto part = ArrayRef(sums).slice(position * size, size).vec();
      calls[rank].set(op.getResult(), Tensor::make(getShape(op.getResult().getType()), part));
    }
  });
}

void interpreter::addCollectiveOps(OpTable &table) {
  table.add<shard::AllReduceOp>(evaluateAllReduce, evaluateAllReduce);
  table.add<shard::AllGatherOp>(evaluateAllGather, evaluateAllGather, Access::Moves);
  table.add<shard::ReduceScatterOp>(evaluateReduceScatter, evaluateReduceScatter);
}
