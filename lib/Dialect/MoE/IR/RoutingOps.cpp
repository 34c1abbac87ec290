//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

LogicalResult RoutingAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t topK, Score score,
                                  int64_t groups, int64_t keptGroups, bool normalize, FloatAttr scale) {
  if (topK < 1 || groups < 1 || keptGroups < 1 || keptGroups > groups)
    return emitError() << "needs top_k (" << topK << "), groups (" << groups << ") and kept_groups (" << keptGroups
                       << ") of at least 1, and no more kept groups than groups";
  if (!scale || !scale.getType().isF32() || !scale.getValue().isFinite())
    return emitError() << "scale must be a finite f32";
  return success();
}

LogicalResult PlanType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t experts, int64_t ranks,
                               int64_t tokens, int64_t topK, int64_t helperSlots, int64_t chunks, int64_t leaves,
                               int64_t capacity) {
  if (experts < 1 || ranks < 1 || tokens < 0 || topK < 1)
    return emitError() << "experts (" << experts << "), ranks (" << ranks << ") and top_k (" << topK
                       << ") must be at least 1, and tokens (" << tokens << ") at least 0";
  constexpr int64_t mostExperts = int64_t(1) << 24;
  if (experts > mostExperts)
    return emitError() << experts << " experts are more than 2^24";
  if (experts % ranks)
    return emitError() << experts << " experts do not divide over " << ranks << " ranks";
  if (!countElements({ranks, tokens, topK}))
    return emitError() << ranks << " ranks of " << tokens << " tokens with " << topK
                       << " slots are more than 2^60 rows";
  if (int64_t foreign = experts - experts / ranks; helperSlots < 0 || helperSlots > foreign)
    return emitError() << "helper_slots is " << helperSlots << ", and must be from 0 to the " << foreign
                       << " experts of other ranks";
  constexpr int64_t mostIterations = int64_t(1) << 20;
  if (chunks < 1 || leaves < 1 || chunks > mostIterations || leaves > mostIterations / chunks)
    return emitError() << "chunks (" << chunks << ") and leaves (" << leaves
                       << ") must be at least 1, and their product at most 2^20";
  if (capacity < 0 || (capacity == 0 && leaves > 1))
    return emitError() << "capacity is " << capacity
                       << (capacity < 0 ? ", which is negative" : ", and leaves need one");
  return success();
}

LogicalResult LeastLoadedAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t alphaNumerator,
                                      int64_t alphaDenominator, int64_t minRows, int64_t thresholdNumerator,
                                      int64_t thresholdDenominator) {
  constexpr int64_t most = 1000000; // Products with sums of rows must fit 64 bits.
  auto isGood = [](int64_t numerator, int64_t denominator) {
    return numerator >= 1 && denominator >= 1 && numerator <= most && denominator <= most;
  };
  if (!isGood(alphaNumerator, alphaDenominator) || !isGood(thresholdNumerator, thresholdDenominator))
    return emitError() << "alpha and threshold must be fractions of numbers from 1 to 10^6, and are " << alphaNumerator
                       << " over " << alphaDenominator << " and " << thresholdNumerator << " over "
                       << thresholdDenominator;
  if (minRows < 1)
    return emitError() << "min_rows is " << minRows << ", and must be at least 1";
  return success();
}

LogicalResult RouteOp::verify() {
  int64_t tokens = getLogits().getType().getDimSize(0), experts = getLogits().getType().getDimSize(1);
  int64_t topK = getRouting().getTopK();
  SmallVector<int64_t> slots = {tokens, topK}, all = {experts};
  if (getIds().getType().getShape() != ArrayRef<int64_t>(slots) ||
      getWeights().getType().getShape() != ArrayRef<int64_t>(slots) ||
      getCounts().getType().getShape() != ArrayRef<int64_t>(all) ||
      (getBias() && getBias().getType().getShape() != ArrayRef<int64_t>(all))) // RE1
    return emitOpError() << "RE1: for " << tokens << " tokens, " << experts << " experts and top_k = " << topK
                         << ", ids and weights must be [" << tokens << ", " << topK << "], counts and bias [" << experts
                         << "]";
  int64_t groups = getRouting().getGroups();
  if (experts % groups || experts / groups * getRouting().getKeptGroups() < topK) // RE2
    return emitOpError() << "RE2: " << experts << " experts must divide into " << groups << " groups, and the "
                         << getRouting().getKeptGroups() << " kept hold at least top_k = " << topK << " of them";
  return success();
}

SmallVector<Value> RouteOp::getResiduals() { return {getLogits(), getIds()}; }

LogicalResult RouteOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                    ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  if (Value cotangent = resultCotangents[1])
    operandCotangents[0] =
        RouteGradOp::create(builder, loc, getLogits().getType(), cotangent, residuals[0], residuals[1], getRouting());
  return success();
}

Component RouteOp::getDefaultComponent() { return Component::Routing; }

LogicalResult RouteGradOp::verify() {
  SmallVector<int64_t> slots = {getLogits().getType().getDimSize(0), getRouting().getTopK()};
  if (getCotangent().getType().getShape() != ArrayRef<int64_t>(slots) ||
      getIds().getType().getShape() != ArrayRef<int64_t>(slots) ||
      getResult().getType() != getLogits().getType()) // REG1
    return emitOpError() << "REG1: cotangent and ids must be [" << slots[0] << ", " << slots[1] << "], and the result "
                         << getLogits().getType() << " like the logits";
  return success();
}

Component RouteGradOp::getDefaultComponent() { return Component::Routing; }

LogicalResult PlanOp::verify() {
  PlanType plan = getPlan().getType();
  if (getIds().getType().getDimSize(0) != plan.getTokens() || getIds().getType().getDimSize(1) != plan.getTopK()) // P1
    return emitOpError() << "P1: ids are " << getIds().getType() << ", and the plan is for " << plan.getTokens()
                         << " tokens with " << plan.getTopK() << " slots";
  if ((plan.getHelperSlots() > 0) != getBalance().has_value()) // P3
    return emitOpError() << "P3: the plan has " << plan.getHelperSlots() << " helper slots and "
                         << (getBalance() ? "a" : "no") << " balance: one needs the other";
  return success();
}

LogicalResult PlanOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyShards(*this, getGridAttr(), getPlan().getType().getRanks(), "P2"); // P2
}

Component PlanOp::getDefaultComponent() { return Component::Routing; }

FlatSymbolRefAttr PlanOp::getCollectiveGrid() { return getGridAttr(); }
SmallVector<int64_t> PlanOp::getCollectiveAxes(int64_t dimensions) { return {dimensions - 1}; }
/// To each other rank the rows for its expert slots in each iteration, 4 bytes each, and with balance the rows of each
/// expert; and the rows of each leaf and rank, 8 bytes each, summed over the ranks.
int64_t PlanOp::getSentBytes(int64_t ranks) {
  PlanType plan = getPlan().getType();
  int64_t bytes = (ranks - 1) * plan.getIterations() * plan.getExpertSlots() * 4;
  if (getBalance())
    bytes += (ranks - 1) * plan.getExperts() * 4;
  return bytes + 2 * (ranks - 1) * plan.getIterations() * 8;
}
