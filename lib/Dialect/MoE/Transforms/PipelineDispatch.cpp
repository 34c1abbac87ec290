//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The pass: into what each plan is cut, and how its rows are evened out.
//===----------------------------------------------------------------------===//

#include "PipelineDispatchLoop.h"
#include "PipelineDispatchPlans.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include <numeric>

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEPIPELINEDISPATCH
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
struct Fraction {
  int64_t numerator = 0, denominator = 1;
};

struct PipelineDispatch : moe::impl::MoEPipelineDispatchBase<PipelineDispatch> {
  using MoEPipelineDispatchBase::MoEPipelineDispatchBase;

  void runOnOperation() override {
    if (failed(verifyOptions()))
      return signalPassFailure();
    SmallVector<std::unique_ptr<PlanUses>> plans = findPlans(getOperation());
    if (plans.empty() && failed(complain(getOperation().getLoc(), "no-plan", "the function makes no plan of routes")))
      return signalPassFailure();
    for (std::unique_ptr<PlanUses> &plan : plans) {
      LogicalResult done = plan->reason.empty() ? rewrite(*plan) : complain(plan->place, "not-in-parts", plan->reason);
      if (failed(done))
        return signalPassFailure();
    }
    llvm::SmallSetVector<Block *, 8> blocks; // Only now: groups of all plans name ops.
    getOperation().walk([&](RoutedOpInterface op) { blocks.insert(op->getBlock()); });
    llvm::for_each(blocks, [](Block *block) { eraseUnusedRows(*block); });
  }

private:
  LogicalResult verifyOptions();
  LogicalResult rewrite(PlanUses &plan);
  /// Helper slots, and the chunks that are asked for; what of either cannot be had is said.
  LogicalResult fitToPlan(PlanUses &plan, ExchangeShape &shape, DispatchWish &wish);
  FailureOr<DispatchCut> choose(PlanUses &plan, const ExchangeShape &shape, const DispatchWish &wish);
  /// Says what stands against a wish: an error when wishes are strict.
  LogicalResult complain(Location loc, StringRef name, const Twine &reason);

  Fraction alphaFraction, thresholdFraction;
};
} // namespace

/// The exact value of "1.25" or "5/4", reduced; nothing for other text, and for what needs more than seven digits.
static std::optional<Fraction> parseFraction(StringRef text) {
  constexpr int64_t most = 1000000;
  Fraction fraction;
  auto [whole, part] = text.split(text.contains('/') ? '/' : '.');
  auto parse = [](StringRef digits, int64_t &number) {
    return !digits.empty() && digits.size() <= 12 && llvm::all_of(digits, llvm::isDigit) &&
           !digits.getAsInteger(10, number);
  };
  if (!parse(whole, fraction.numerator))
    return std::nullopt;
  if (text.contains('/')) {
    if (!parse(part, fraction.denominator))
      return std::nullopt;
  } else if (text.contains('.')) {
    int64_t digits = 0;
    if (part.size() > 6 || fraction.numerator > most || !parse(part, digits))
      return std::nullopt;
    for (size_t i = 0; i < part.size(); ++i)
      fraction.denominator *= 10;
    fraction.numerator = fraction.numerator * fraction.denominator + digits;
  }
  if (fraction.numerator < 1 || fraction.denominator < 1)
    return std::nullopt;
  int64_t divisor = std::gcd(fraction.numerator, fraction.denominator);
  fraction = {fraction.numerator / divisor, fraction.denominator / divisor};
  if (fraction.numerator > most || fraction.denominator > most)
    return std::nullopt;
  return fraction;
}

