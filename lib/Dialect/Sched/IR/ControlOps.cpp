//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "plateau/Dialect/Sched/IR/Place.h"
#include "plateau/Dialect/Sched/IR/Sched.h"

using namespace mlir;
using namespace mlir::plateau::sched;

LogicalResult ProgramOp::verifyRegions() {
  llvm::SmallDenseSet<Lane> lanes;
  llvm::SmallDenseSet<Space> arenas;
  llvm::SmallDenseSet<int64_t> numbers;
  if (getBody().front().empty() || !isa<ReturnOp>(getBody().front().back()))
    return emitOpError("must end with sched.return");
  for (Operation &op : getBody().front()) {
    if (auto lane = dyn_cast<LaneOp>(op); lane && !lanes.insert(lane.getLane()).second) // P1
      return lane.emitOpError("P1: declares a lane a second time");
    if (auto arena = dyn_cast<ArenaOp>(op); arena && !arenas.insert(arena.getSpace()).second) // P2
      return arena.emitOpError("P2: declares an arena a second time");
    if (auto buffer = dyn_cast<BufferOp>(op); buffer && !numbers.insert(buffer.getNumber()).second) // P3
      return buffer.emitOpError() << "P3: has number " << buffer.getNumber() << ", as another buffer has";
  }
  WalkResult foreign = walk([&](Operation *op) {
    if (op == getOperation() || isa<SchedDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError("P4: stands in a program, and no checker knows what it does");
    return WalkResult::interrupt();
  });
  if (foreign.wasInterrupted())
    return failure();
  WalkResult walked = walk([&](LaneOpInterface op) {
    if (lanes.contains(op.getLane()))
      return WalkResult::advance();
    op->emitOpError() << "P1: is on lane " << stringifyLane(op.getLane()) << ", which the program does not declare";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult FenceOp::verify() {
  if (!(*this)->getParentOfType<ProgramOp>())
    return emitOpError("F1: stands in no program");
  if ((*this)->getParentOfType<LoopOp>()) // F1
    return emitOpError("F1: stands in a loop: the host would wait in every iteration");
  if (getEvents().empty()) // F2
    return emitOpError("F2: waits for no event");
  return success();
}

YieldOp LoopOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

ParseResult LoopOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::Argument counter;
  counter.type = builder.getIndexType();
  int64_t from, to;
  if (parser.parseArgument(counter) || parser.parseEqual() || parser.parseInteger(from) || parser.parseKeyword("to") ||
      parser.parseInteger(to))
    return failure();
  state.addAttribute("from", builder.getI64IntegerAttr(from));
  state.addAttribute("to", builder.getI64IntegerAttr(to));
  if (succeeded(parser.parseOptionalKeyword("in_flight"))) {
    int64_t inFlight;
    if (parser.parseLParen() || parser.parseInteger(inFlight) || parser.parseRParen())
      return failure();
    state.addAttribute("inFlight", builder.getI64IntegerAttr(inFlight));
  }
  bool hasUntil = succeeded(parser.parseOptionalKeyword("until"));
  if (hasUntil) {
    OpAsmParser::UnresolvedOperand plan;
    Type type;
    int64_t behind;
    if (parser.parseLParen() || parser.parseOperand(plan) || parser.parseColonType(type) || parser.parseComma() ||
        parser.parseInteger(behind) || parser.parseRParen() || parser.resolveOperand(plan, type, state.operands))
      return failure();
    state.addAttribute("untilBehind", builder.getI64IntegerAttr(behind));
  }
  SmallVector<OpAsmParser::Argument> arguments = {counter};
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  SmallVector<Type> types;
  if (succeeded(parser.parseOptionalKeyword("iter"))) {
    SmallVector<OpAsmParser::Argument> carried;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseAssignmentList(carried, inits) || parser.parseColonTypeList(types))
      return failure();
    if (types.size() != carried.size())
      return parser.emitError(loc) << "has " << carried.size() << " carried values and " << types.size() << " types";
    for (auto [argument, type] : llvm::zip_equal(carried, types)) {
      argument.type = type;
      arguments.push_back(argument);
    }
    if (parser.resolveOperands(inits, types, loc, state.operands))
      return failure();
  }
  state.addTypes(types);
  state.addAttribute(getOperandSegmentSizeAttr(),
                     builder.getDenseI32ArrayAttr({hasUntil, static_cast<int32_t>(inits.size())}));
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes) || parser.parseRegion(*state.addRegion(), arguments))
    return failure();
  ensureTerminator(*state.regions.front(), builder, state.location);
  return success();
}

