//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The pass: which losses and gradients belong together, which forms are legal, and which is chosen.
//===----------------------------------------------------------------------===//

#include "RingVocab.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOERINGVOCAB
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static constexpr VocabMove moves[] = {VocabMove::Weights, VocabMove::Activations, VocabMove::None};

namespace {
/// A loss and its gradient; one of them may be missing.
struct Pair {
  VocabLossOp loss;
  VocabLossGradOp grad;

  Operation *getFirst() { return loss ? loss.getOperation() : grad.getOperation(); }
  VocabProblem getProblem();
};

struct RingVocab : moe::impl::MoERingVocabBase<RingVocab> {
  using MoERingVocabBase::MoERingVocabBase;

  void runOnOperation() override {
    if (failed(verifyOptions()))
      return signalPassFailure();
    for (Pair pair : findPairs())
      if (failed(rewrite(pair)))
        return signalPassFailure();
  }

private:
  LogicalResult verifyOptions();
  SmallVector<Pair> findPairs();
  LogicalResult rewrite(Pair pair);
  /// Says what stands against a wish: an error when wishes are strict.
  LogicalResult complain(Location loc, StringRef form, const Twine &reason);

  VocabLimits limits;
};

/// Whether each tile of logits can serve loss and gradient: why not, and otherwise what has to move in front of the
/// loss.
class Gathering {
public:
  Gathering(Pair pair, const VocabProblem &problem, const VocabLimits &limits);

  bool isLegal() const { return reason.empty(); }
  StringRef getReason() const { return reason; }
  void moveCotangents(Operation *before) const {
    for (Operation *op : cotangents)
      op->moveBefore(before);
  }

private:
  std::string findReason(Pair pair, const VocabProblem &problem, const VocabLimits &limits);
  /// Collects the ops between loss and gradient that `op` depends on; gives the reason when the loss is one, or one
  /// does not only compute.
  std::string collect(Operation *op, VocabLossOp loss);

  llvm::SetVector<Operation *> cotangents; ///< Operands before users.
  std::string reason;
};
} // namespace

VocabProblem Pair::getProblem() {
  VocabProblem problem;
  Value x = loss ? loss.getX() : grad.getX(), table = loss ? loss.getTable() : grad.getTable();
  VocabularyAttr vocabulary = loss ? loss.getVocabulary() : grad.getVocabulary();
  auto xType = cast<RankedTensorType>(x.getType());
  problem.tokens = xType.getDimSize(0);
  problem.hidden = xType.getDimSize(1);
  problem.columns = cast<RankedTensorType>(table.getType()).getDimSize(0);
  problem.elementBytes = xType.getElementTypeBitWidth() / 8;
  problem.stateNumbers = vocabulary.getStateSize();
  problem.hasBias = loss ? static_cast<bool>(loss.getBias()) : static_cast<bool>(grad.getBias());
  problem.hasLoss = static_cast<bool>(loss);
  problem.hasGrad = static_cast<bool>(grad);
  problem.ranks = 1;
  if (FlatSymbolRefAttr symbol = loss ? loss.getGridAttr() : grad.getGridAttr())
    problem.ranks = Grid::lookup(getFirst(), symbol)->getShards(); // VL4: there is one.
  if (grad) {
    problem.narrowsXGrad = grad.getXGrad().getType().getElementType().isBF16();
    problem.narrowsTableGrad = grad.getTableGrad().getType().getElementType().isBF16();
  }
  return problem;
}

Gathering::Gathering(Pair pair, const VocabProblem &problem, const VocabLimits &limits) {
  reason = findReason(pair, problem, limits);
}

std::string Gathering::findReason(Pair pair, const VocabProblem &problem, const VocabLimits &limits) {
  if (problem.tokens > 0 && getGatheredTokens(problem, limits) == 0) {
    int64_t bytes = problem.ranks * std::max(problem.columns * getLogitBytes(problem), 4 * problem.hidden);
    return (Twine("one token of each rank takes ") + Twine(bytes) + " bytes, and a tile has " +
            Twine(limits.tileBytes) + ": raise tile-bytes")
        .str();
  }
  if (!pair.loss)
    return "the loss that the gradient belongs to is not in its block";
  if (!pair.grad)
    return "";
  if (pair.loss.getX() != pair.grad.getX() || pair.loss.getTable() != pair.grad.getTable() ||
      pair.loss.getLabels() != pair.grad.getLabels() || pair.loss.getBias() != pair.grad.getBias() ||
      pair.loss.getGridAttr() != pair.grad.getGridAttr() || pair.loss.getVocabulary() != pair.grad.getVocabulary())
    return "loss and gradient have different operands";
  Operation *op = pair.grad.getCotangents().getDefiningOp();
  return op ? collect(op, pair.loss) : "";
}