LogicalResult PipelineDispatch::verifyOptions() {
  func::FuncOp function = getOperation();
  for (auto [name, value, least] : {std::tuple<StringRef, int64_t, int64_t>{"chunk-tokens", chunkTokens, 0},
                                    {"max-chunks", maxChunks, 0},
                                    {"capacity-rows", capacityRows, 0},
                                    {"inflight-bytes", inflightBytes, 0},
                                    {"in-flight", inFlight, 1},
                                    {"min-rows", minRows, 1},
                                    {"helper-slots", helperSlots, 0}})
    if (value < least)
      return function.emitError() << name << " is " << value << ": it must be at least " << least;
  if (balance != "none" && balance != "least-loaded")
    return function.emitError() << "balance is '" << balance << "': it must be none or least-loaded";
  for (auto [name, text, fraction] : {std::tuple<StringRef, StringRef, Fraction *>{"alpha", alpha, &alphaFraction},
                                      {"imbalance-threshold", imbalanceThreshold, &thresholdFraction}}) {
    std::optional<Fraction> parsed = parseFraction(text);
    if (!parsed)
      return function.emitError() << name << " is '" << text
                                  << "': it must be a positive number such as 1.3 or 13/10, and as a reduced fraction "
                                     "of whole numbers up to 10^6";
    *fraction = *parsed;
  }
  return success();
}

LogicalResult PipelineDispatch::complain(Location loc, StringRef name, const Twine &reason) {
  if (strict)
    return emitError(loc) << "moe-pipeline-dispatch: " << reason;
  remark::missed(loc, remark::RemarkOpts::name(name).category("moe-pipeline-dispatch"))
      << remark::reason("{0}", reason.str());
  return success();
}

LogicalResult PipelineDispatch::fitToPlan(PlanUses &plan, ExchangeShape &shape, DispatchWish &wish) {
  Location loc = plan.op.getLoc();
  if (balance == "least-loaded" && shape.ranks > 1) {
    int64_t foreign = shape.experts - shape.experts / shape.ranks;
    shape.helperSlots = std::min<int64_t>(helperSlots, foreign);
    if (helperSlots == 0 &&
        failed(complain(loc, "not-balanced", "helper-slots is 0: every expert stays on its own rank")))
      return failure();
    if (helperSlots > foreign &&
        failed(complain(loc, "fewer-helper-slots",
                        "helper-slots is " + Twine(static_cast<int64_t>(helperSlots)) + ", and other ranks have " +
                            Twine(foreign) + " experts: as many slots are made")))
      return failure();
  }
  wish = {/*chunks=*/0, capacityRows, inflightBytes, shape.ranks > 1 ? inFlight : 1};
  if (chunkTokens > 0) {
    wish.chunks = std::max<int64_t>(llvm::divideCeil(shape.tokens, static_cast<int64_t>(chunkTokens)), 1);
    if (maxChunks > 0)
      wish.chunks = std::min<int64_t>(wish.chunks, maxChunks);
  } else if (maxChunks > 0) {
    wish.chunks = std::min<int64_t>(maxChunks, std::max<int64_t>(shape.tokens, 1));
    if (wish.chunks < maxChunks &&
        failed(complain(loc, "fewer-chunks",
                        "max-chunks is " + Twine(static_cast<int64_t>(maxChunks)) + ", and a rank has " +
                            Twine(shape.tokens) + " tokens: as many chunks are made")))
      return failure();
  }
  return success();
}

