//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

/// A factor of a loss: BL3, BLG3, ZL3 and ZLG3.
static LogicalResult verifyCoefficient(Operation *op, StringRef code, const APFloat &coefficient) {
  if (!coefficient.isFinite() || (coefficient.isNegative() && !coefficient.isZero()))
    return op->emitOpError() << code << ": coefficient must be finite and not negative";
  return success();
}

/// BL1 to BL3, and BLG1 to BLG3.
template <typename OpTy>
static LogicalResult verifyBalance(OpTy op, StringRef code) {
  int64_t tokens = op.getLogits().getType().getDimSize(0), experts = op.getLogits().getType().getDimSize(1);
  int64_t topK = op.getRouting().getTopK();
  auto fail = [&](int number) { return op.emitOpError() << code << number << ": "; };
  if (experts < 1)
    return fail(1) << "a row must have at least one logit";
  if (static_cast<bool>(op.getCounts()) == static_cast<bool>(op.getIds()))
    return fail(1) << "there must be one of counts and ids, not " << (op.getCounts() ? "both" : "neither");
  if (op.getCounts() && op.getCounts().getType().getDimSize(0) != experts)
    return fail(1) << "there are " << op.getCounts().getType().getDimSize(0) << " counts for " << experts << " experts";
  if (op.getIds() && (op.getIds().getType().getDimSize(0) != tokens || op.getIds().getType().getDimSize(1) != topK))
    return fail(1) << "ids are " << op.getIds().getType() << ", and there are " << tokens
                   << " tokens with top_k = " << topK;

  bool hasIds = static_cast<bool>(op.getIds());
  if (op.getSequence().has_value() != hasIds || op.getSequences().has_value() != hasIds)
    return fail(2) << "sequence and sequences must be there exactly when ids are";
  if (hasIds) {
    int64_t sequence = *op.getSequence(), sequences = *op.getSequences();
    if (sequence < 1 || tokens % sequence)
      return fail(2) << "sequence is " << sequence << ", and it must divide the " << tokens << " tokens";
    if (sequences < 1 || sequences < tokens / sequence)
      return fail(2) << "sequences is " << sequences << ", and the rank alone has " << tokens / sequence;
  }
  return verifyCoefficient(op, (code + "3").str(), op.getCoefficient());
}

/// ZL1 to ZL3, and ZLG1 to ZLG3.
template <typename OpTy>
static LogicalResult verifyZLoss(OpTy op, StringRef code) {
  RankedTensorType logits = op.getLogits().getType();
  auto tokens = static_cast<int64_t>(op.getTokens());
  if (logits.getDimSize(1) < 1)
    return op.emitOpError() << code << "1: a row must have at least one logit";
  if (tokens < 1 || tokens < logits.getDimSize(0))
    return op.emitOpError() << code << "2: tokens is " << tokens << ", and the rank alone has " << logits.getDimSize(0);
  return verifyCoefficient(op, (code + "3").str(), op.getCoefficient());
}

LogicalResult BalanceLossOp::verify() { return verifyBalance(*this, "BL"); } // BL1, BL2, BL3

SmallVector<Value> BalanceLossOp::getResiduals() { return {getLogits(), getCounts() ? getCounts() : getIds()}; }

LogicalResult BalanceLossOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                          ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  Value counts = getCounts() ? residuals[1] : Value(), ids = getIds() ? residuals[1] : Value();
  operandCotangents[0] =
      BalanceLossGradOp::create(builder, loc, getLogits().getType(), resultCotangents[0], residuals[0], counts, ids,
                                getSequenceAttr(), getSequencesAttr(), getCoefficientAttr(), getRoutingAttr());
  return success();
}

Component BalanceLossOp::getDefaultComponent() { return Component::Routing; }

LogicalResult BalanceLossGradOp::verify() {
  if (getResult().getType() != getLogits().getType()) // BLG1
    return emitOpError() << "BLG1: the result must be " << getLogits().getType() << " like the logits";
  return verifyBalance(*this, "BLG"); // BLG1, BLG2, BLG3
}

Component BalanceLossGradOp::getDefaultComponent() { return Component::Routing; }

LogicalResult ZLossOp::verify() { return verifyZLoss(*this, "ZL"); } // ZL1, ZL2, ZL3

SmallVector<Value> ZLossOp::getResiduals() { return {getLogits()}; }

LogicalResult ZLossOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                    ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] =
      ZLossGradOp::create(builder, loc, resultCotangents[0], residuals[0], getTokensAttr(), getCoefficientAttr());
  return success();
}

Component ZLossOp::getDefaultComponent() { return Component::Routing; }

LogicalResult ZLossGradOp::verify() { return verifyZLoss(*this, "ZLG"); } // ZLG1, ZLG2, ZLG3

Component ZLossGradOp::getDefaultComponent() { return Component::Routing; }

LogicalResult UpdateBiasOp::verify() {
  if (getCounts().getType().getDimSize(0) != getBias().getType().getDimSize(0)) // UB1
    return emitOpError() << "UB1: there are " << getCounts().getType().getDimSize(0) << " counts for a bias of "
                         << getBias().getType().getDimSize(0);
  if (!getRate().isFinite() || (getRate().isNegative() && !getRate().isZero())) // UB2
    return emitOpError() << "UB2: rate must be finite and not negative";
  return success();
}

Component UpdateBiasOp::getDefaultComponent() { return Component::Optimizer; }
