//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PipelinePlan.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "plateau/Dialect/Sched/IR/CollectiveOrder.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDPIPELINELOOPS
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace mlir::plateau::sched

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::sched;

namespace {
/// Number `number`, or `number` after that of the counter when there is one: what a copy of a call belongs to.
struct Iteration {
  Value counter;
  int64_t number;
};

/// A value or a carried value of the loop, and a number or a lag.
using Instance = std::pair<Value, int64_t>;

/// Writes the overlapped loop in front of the loop, and takes the loop away.
class Overlap {
public:
  explicit Overlap(const PipelinePlan &plan)
      : plan(plan), loop(plan.getLoop()), counter(loop.getCounter()), from(loop.getFrom()), to(loop.getTo()),
        builder(loop) {}

  /// Returns the bytes that rings add.
  int64_t run();

private:
  // What the new loop carries: from the calls in it, and from those behind it.
  void carry(Value value, int64_t lag);
  void carryBehind(Value value, int64_t number);
  void chooseCarried();

  // Code.
  Value get(Value value, Iteration iteration);
  Value build(Operation *op, Iteration iteration);
  Value buildView(ViewOp view, Iteration iteration);
  Value buildPlace(Value slot, Iteration iteration);
  void buildCall(LaneOpInterface call, Iteration iteration);
  void buildTimes(int64_t begin, int64_t end);
  void buildLoop();

  const PipelinePlan &plan;
  LoopOp loop;
  Value counter;
  int64_t from, to;
  OpBuilder builder;
  LoopOp steady; ///< The new loop, once it is there.
  llvm::SetVector<Instance> carried;
  llvm::DenseSet<Instance> seen;
  llvm::DenseMap<Instance, Value> fixed;   ///< In straight-line code, by iteration.
  llvm::DenseMap<Instance, Value> turning; ///< In the new loop, by minus the lag.
};
} // namespace

static int64_t wrap(int64_t number, int64_t places) { return ((number % places) + places) % places; }

/// `value` of `lag` iterations ago is needed when a time ends.
void Overlap::carry(Value value, int64_t lag) {
  if (plan.isOutside(value) || value == counter || !seen.insert({value, lag}).second)
    return;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (plan.isUnchanged(argument))
      return;
    if (lag >= plan.getFirstLag(argument))
      carried.insert({value, lag});
    else
      carry(plan.getYielded(argument), lag + 1);
  } else if (auto call = value.getDefiningOp<LaneOpInterface>()) {
    if (lag > plan.getDelay(call))
      carried.insert({value, lag});
  } else {
    for (Value operand : value.getDefiningOp()->getOperands())
      carry(operand, lag);
  }
}

/// `value` of iteration `number` is needed behind the loop.
void Overlap::carryBehind(Value value, int64_t number) {
  if (plan.isOutside(value) || value == counter)
    return;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (plan.isUnchanged(argument) || number == from)
      return;
    if (to - number >= plan.getFirstLag(argument))
      carried.insert({value, to - number});
    else
      carryBehind(plan.getYielded(argument), number - 1);
  } else if (auto call = value.getDefiningOp<LaneOpInterface>()) {
    int64_t time = number + plan.getDelay(call);
    if (time >= from + plan.getDepth() - 1 && time < to)
      carried.insert({value, to - number});
  } else {
    for (Value operand : value.getDefiningOp()->getOperands())
      carryBehind(operand, number);
  }
}

void Overlap::chooseCarried() {
  for (LaneOpInterface call : plan.getCalls()) {
    int64_t delay = plan.getDelay(call);
    for (Value operand : call->getOperands()) {
      carry(operand, delay);
      for (int64_t number = to - delay; number < to; ++number)
        carryBehind(operand, number);
    }
  }
  for (auto [argument, result] : llvm::zip_equal(loop.getCarried(), loop.getResults()))
    if (!result.use_empty())
      carryBehind(argument, to);
  for (size_t i = 0; i < carried.size(); ++i) { // Grows.
    auto [value, lag] = carried[i];
    if (auto argument = dyn_cast<BlockArgument>(value))
      carry(plan.getYielded(argument), lag);
    else
      carry(value, lag - 1);
  }
}

