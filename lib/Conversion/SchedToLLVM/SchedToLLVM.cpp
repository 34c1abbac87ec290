//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"
#include "SlotLifetimes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "plateau/Conversion/Passes.h"
#include "plateau/Dialect/Sched/IR/Place.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "plateau/runtime.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::plateau {
#define GEN_PASS_DEF_CONVERTSCHEDTOLLVM
#include "plateau/Conversion/Passes.h.inc"
} // namespace mlir::plateau

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::sched;

namespace {
/// Lowers one program.
class ProgramLowering {
public:
  ProgramLowering(ProgramOp program, bool usesPool)
      : program(program), usesPool(usesPool), builder(program.getContext()),
        calls(program->getParentOfType<ModuleOp>(), builder) {}

  LogicalResult run();

private:
  LogicalResult lowerBlock(Block &block);
  LogicalResult lower(Operation *op);
  LogicalResult lowerLoop(LoopOp op);
  LogicalResult lowerCall(LaneOpInterface op, StringRef callee, ArrayAttr arguments);
  /// The value of an argument; appends to `values`.
  LogicalResult addArgument(LaneOpInterface op, Attribute argument, SmallVectorImpl<Value> &values);

  Value getLane(Lane lane) { return lanes.lookup(lane); }
  Value getGroup(Operation *op, FlatSymbolRefAttr symbol, DenseI64ArrayAttr axes);
  /// An event that is complete, for loops that carry one: the runtime has none that is null.
  Value getCompleteEvent();
  /// Where slot, buffer, constant or table begins.
  Value getRoot(Value root);
  Value getAddress(Value value);
  /// The counter of a loop times a number.
  Value multiply(Value counter, int64_t factor);
  Value add(Value pointer, Value bytes);
  /// Row of a table that a cell names.
  Value getCell(LaneOpInterface op, CellAttr cell);
  Value pointerArray(ValueRange pointers);

  // With a pool.
  void allocate(SlotOp slot);
  void release(SlotOp slot);

  ProgramOp program;
  bool usesPool;
  OpBuilder builder;
  RuntimeCalls calls;
  Location loc = program.getLoc();
  /// What runs once, before everything else: handles, and memory on the stack.
  Operation *prologue = nullptr;
  llvm::SmallDenseMap<Lane, Value> lanes;
  llvm::SmallDenseMap<Space, Value> arenas;
  llvm::DenseMap<std::pair<Attribute, Attribute>, Value> groups;
  llvm::DenseMap<Value, Value> roots; ///< Of buffers, constants, tables, and slots from a pool.
  llvm::DenseMap<Value, Value> events;
  llvm::DenseMap<Value, Value> counters; ///< Of loops, as i64.
  Value buffers;                         ///< The array of pointers that the function is given.
  Value completeEvent;                   ///< Null until something asks for it.
  std::optional<SlotLifetimes> lifetimes;
};
} // namespace

Value ProgramLowering::multiply(Value counter, int64_t factor) {
  return LLVM::MulOp::create(builder, loc, counters.at(counter), calls.i64(loc, factor));
}