std::string Gathering::collect(Operation *op, VocabLossOp loss) {
  Operation *ancestor = loss->getBlock()->findAncestorOpInBlock(*op);
  if (!ancestor || ancestor->isBeforeInBlock(loss) || cotangents.contains(ancestor))
    return "";
  if (ancestor == loss)
    return "the cotangents depend on the losses";
  if (!isPure(ancestor))
    return ("the cotangents depend on " + ancestor->getName().getStringRef() + ", which does not only compute").str();
  llvm::SetVector<Value> operands;
  ancestor->walk([&](Operation *inner) { operands.insert_range(inner->getOperands()); });
  for (Value operand : operands)
    if (Operation *source = operand.getDefiningOp(); source && !ancestor->isAncestor(source))
      if (std::string reason = collect(source, loss); !reason.empty())
        return reason;
  cotangents.insert(ancestor);
  return "";
}

LogicalResult RingVocab::verifyOptions() {
  func::FuncOp function = getOperation();
  if (!llvm::is_contained({"auto", "weights", "activations", "none"}, move))
    return function.emitError() << "move is '" << move << "': it must be weights, activations, none or auto";
  if (!llvm::is_contained({"shard", "tile"}, hop))
    return function.emitError() << "hop is '" << hop << "': it must be shard or tile";
  if (tileBytes < 8)
    return function.emitError() << "tile-bytes is " << static_cast<int64_t>(tileBytes) << ": it must be at least 8";
  if (budgetBytes < 0)
    return function.emitError() << "budget-bytes is " << static_cast<int64_t>(budgetBytes)
                                << ": it must be positive, or 0 for no limit";
  for (auto [name, rate] : {std::pair<StringRef, double>{"flops-per-second", flopsPerSecond},
                            {"link-bytes-per-second", linkBytesPerSecond}})
    if (!(rate > 0) || !std::isfinite(rate))
      return function.emitError() << name << " is " << rate << ": it must be positive and finite";
  limits = {tileBytes, hop == "tile", flopsPerSecond, linkBytesPerSecond};
  return success();
}

SmallVector<Pair> RingVocab::findPairs() {
  SmallVector<Pair> pairs;
  llvm::SmallPtrSet<Operation *, 4> paired;
  getOperation().walk([&](VocabLossOp loss) {
    Pair pair = {loss, {}};
    for (OpOperand &use : loss.getLse().getUses())
      if (auto grad = dyn_cast<VocabLossGradOp>(use.getOwner());
          grad && grad.getLseMutable().getOperandNumber() == use.getOperandNumber() &&
          grad->getBlock() == loss->getBlock() && (!pair.grad || grad->isBeforeInBlock(pair.grad)))
        pair.grad = grad;
    if (pair.grad)
      paired.insert(pair.grad);
    pairs.push_back(pair);
  });
  getOperation().walk([&](VocabLossGradOp grad) {
    if (!paired.contains(grad))
      pairs.push_back({{}, grad});
  });
  return pairs;
}

LogicalResult RingVocab::complain(Location loc, StringRef form, const Twine &reason) {
  if (strict)
    return emitError(loc) << "move=" << form << ": " << reason;
  remark::missed(loc, remark::RemarkOpts::name("not-" + form.str()).category("moe-ring-vocab"))
      << remark::reason("{0}", reason.str());
  return success();
}