FailureOr<DispatchCut> PipelineDispatch::choose(PlanUses &plan, const ExchangeShape &shape, const DispatchWish &wish) {
  if (int64_t least = shape.getSmallestCapacity(); wish.capacity > 0 && wish.capacity < least)
    return plan.op.emitError() << "capacity-rows is " << wish.capacity << ", and the smallest legal capacity is "
                               << least << " rows: " << shape.ranks << " ranks may each send " << shape.getRowsOfToken()
                               << " rows of one token to the same rank";
  SmallVector<DispatchLoopShape> loops;
  for (const DispatchGroup &group : plan.groups)
    loops.push_back(group.getShape());
  int64_t bytes = 0;
  DispatchCut cut = chooseCut(shape, wish, loops, bytes);
  if (constexpr int64_t most = int64_t(1) << 20; cut.getIterations() > most)
    return plan.op.emitError() << cut.chunks << " chunks of " << cut.leaves << " leaves are " << cut.getIterations()
                               << " iterations, and there can be " << most
                               << ": raise capacity-rows, or lower the number of chunks";
  if (inflightBytes > 0 && bytes > inflightBytes &&
      failed(complain(plan.op.getLoc(), "over-budget",
                      "the loops of " + Twine(cut.chunks) + " chunks of " + Twine(cut.leaves) + " leaves with " +
                          Twine(cut.capacity) + " rows hold " + Twine(bytes) + " bytes, and inflight-bytes is " +
                          Twine(static_cast<int64_t>(inflightBytes)))))
    return failure();
  remark::passed(plan.op.getLoc(), remark::RemarkOpts::name("plan").category("moe-pipeline-dispatch"))
      << remark::metric("Tokens", shape.tokens) << remark::metric("RowsOfToken", shape.getRowsOfToken())
      << remark::metric("Chunks", cut.chunks) << remark::metric("Leaves", cut.leaves)
      << remark::metric("CapacityRows", cut.capacity) << remark::metric("HelperSlots", shape.helperSlots)
      << remark::metric("InFlight", wish.inFlight) << remark::metric("Loops", plan.groups.size())
      << remark::metric("LoopBytes", bytes);
  return cut;
}

/// What a group computes again because the loops before it have dropped their rows.
static void remarkRepeated(const DispatchGroup &group, const ExchangeShape &shape) {
  int64_t exchanges = 0, flops = 0;
  for (Operation *op : group.repeated) {
    exchanges += isa<DispatchOp>(op);
    if (auto matmul = dyn_cast<GroupedMatmulOp>(op)) {
      RankedTensorType weights = matmul.getWeights().getType();
      flops += 2 * shape.tokens * shape.topK * weights.getDimSize(1) * weights.getDimSize(2);
    }
  }
  remark::analysis(group.ops.back()->getLoc(), remark::RemarkOpts::name("repeated").category("moe-pipeline-dispatch"))
      << remark::add("rows are computed again, since no loop keeps them for another: a checkpoint region for the layer "
                     "lets the backward pass take both at once")
      << remark::metric("Ops", group.repeated.size()) << remark::metric("Dispatches", exchanges)
      << remark::metric("MeanFlops", flops);
}

LogicalResult PipelineDispatch::rewrite(PlanUses &plan) {
  PlanType old = plan.op.getPlan().getType();
  ExchangeShape shape = {old.getExperts(), old.getRanks(), old.getTokens(), old.getTopK()};
  shape.isDistinct = plan.op.getIds().getDefiningOp<RouteOp>() != nullptr; // RE3: distinct whatever the logits.
  DispatchWish wish;
  if (failed(fitToPlan(plan, shape, wish)))
    return failure();
  FailureOr<DispatchCut> cut = choose(plan, shape, wish);
  if (failed(cut))
    return failure();
  // A capacity that any routing meets, in one iteration, need not be said.
  bool isLoop = cut->getIterations() > 1;
  int64_t capacity = isLoop || cut->capacity < old.getMaxRows() ? cut->capacity : 0;
  auto type = PlanType::get(&getContext(), old.getExperts(), old.getRanks(), old.getTokens(), old.getTopK(),
                            shape.helperSlots, cut->chunks, cut->leaves, capacity);
  for (Value name : plan.names)
    name.setType(type);
  if (shape.helperSlots > 0)
    plan.op.setBalanceAttr(LeastLoadedAttr::get(&getContext(), alphaFraction.numerator, alphaFraction.denominator,
                                                minRows, thresholdFraction.numerator, thresholdFraction.denominator));
  llvm::SmallDenseSet<Operation *> done;
  for (const DispatchGroup &group : plan.groups) {
    if (!isLoop) {
      addHelpers(group, plan.op.getGridAttr(), done);
      continue;
    }
    if (!group.repeated.empty())
      remarkRepeated(group, shape);
    if (failed(buildDispatchLoop(group, plan.op.getGridAttr(), wish.inFlight)))
      return failure();
  }
  return success();
}