Value ProgramLowering::add(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(builder, loc, calls.getPointerType(), builder.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

Value ProgramLowering::getRoot(Value root) {
  if (auto it = roots.find(root); it != roots.end())
    return it->second;
  Operation *op = root.getDefiningOp();
  if (auto slot = dyn_cast<SlotOp>(op))
    return calls.offset(loc, arenas.lookup(slot.getSpace()), slot.getOffset().value_or(0));
  if (auto constant = dyn_cast<ConstantOp>(op))
    return calls.data(loc, cast<DenseElementsAttr>(constant.getElements()));
  return calls.data(loc, cast<DenseElementsAttr>(cast<TableOp>(op).getElements()));
}

Value ProgramLowering::getAddress(Value value) {
  Place place = *Place::get(value);
  Value pointer = getRoot(place.root);
  auto slot = place.root.getDefiningOp<SlotOp>();
  if (slot && slot.getRing() > 1) {
    int64_t depth = slot.getRing(), stride = slot.getStrideBytes(), turn = (place.ring % depth + depth) % depth;
    if (place.ringIndex) {
      Value number = LLVM::AddOp::create(builder, loc, counters.at(place.ringIndex), calls.i64(loc, turn));
      number = LLVM::URemOp::create(builder, loc, number, calls.i64(loc, depth));
      pointer = add(pointer, LLVM::MulOp::create(builder, loc, number, calls.i64(loc, stride)));
    } else {
      pointer = calls.offset(loc, pointer, turn * stride);
    }
  }
  for (const Place::Term &term : place.terms)
    pointer = add(pointer, multiply(term.index, term.strideBytes));
  return calls.offset(loc, pointer, place.offsetBytes);
}

Value ProgramLowering::getGroup(Operation *op, FlatSymbolRefAttr symbol, DenseI64ArrayAttr axes) {
  Value &group = groups[{symbol, axes}];
  if (!group) {
    FailureOr<Grid> found = Grid::lookup(op, symbol);
    if (failed(found))
      return {}; // Said by who asks.
    Grid grid = *found;
    int64_t bits = 0;
    for (int64_t axis : axes.asArrayRef())
      bits |= int64_t(1) << axis;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(prologue);
    group = calls.call(
        loc, "plr_get_group",
        {calls.context, calls.array(loc, grid.shape), calls.i64(loc, grid.shape.size()), calls.i64(loc, bits)},
        calls.getPointerType());
  }
  return group;
}

Value ProgramLowering::getCompleteEvent() {
  if (completeEvent)
    return completeEvent;
  auto all = program.getBody().getOps<LaneOp>();
  if (all.empty())
    return completeEvent = calls.null(loc); // Nothing can wait for it.
  Value lane = getLane((*all.begin()).getLane());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(lane.getDefiningOp()); // Nothing is enqueued yet, and lanes are idle between steps.
  return completeEvent = calls.call(loc, "plr_record", lane, calls.getPointerType());
}

Value ProgramLowering::pointerArray(ValueRange pointers) {
  Value array = [&] {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(prologue);
    return LLVM::AllocaOp::create(builder, loc, calls.getPointerType(), calls.getPointerType(),
                                  calls.i64(loc, pointers.size()));
  }();
  for (auto [index, value] : llvm::enumerate(pointers))
    LLVM::StoreOp::create(builder, loc, value,
                          LLVM::GEPOp::create(builder, loc, calls.getPointerType(), calls.getPointerType(), array,
                                              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)}));
  return array;
}

Value ProgramLowering::getCell(LaneOpInterface op, CellAttr cell) {
  Value table = op.getTables()[cell.getTable()];
  int64_t columns = cast<MemRefType>(table.getType()).getDimSize(1);
  Value pointer = calls.offset(loc, getAddress(table), (cell.getRow() * columns + cell.getColumn()) * 8);
  if (auto loop = op->getParentOfType<LoopOp>())
    pointer = add(pointer, multiply(loop.getCounter(), columns * 8));
  return LLVM::LoadOp::create(builder, loc, builder.getI64Type(), pointer);
}

