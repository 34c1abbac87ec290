//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "Hash.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;
using namespace mlir::plateau::moe;

/// Makes a result with the elements of `old`, to be updated in place.
template <typename Scalar>
static MutableArrayRef<Scalar> writeCopy(RankCall &call, Value result, Value old) {
  auto elements = call.write<Scalar>(result);
  llvm::copy(call.read<Scalar>(old), elements.begin());
  return elements;
}

// --- Flat groups ---

template <typename Scalar>
static LogicalResult evaluateUnpack(UnpackOp op, RankCall &call) {
  auto group = call.read<Scalar>(op.getGroup());
  for (auto [tensor, member] : llvm::zip_equal(op.getTensors(), op.getLayout().getMembers()))
    llvm::copy(group.slice(member.getOffset(), member.getElements()), call.write<Scalar>(tensor).begin());
  return success();
}

template <typename Scalar>
static LogicalResult evaluatePack(PackOp op, RankCall &call) {
  auto result = writeCopy<Scalar>(call, op.getResult(), op.getInto());
  for (auto [tensor, member] : llvm::zip_equal(op.getTensors(), op.getLayout().getMembers()))
    llvm::copy(call.read<Scalar>(tensor), result.begin() + member.getOffset());
  return success();
}

// --- Gradient norm and clipping ---

template <typename Scalar>
static LogicalResult evaluateSumSquares(SumSquaresOp op, RankCall &call) {
  auto gradients = call.read<Scalar>(op.getGradients());
  Scalar sum = Scalar();
  for (MemberAttr member : op.getLayout().getMembers())
    for (Scalar element : gradients.slice(member.getOffset(), member.getElements()))
      sum += element * element;
  call.write<Scalar>(op.getResult())[0] = sum;
  return success();
}

template <typename Scalar>
static Scalar addSquares(GradNormOp op, RankCall &call) {
  Scalar sum = Scalar();
  for (Value square : op.getSquares())
    sum += call.read<Scalar>(square)[0];
  return sum;
}

static LogicalResult evaluateGradNorm(GradNormOp op, RankCall &call) {
  call.write<double>(op.getNorm())[0] = std::sqrt(addSquares<double>(op, call));
  return success();
}

static LogicalResult evaluateGradNormExactly(GradNormOp op, RankCall &call) {
  call.write<Field>(op.getNorm())[0] = Hash("grad_norm").add(addSquares<Field>(op, call)).toField();
  return success();
}

static LogicalResult evaluateClipFactor(ClipFactorOp op, RankCall &call) {
  double norm = call.read<double>(op.getNorm())[0], limit = op.getMaxNorm().convertToDouble();
  double factor = norm == 0 || std::isinf(limit) ? 1 : std::min(1.0, limit / norm);
  call.write<double>(op.getFactor())[0] = std::isfinite(norm) ? factor : std::nan("");
  return success();
}

static LogicalResult evaluateClipFactorExactly(ClipFactorOp op, RankCall &call) {
  Field norm = call.read<Field>(op.getNorm())[0];
  double limit = op.getMaxNorm().convertToDouble();
  call.write<Field>(op.getFactor())[0] =
      std::isinf(limit) ? Field::fromInteger(1) : Hash("clip_factor").add(norm).add(limit).toField();
  return success();
}

// --- moe.adamw ---

namespace {
/// The new state of one update, which starts as a copy of the old one. `updated` is what the update is applied to: the
/// master when there is one. No rounding separates the parameters from the master here.
template <typename Scalar>
struct NewState {
  MutableArrayRef<Scalar> parameters, first, second, updated;

  NewState(AdamWOp op, RankCall &call)
      : parameters(writeCopy<Scalar>(call, op.getNewParameters(), op.getParameters())),
        first(writeCopy<Scalar>(call, op.getNewFirst(), op.getFirst())),
        second(writeCopy<Scalar>(call, op.getNewSecond(), op.getSecond())), updated(parameters) {
    if (op.getMaster())
      updated = writeCopy<Scalar>(call, op.getNewMaster(), op.getMaster());
  }
};
} // namespace

static LogicalResult evaluateAdamW(AdamWOp op, RankCall &call) {
  NewState<double> state(op, call);
  auto gradients = call.read<double>(op.getGradients());
  double factor = call.read<double>(op.getFactor())[0], rate = call.read<double>(op.getLearningRate())[0];
  auto step = static_cast<double>(call.read<int64_t>(op.getStep())[0]);
  if (step < 1)
    return call.fail("the number of the update is " + Twine(int64_t(step)) + ", but the first is 1");
  double beta1 = op.getBeta1().convertToDouble(), beta2 = op.getBeta2().convertToDouble();
  double epsilon = op.getEpsilon().convertToDouble(), weightDecay = op.getWeightDecay().convertToDouble();
  double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
  if (!std::isfinite(factor))
    return success(); // the update is skipped
  for (MemberAttr member : op.getLayout().getMembers())
    for (int64_t i = member.getOffset(), end = i + member.getElements(); i < end; ++i) {
      double &p = state.updated[i], &m = state.first[i], &v = state.second[i], g = gradients[i] * factor;
      if (member.getParameter().getDecay())
        p = p * (1 - rate * weightDecay);
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      p = p - (rate / correction1) * m / (std::sqrt(v) / std::sqrt(correction2) + epsilon);
      state.parameters[i] = p;
    }
  return success();
}

/// Each new value of an element is a hash of the element's old state and of what the update depends on.
static LogicalResult evaluateAdamWExactly(AdamWOp op, RankCall &call) {
  NewState<Field> state(op, call);
  auto gradients = call.read<Field>(op.getGradients());
  Hash update("adamw");
  update.add(call.read<Field>(op.getFactor())[0]).add(call.read<Field>(op.getLearningRate())[0]);
  update.add(call.read<int64_t>(op.getStep())[0]);
  for (const APFloat &constant : {op.getBeta1(), op.getBeta2(), op.getEpsilon(), op.getWeightDecay()})
    update.add(constant.convertToDouble());
  for (MemberAttr member : op.getLayout().getMembers()) {
    Hash tensor = Hash(update).add(int64_t(member.getParameter().getDecay()));
    for (int64_t i = member.getOffset(), end = i + member.getElements(); i < end; ++i) {
      Field &p = state.updated[i], &m = state.first[i], &v = state.second[i];
      Hash element = Hash(tensor).add(p).add(gradients[i]).add(m).add(v);
      p = state.parameters[i] = element.at(0);
      m = element.at(1);
      v = element.at(2);
    }
  }
  return success();
}

void interpreter::addOptimizerOps(OpTable &table) {
  table.add<UnpackOp>(evaluateUnpack<double>, evaluateUnpack<Field>, Access::Moves);
  table.add<PackOp>(evaluatePack<double>, evaluatePack<Field>, Access::Moves);
  table.add<SumSquaresOp>(evaluateSumSquares<double>, evaluateSumSquares<Field>);
  table.add<GradNormOp>(evaluateGradNorm, evaluateGradNormExactly);
  table.add<ClipFactorOp>(evaluateClipFactor, evaluateClipFactorExactly);
  table.add<AdamWOp>(evaluateAdamW, evaluateAdamWExactly);
}