/// `value` as `iteration` has it.
Value Overlap::get(Value value, Iteration iteration) {
  if (plan.isOutside(value))
    return plan.getPlaces(value) == 1 ? value : buildPlace(value, iteration);
  auto &known = iteration.counter ? turning : fixed;
  if (Value found = known.lookup({value, iteration.number}))
    return found;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (plan.isUnchanged(argument) || (!iteration.counter && iteration.number == from))
      return plan.getInit(argument);
    if (!iteration.counter && steady)
      if (auto result = llvm::find(carried, Instance(value, to - iteration.number)); result != carried.end())
        return steady.getResult(result - carried.begin());
    return get(plan.getYielded(argument), {iteration.counter, iteration.number - 1});
  }
  Operation *op = value.getDefiningOp();
  if (isa<LaneOpInterface>(op)) { // No copy of it in straight-line code: the loop did it last.
    auto result = llvm::find(carried, Instance(value, to - iteration.number));
    assert(!iteration.counter && steady && result != carried.end() && "a value is used that nothing carries");
    return steady.getResult(result - carried.begin());
  }
  Value made = build(op, iteration);
  known[{value, iteration.number}] = made;
  return made;
}

Value Overlap::build(Operation *op, Iteration iteration) {
  if (auto view = dyn_cast<ViewOp>(op))
    return buildView(view, iteration);
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, get(operand, iteration));
  return builder.clone(*op, mapping)->getResult(0);
}

/// The place of `slot` that is the iteration's.
Value Overlap::buildPlace(Value slot, Iteration iteration) {
  auto &known = iteration.counter ? turning : fixed;
  Value &place = known[{slot, iteration.number}];
  if (!place)
    place = ViewOp::create(builder, slot.getLoc(), slot.getType(), slot, iteration.counter, /*offset=*/0, /*stride=*/0,
                           builder.getI64IntegerAttr(wrap(iteration.number, plan.getPlaces(slot))));
  return place;
}

Value Overlap::buildView(ViewOp view, Iteration iteration) {
  bool isOwn = view.getIndex() == counter;
  int64_t offset = view.getOffset(), stride = view.getStride();
  std::optional<int64_t> ring = view.getRing();
  Value source = view.getSource(), index = view.getIndex();
  if (isOwn) {
    offset += stride * iteration.number;
    index = iteration.counter;
    stride = index ? stride : 0;
  }
  if (int64_t places = plan.getPlaces(source); places > 1 && (isOwn || !index)) {
    ring = wrap(iteration.number, places);
    index = iteration.counter;
  } else if (places > 1) { // The view's index is that of an outer loop.
    ring = std::nullopt;
    source = get(source, iteration);
  } else {
    if (ring && isOwn)
      ring = wrap(*ring + iteration.number, source.getDefiningOp<SlotOp>().getRing());
    source = get(source, iteration);
  }
  if (!ring && stride == 0)
    index = {};
  return ViewOp::create(builder, view.getLoc(), view.getType(), source, index, offset, stride,
                        ring ? builder.getI64IntegerAttr(*ring) : IntegerAttr());
}

void Overlap::buildCall(LaneOpInterface call, Iteration iteration) {
  IRMapping mapping;
  for (Value operand : call->getOperands())
    mapping.map(operand, get(operand, iteration));
  Operation *copy = builder.clone(*call, mapping);
  copy->removeAttr("stage");
  if (auto args = copy->getAttrOfType<ArrayAttr>("args")) {
    AttrTypeReplacer rows;
    rows.addReplacement([&](CellAttr cell) -> Attribute {
      return CellAttr::get(cell.getContext(), cell.getTable(), cell.getRow() + iteration.number, cell.getColumn());
    });
    copy->setAttr("args", rows.replace(args));
  }
  for (auto [old, now] : llvm::zip_equal(call->getResults(), copy->getResults()))
    (iteration.counter ? turning : fixed)[{old, iteration.number}] = now;
}

/// Straight-line code for times `begin` ... `end` - 1.
void Overlap::buildTimes(int64_t begin, int64_t end) {
  for (int64_t time = begin; time < end; ++time)
    for (LaneOpInterface call : plan.getCalls())
      if (int64_t number = time - plan.getDelay(call); from <= number && number < to)
        buildCall(call, {{}, number});
}