LogicalResult ProgramLowering::addArgument(LaneOpInterface op, Attribute argument, SmallVectorImpl<Value> &values) {
  Value value = llvm::TypeSwitch<Attribute, Value>(argument)
                    .Case<IntegerAttr, FloatAttr>([&](auto number) { return calls.number(loc, number); })
                    .Case<ReadAttr>([&](auto read) { return getAddress(op.getReads()[read.getIndex()]); })
                    .Case<WriteAttr>([&](auto write) -> Value {
                      Value place = op.getWrites()[write.getIndex()];
                      auto slot = place.getDefiningOp<SlotOp>();
                      return usesPool && slot && slot.getScratch() ? calls.null(loc) : getAddress(place);
                    })
                    .Case<BytesAttr>([&](auto bytes) {
                      Value place = op.getWrites()[bytes.getIndex()];
                      return calls.i64(loc, usesPool ? int64_t(PLR_FROM_POOL) : getBytes(place.getType()));
                    })
                    .Case<TableAddressAttr>([&](auto table) { return getAddress(op.getTables()[table.getIndex()]); })
                    .Case<RowsAttr>([&](auto rows) {
                      Value iteration = calls.i64(loc, 0);
                      if (auto number = dyn_cast_or_null<IntegerAttr>(rows.getIteration()))
                        iteration = calls.number(loc, number);
                      else if (auto cell = dyn_cast_or_null<CellAttr>(rows.getIteration()))
                        iteration = getCell(op, cell);
                      return calls.call(loc, "plr_plan_rows", {getAddress(op.getTables()[rows.getTable()]), iteration},
                                        builder.getI64Type());
                    })
                    .Case<CellAttr>([&](auto cell) { return getCell(op, cell); })
                    .Case<NullAttr>([&](auto) { return calls.null(loc); })
                    .Case<GroupArgumentAttr>([&](auto) {
                      auto collective = cast<CollectiveOp>(op);
                      return getGroup(op, collective.getGridAttr(), collective.getAxesAttr());
                    })
                    .Case<GroupRankAttr>([&](auto rank) -> Value {
                      Value group = getGroup(op, rank.getGrid(), rank.getAxes());
                      if (!group)
                        return {};
                      Value place = calls.call(loc, "plr_group_rank", group, builder.getI32Type());
                      return LLVM::SExtOp::create(builder, loc, builder.getI64Type(), place);
                    })
                    .Case<DenseI64ArrayAttr>([&](auto array) { return calls.array(loc, array.asArrayRef()); })
                    .Case<StructAttr>([&](auto fields) -> Value {
                      if (!llvm::all_of(fields.getFields(), llvm::IsaPred<IntegerAttr, FloatAttr>))
                        return {}; // Said below.
                      return calls.structure(loc, fields.getFields());
                    })
                    .Case<FlatSymbolRefAttr>([&](auto symbol) {
                      return LLVM::AddressOfOp::create(builder, loc, calls.getPointerType(), symbol).getResult();
                    })
                    .Case<PointersAttr>([&](auto pointers) -> Value {
                      SmallVector<Value> elements;
                      for (Attribute element : pointers.getElements())
                        if (failed(addArgument(op, element, elements)))
                          return {};
                      return pointerArray(elements);
                    })
                    .Default([&](Attribute) { return Value(); });
  if (!value)
    return op->emitOpError() << "has an argument that is not lowered: " << argument;
  values.push_back(value);
  return success();
}

/// Whether the op reads what it overwrites there.
static bool isUpdated(LaneOpInterface op, Value place) {
  Place written = *Place::get(place);
  return llvm::any_of(op.getReads(), [&](Value read) { return *Place::get(read) == written; });
}

/// Whether the symbol can be called with values of these types, or is still free.
static LogicalResult verifyCallee(LaneOpInterface op, StringRef callee, ValueRange values, Type result) {
  if (callee.empty())
    return op->emitOpError("calls nothing: its callee has no name");
  Operation *known = SymbolTable::lookupSymbolIn(op->getParentOfType<ModuleOp>(), callee);
  if (!known)
    return success();
  auto function = dyn_cast<LLVM::LLVMFuncOp>(known);
  if (!function)
    return op->emitOpError() << "calls @" << callee << ", which is no function";
  LLVM::LLVMFunctionType type = function.getFunctionType();
  if (type.getReturnType() != result || !llvm::equal(type.getParams(), values.getTypes()))
    return op->emitOpError() << "calls @" << callee << " with other types of arguments or results than another call";
  return success();
}

LogicalResult ProgramLowering::lowerCall(LaneOpInterface op, StringRef callee, ArrayAttr arguments) {
  Value lane = getLane(op.getLane());
  for (Value wait : op.getWaits())
    calls.call(loc, "plr_wait", {lane, events.at(wait)});
  Value tag = calls.tag(loc, op.getTag());
  bool makesPlan = usesPool && callee == "plr_plan_fill";
  if (makesPlan) {
    callee = "plr_plan_create"; // Which takes memory by itself, and waits until the rows are known.
    arguments = builder.getArrayAttr(arguments.getValue().take_front(3));
  }
  if (!usesPool)
    for (Value place : op.getWrites())
      if (!isUpdated(op, place))
        calls.call(loc, "plr_writes", {lane, getAddress(place), calls.i64(loc, getBytes(place.getType()))});
  SmallVector<Value> values = {lane, tag};
  for (Attribute argument : arguments)
    if (failed(addArgument(op, argument, values)))
      return failure();
  Type result = makesPlan ? Type(calls.getPointerType()) : Type(builder.getI32Type());
  if (failed(verifyCallee(op, callee, values, result)))
    return failure();
  Value called = calls.call(loc, callee, values, result);
  if (makesPlan)
    roots[op.getWrites()[0]] = called;
  // The call that makes a plan waits by itself, and fences have nothing left to do.
  auto isFence = [](Operation *user) { return isa<FenceOp>(user); };
  if (!op.getEvent().use_empty() && !(makesPlan && llvm::all_of(op.getEvent().getUsers(), isFence)))
    events[op.getEvent()] = calls.call(loc, "plr_record", lane, calls.getPointerType());
  return success();
}