void LoopOp::print(OpAsmPrinter &printer) {
  printer << " " << getCounter() << " = " << getFrom() << " to " << getTo();
  if (std::optional<int64_t> inFlight = getInFlight())
    printer << " in_flight(" << *inFlight << ")";
  if (Value plan = getUntil())
    printer << " until(" << plan << " : " << plan.getType() << ", " << getUntilBehind().value_or(1) << ")";
  if (!getInits().empty()) {
    printer << " iter(";
    llvm::interleaveComma(llvm::zip_equal(getCarried(), getInits()), printer,
                          [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
    printer << ") : ";
    llvm::interleaveComma(getInits().getTypes(), printer);
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"from", "to", "inFlight", "untilBehind", getOperandSegmentSizeAttr()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/!getInits().empty());
}

LogicalResult LoopOp::verify() {
  int64_t from = getFrom(), to = getTo();
  if (from < 0 || from > to) // L1
    return emitOpError() << "L1: goes from " << from << " to " << to;
  if (getBody().getNumArguments() != getInits().size() + 1 || !getCounter().getType().isIndex()) // L2
    return emitOpError() << "L2: has " << getInits().size()
                         << " inits, so its body has a counter and as many arguments";
  return success();
}

/// L5: leaving the loop behind the plan's last iteration leaves out nothing that does something.
static LogicalResult verifyUntil(LoopOp loop) {
  Value plan = loop.getUntil();
  if (static_cast<bool>(plan) != loop.getUntilBehind().has_value())
    return loop.emitOpError("L5: names a plan and how far behind its last iteration to end, or neither");
  if (!plan)
    return success();
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), loop.getYield().getValues()))
    if (isa<EventType>(value.getType()) && isa<BlockArgument>(value) && !result.use_empty())
      return loop.emitOpError() << "L5: ends with the iterations of a plan, and event #" << result.getResultNumber()
                                << ", of an earlier iteration than the last, is used behind it";
  for (Operation &op : loop.getBody().front())
    if (auto call = dyn_cast<LaneOpInterface>(op);
        isa<LoopOp>(op) || (call && !llvm::is_contained(call.getTables(), plan)))
      return op.emitOpError(
          "L5: stands in a loop that ends with the iterations of a plan, and is no call by that plan");
  return success();
}

LogicalResult LoopOp::verifyRegions() {
  YieldOp yield = getYield();
  if (yield.getValues().size() != getInits().size()) // L2
    return emitOpError() << "L2: carries " << getInits().size() << " values and yields " << yield.getValues().size();
  for (auto [index, init] : llvm::enumerate(getInits())) {
    Type type = init.getType();
    if (getCarried()[index].getType() != type || yield.getValues()[index].getType() != type ||
        getResult(index).getType() != type) // L2
      return emitOpError() << "L2: carries value #" << index << " as " << type << ", " << getCarried()[index].getType()
                           << ", " << yield.getValues()[index].getType() << " and " << getResult(index).getType();
    if (isa<EventType>(type) || getTripCount() == 0)
      continue;
    FailureOr<Place> first = Place::get(init), carried = Place::get(getCarried()[index]);
    if (failed(first) || failed(carried))
      return emitOpError() << "L3: carried value #" << index << " lies at no place that can be found";
    // What the argument's place is in the first iteration.
    Value counter = getCounter();
    Place expected = *carried;
    for (Place::Term &term : expected.terms)
      if (term.index == counter)
        expected.offsetBytes += term.strideBytes * static_cast<int64_t>(getFrom());
    llvm::erase_if(expected.terms, [&](const Place::Term &term) { return term.index == counter; });
    auto slot = expected.root.getDefiningOp<SlotOp>();
    int64_t depth = slot ? slot.getRing() : 1;
    auto turn = [&](int64_t ring) { return ((ring % depth) + depth) % depth; };
    if (expected.ringIndex == counter) {
      expected.ring += getFrom();
      expected.ringIndex = {};
    }
    expected.ring = turn(expected.ring);
    Place start = *first;
    if (!start.ringIndex)
      start.ring = turn(start.ring);
    if (!(expected == start)) // L3
      return emitOpError() << "L3: carried value #" << index
                           << " does not start where the first iteration looks for it: a value is updated in place, or "
                              "moves one place round a ring";
  }
  if (failed(verifyUntil(*this))) // L5
    return failure();
  // L4
  int64_t last = -1;
  for (Operation &op : getBody().front())
    if (auto lane = dyn_cast<LaneOpInterface>(op))
      if (std::optional<int64_t> stage = lane.getStageNumber()) {
        if (*stage < last)
          return op.emitOpError() << "L4: is in stage " << *stage << " behind one of stage " << last;
        last = *stage;
      }
  return success();
}