LogicalResult RingVocab::rewrite(Pair pair) {
  Location loc = pair.getFirst()->getLoc();
  VocabProblem problem = pair.getProblem();
  Gathering gathering(pair, problem, limits);
  VocabCost costs[3];
  for (auto [form, cost] : llvm::zip_equal(moves, costs)) {
    cost = getVocabCost(problem, form, limits);
    remark::analysis(loc, remark::RemarkOpts::name(stringifyVocabMove(form)).category("moe-ring-vocab"))
        << remark::metric("Flops", cost.flops) << remark::metric("SentBytes", cost.sentBytes)
        << remark::metric("LogitsBytes", cost.logitsBytes) << remark::metric("LiveBytes", cost.liveBytes)
        << remark::metric("Microseconds", cost.seconds * 1e6);
  }
  auto costOf = [&](VocabMove form) -> const VocabCost & { return costs[static_cast<unsigned>(form)]; };
  auto fits = [&](VocabMove form) { return budgetBytes == 0 || costOf(form).liveBytes <= budgetBytes; };
  // Rings multiply alike, so bytes decide between them: seconds could round a difference away.
  auto isBetter = [&](VocabMove a, VocabMove b) {
    const VocabCost &left = costOf(a), &right = costOf(b);
    return left.flops == right.flops ? left.sentBytes < right.sentBytes : left.seconds < right.seconds;
  };

  SmallVector<VocabMove> candidates = {VocabMove::Weights, VocabMove::Activations};
  if (gathering.isLegal())
    candidates.push_back(VocabMove::None);
  if (move != "auto")
    llvm::erase_if(candidates, [&](VocabMove form) { return stringifyVocabMove(form) != move; });
  if (candidates.empty()) {
    if (failed(complain(loc, "none", gathering.getReason())))
      return failure();
    candidates = {VocabMove::Weights, VocabMove::Activations};
  } else if (move == "auto" && !gathering.isLegal()) {
    remark::missed(loc, remark::RemarkOpts::name("not-none").category("moe-ring-vocab"))
        << remark::reason("{0}", gathering.getReason());
  }
  VocabMove least = candidates.front(), chosen = least;
  for (VocabMove form : candidates)
    if (costOf(form).liveBytes < costOf(least).liveBytes)
      least = form;
  if (llvm::none_of(candidates, fits)) {
    if (failed(complain(loc, stringifyVocabMove(least),
                        "the least live bytes are " + Twine(costOf(least).liveBytes) + ", and budget-bytes is " +
                            Twine(static_cast<int64_t>(budgetBytes)) + ": raise it, or lower tile-bytes")))
      return failure();
    candidates = {least};
    chosen = least;
  } else {
    llvm::erase_if(candidates, [&](VocabMove form) { return !fits(form); });
    chosen = candidates.front();
    for (VocabMove form : candidates)
      if (isBetter(form, chosen))
        chosen = form;
  }
  const VocabCost &cost = costOf(chosen);
  remark::passed(loc, remark::RemarkOpts::name("form").category("moe-ring-vocab"))
      << remark::metric("Move", stringifyVocabMove(chosen).str()) << remark::metric("Hop", hop.getValue())
      << remark::metric("Ranks", problem.ranks) << remark::metric("TileBytes", limits.tileBytes)
      << remark::metric("FlopsPerSecond", limits.flopsPerSecond)
      << remark::metric("LinkBytesPerSecond", limits.linkBytesPerSecond)
      << remark::metric("Microseconds", cost.seconds * 1e6);

  VocabLosses losses;
  VocabGrads grads;
  if (chosen == VocabMove::None) {
    gathering.moveCotangents(pair.loss);
    std::tie(losses, grads) = buildGatheredLoss(pair.loss, pair.grad, problem, limits);
  } else {
    if (pair.loss)
      losses = buildRingLoss(pair.loss, chosen, problem, limits);
    if (pair.grad)
      grads = buildRingGrad(pair.grad, chosen, problem, limits);
  }
  if (pair.grad) {
    SmallVector<Value> results = {grads.xGrad, grads.tableGrad};
    if (grads.biasGrad)
      results.push_back(grads.biasGrad);
    VocabLossGradOp grad = pair.grad;
    grad->replaceAllUsesWith(results);
    grad->erase();
  }
  if (pair.loss) {
    VocabLossOp loss = pair.loss;
    loss->replaceAllUsesWith(SmallVector<Value>{losses.losses, losses.lse});
    loss->erase();
  }
  return success();
}