LogicalResult ProgramLowering::lowerLoop(LoopOp op) {
  SmallVector<Value> inits;
  SmallVector<unsigned> carriedEvents;
  for (auto [index, init] : llvm::enumerate(op.getInits()))
    if (isa<EventType>(init.getType())) {
      inits.push_back(events.at(init));
      carriedEvents.push_back(index);
    }
  Value from = calls.i64(loc, op.getFrom()), end = calls.i64(loc, op.getTo());
  if (Value plan = op.getUntil()) {
    Value iterations = calls.call(loc, "plr_plan_iterations", getAddress(plan), builder.getI64Type());
    end = LLVM::SMinOp::create(builder, loc, end,
                               LLVM::AddOp::create(builder, loc, iterations, calls.i64(loc, *op.getUntilBehind())));
  }
  auto loop = scf::ForOp::create(builder, loc, from, end, calls.i64(loc, 1), inits);
  counters[op.getCounter()] = loop.getInductionVar();
  for (auto [number, index] : llvm::enumerate(carriedEvents)) {
    events[op.getCarried()[index]] = loop.getRegionIterArg(number);
    events[op.getResult(index)] = loop.getResult(number);
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  if (failed(lowerBlock(op.getBody().front())))
    return failure();
  if (!inits.empty()) {
    YieldOp yield = op.getYield();
    scf::YieldOp::create(builder, loc, llvm::map_to_vector(carriedEvents, [&](unsigned index) {
                           return events.at(yield.getValues()[index]);
                         }));
  }
  return success();
}

void ProgramLowering::allocate(SlotOp slot) {
  if (slot.getScratch() || lifetimes->isPlan(slot))
    return;
  Value bytes = calls.i64(loc, getBytes(slot.getType()));
  if (Value plan = slot.getRows()) {
    MemRefType type = slot.getType();
    int64_t rowBytes = getBytes(type) / std::max<int64_t>(type.getDimSize(0), 1);
    Value rows = calls.call(loc, "plr_plan_rows", {getAddress(plan), calls.i64(loc, 0)}, builder.getI64Type());
    bytes = LLVM::MulOp::create(builder, loc, rows, calls.i64(loc, rowBytes));
  }
  roots[slot] = calls.call(
      loc, "plr_allocate",
      {calls.context, calls.i32(loc, static_cast<int64_t>(slot.getSpace())), bytes, calls.tag(loc, slot.getTag())},
      calls.getPointerType());
}

void ProgramLowering::release(SlotOp slot) {
  Value memory = roots.lookup(slot);
  if (!memory)
    return;
  if (lifetimes->isPlan(slot))
    calls.callVoid(loc, "plr_plan_release", memory);
  else
    calls.callVoid(loc, "plr_release", {calls.context, calls.i32(loc, static_cast<int64_t>(slot.getSpace())), memory});
}

LogicalResult ProgramLowering::lowerBlock(Block &block) {
  for (Operation &op : block) {
    loc = op.getLoc();
    if (usesPool)
      for (SlotOp slot : lifetimes->getBegun(&op))
        allocate(slot);
    if (failed(lower(&op)))
      return failure();
    if (usesPool)
      for (SlotOp slot : lifetimes->getEnded(&op))
        release(slot);
  }
  return success();
}

LogicalResult ProgramLowering::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<LaunchOp, CollectiveOp>([&](auto o) { return lowerCall(o, o.getCallee(), o.getArgs()); })
      .Case<CopyOp>([&](CopyOp o) {
        MLIRContext *context = op->getContext();
        return lowerCall(o, "plr_copy",
                         builder.getArrayAttr({WriteAttr::get(context, 0), ReadAttr::get(context, 0),
                                               builder.getI64IntegerAttr(getBytes(o.getWrites()[0].getType()))}));
      })
      .Case<LoopOp>([&](auto o) { return lowerLoop(o); })
      .Case<FenceOp>([&](FenceOp o) {
        if (!usesPool)
          for (Value event : o.getEvents())
            calls.call(loc, "plr_fence", events.at(event));
        return success();
      })
      .Case<NoEventOp>([&](NoEventOp o) {
        events[o.getEvent()] = getCompleteEvent();
        return success();
      })
      .Case<ArenaOp>([&](ArenaOp o) -> LogicalResult {
        if (usesPool)
          return success();
        if (!o.getBytes())
          return o.emitOpError("has no bytes: slots are not planned (sched-plan-arenas)");
        TagAttr tag = TagAttr::get(op->getContext(), "arena", Component::External, Phase::Forward, std::nullopt);
        arenas[o.getSpace()] = calls.call(loc, "plr_arena",
                                          {calls.context, calls.i32(loc, static_cast<int64_t>(o.getSpace())),
                                           calls.i64(loc, *o.getBytes()), calls.tag(loc, tag)},
                                          calls.getPointerType());
        return success();
      })
      .Case<BufferOp>([&](BufferOp o) {
        Value slot = LLVM::GEPOp::create(builder, loc, calls.getPointerType(), calls.getPointerType(), buffers,
                                         ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(o.getNumber())});
        roots[o] = LLVM::LoadOp::create(builder, loc, calls.getPointerType(), slot);
        return success();
      })
      .Case<SlotOp>([&](SlotOp o) -> LogicalResult {
        if (!usesPool && !arenas.contains(o.getSpace()))
          return o.emitOpError() << "lies in the " << stringifySpace(o.getSpace())
                                 << " space, which has no arena before it";
        if (usesPool || o.getOffset())
          return success();
        return o.emitOpError("has no offset: slots are not planned (sched-plan-arenas)");
      })
      .Case<ReturnOp>([&](auto) {
        LLVM::ReturnOp::create(builder, loc, ValueRange());
        return success();
      })
      .Case<ConstantOp, TableOp>([](auto o) -> LogicalResult {
        return isa<DenseElementsAttr>(o.getElements()) ? success()
                                                       : o.emitOpError("is lowered only for dense elements");
      })
      .Case<LaneOp, ViewOp, JoinOp, UpdateOp, YieldOp>([](auto) { return success(); })
      .Default([](Operation *other) { return other->emitOpError("is not lowered: it is no op of a program"); });
}