/// The times at which every stage has an iteration.
void Overlap::buildLoop() {
  int64_t first = from + plan.getDepth() - 1;
  chooseCarried();
  SmallVector<Value> inits;
  for (auto [value, lag] : carried)
    inits.push_back(get(value, {{}, first - lag}));
  // At time t the last stage is with iteration t - depth + 1.
  IntegerAttr until = loop.getUntilBehindAttr();
  if (until)
    until = builder.getI64IntegerAttr(until.getInt() + plan.getDepth() - 1);
  steady = LoopOp::create(builder, loop.getLoc(), ValueRange(inits).getTypes(), first, to,
                          /*inFlight=*/IntegerAttr(), loop.getUntil(), until, inits);
  Block &body = steady->getRegion(0).emplaceBlock();
  Value time = body.addArgument(counter.getType(), counter.getLoc());
  for (auto [value, lag] : carried)
    turning[{value, -lag}] = body.addArgument(value.getType(), value.getLoc());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&body);
  for (LaneOpInterface call : plan.getCalls())
    buildCall(call, {time, -plan.getDelay(call)});
  SmallVector<Value> yielded;
  for (auto [value, lag] : carried) {
    auto argument = dyn_cast<BlockArgument>(value);
    yielded.push_back(argument ? get(plan.getYielded(argument), {time, -lag}) : get(value, {time, 1 - lag}));
  }
  YieldOp::create(builder, loop.getLoc(), yielded);
}

int64_t Overlap::run() {
  int64_t added = 0;
  for (Operation *op : plan.getInvariants())
    op->moveBefore(loop);
  for (auto [root, places] : plan.getRings()) {
    auto slot = cast<SlotOp>(root.getDefiningOp());
    int64_t before = slot.getBytes();
    slot.setRing(places);
    added += slot.getBytes() - before;
  }
  if (plan.getDepth() == 1 && loop.getTripCount() > 0) {
    loop.removeInFlightAttr();
    for (LaneOpInterface call : plan.getCalls())
      call->removeAttr("stage");
    return added;
  }
  int64_t end = to + plan.getDepth() - 1;
  if (loop.getTripCount() >= plan.getDepth()) {
    buildTimes(from, from + plan.getDepth() - 1);
    buildLoop();
    buildTimes(to, end);
  } else {
    buildTimes(from, end);
  }
  for (auto [argument, result] : llvm::zip_equal(loop.getCarried(), loop.getResults()))
    if (!result.use_empty())
      result.replaceAllUsesWith(get(argument, {{}, to}));
  loop.erase();
  for (Operation *op : plan.getInvariants())
    if (op->use_empty()) // No iteration, or nothing ever touched it.
      op->erase();
  return added;
}

namespace {
struct PipelineLoops : sched::impl::SchedPipelineLoopsBase<PipelineLoops> {
  void runOnOperation() override {
    SmallVector<LoopOp> loops;
    getOperation().walk<WalkOrder::PreOrder>([&](LoopOp loop) {
      if (loop.getInFlight())
        loops.push_back(loop);
    });
    bool changesCollectives = false;
    // Outer loops come first: one with a loop inside is refused, also where that loop would become straight-line code.
    for (LoopOp loop : loops) {
      FailureOr<PipelinePlan> plan = PipelinePlan::get(loop);
      if (failed(plan))
        return signalPassFailure();
      loopCount += plan->getDepth() > 1;
      changesCollectives |= llvm::any_of(plan->getCalls(), llvm::IsaPred<CollectiveOp>);
      byteCount += overlap(*plan);
    }
    // Copies of a collective are collectives of their own, and the overlapped order is the one that ranks agree on.
    if (changesCollectives)
      numberCollectives(getOperation());
  }

  /// Returns the bytes that rings add, and says them.
  int64_t overlap(const PipelinePlan &plan) {
    LoopOp loop = plan.getLoop();
    Location loc = loop.getLoc();
    int64_t iterations = loop.getTripCount(), depth = plan.getDepth(), before = 0;
    for (auto [root, places] : plan.getRings())
      before += root.getDefiningOp<SlotOp>().getBytes();
    int64_t added = Overlap(plan).run();
    remark::passed(loc, remark::RemarkOpts::name("overlap").category("sched-pipeline-loops"))
        << remark::metric("Iterations", iterations) << remark::metric("InFlight", depth)
        << remark::metric("BytesBefore", before) << remark::metric("BytesAfter", before + added);
    return added;
  }
};
} // namespace