LogicalResult ProgramLowering::run() {
  ModuleOp module = program->getParentOfType<ModuleOp>();
  builder.setInsertionPointToEnd(module.getBody());
  Type pointerType = calls.getPointerType();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(module.getContext()), {pointerType, pointerType});
  std::string name = program.getSymName().str();
  program.setSymName(name + ".program"); // The name passes to the function.
  auto lowered = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  Block *entry = lowered.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  calls.context = entry->getArgument(0);
  buffers = entry->getArgument(1);
  prologue = LLVM::UndefOp::create(builder, loc, builder.getI64Type()); // Marks the place.
  if (usesPool)
    lifetimes.emplace(program);
  for (auto lane : program.getBody().getOps<LaneOp>())
    lanes[lane.getLane()] = calls.call(
        loc, "plr_get_lane", {calls.context, calls.i32(loc, static_cast<int64_t>(lane.getLane()))}, pointerType);
  if (failed(lowerBlock(program.getBody().front())))
    return failure();
  prologue->erase();
  return success();
}

namespace {
struct SchedToLLVM : plateau::impl::ConvertSchedToLLVMBase<SchedToLLVM> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : llvm::make_early_inc_range(getOperation().getOps<ProgramOp>())) {
      if (failed(ProgramLowering(program, pool).run()))
        return signalPassFailure();
      program.erase();
    }
    for (auto grid : llvm::make_early_inc_range(getOperation().getOps<shard::GridOp>()))
      grid.erase(); // The calls have what they need of it.
  }
};
} // namespace
