//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Analysis/Timeline.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
/// Walks a program as the host does and keeps, for each SSA value, what it stands for at this point.
class Expansion {
public:
  Expansion(Timeline &timeline, const Timeline::Options &options) : nodes(timeline.nodes), options(options) {}

  LogicalResult run(Block &block);

private:
  LogicalResult runLoop(LoopOp loop);
  LogicalResult runLaneOp(LaneOpInterface op);
  LogicalResult runView(ViewOp view);
  LogicalResult runJoin(JoinOp join);
  LogicalResult runUpdate(UpdateOp update);
  LogicalResult runHostOp(Operation *op, ValueRange waits, ValueRange values);

  /// Counts a call, or an iteration of a loop.
  LogicalResult addStep(Operation *op);
  /// The node that `op` is in this iteration.
  FailureOr<Node *> addNode(Operation *op);
  LogicalResult addWaits(Node &node, ValueRange waits);
  LogicalResult addRead(Node &node, Value value, bool isTable);
  void setPlace(Value root, int64_t bytes);
  void copy(Value to, Value from);

  std::vector<Node> &nodes;
  const Timeline::Options &options;
  int64_t steps = 0;
  SmallVector<int64_t, 2> iteration;
  llvm::DenseMap<Value, ReadRange> contents; ///< Of places and values.
  llvm::DenseMap<Value, int64_t> events;     ///< Nodes; -1 is complete.
  llvm::DenseMap<Value, int64_t> counters;   ///< Of the loops around.
};
} // namespace

static LogicalResult emitUnknown(Operation *op, Value value) {
  InFlightDiagnostic diag = op->emitOpError("uses a value whose writer cannot be found");
  diag.attachNote(value.getLoc()) << "the value is defined here";
  return diag;
}

LogicalResult Expansion::addStep(Operation *op) {
  if (++steps <= options.maxSteps)
    return success();
  return op->emitOpError() << "comes after " << options.maxSteps
                           << " calls and iterations, and no more can be checked: "
                           << "the loops of the program run for too many iterations";
}

FailureOr<Node *> Expansion::addNode(Operation *op) {
  if (failed(addStep(op)))
    return failure();
  Node node;
  node.op = op;
  node.iteration = iteration;
  nodes.push_back(std::move(node));
  return &nodes.back();
}

LogicalResult Expansion::addWaits(Node &node, ValueRange waits) {
  for (Value event : waits) {
    auto known = events.find(event);
    if (known == events.end())
      return emitUnknown(node.op, event);
    node.events.push_back(known->second);
    if (known->second >= 0)
      node.waits.push_back(known->second);
  }
  llvm::sort(node.waits);
  node.waits.erase(llvm::unique(node.waits), node.waits.end());
  return success();
}

LogicalResult Expansion::addRead(Node &node, Value value, bool isTable) {
  auto known = contents.find(value);
  if (known == contents.end())
    return emitUnknown(node.op, value);
  node.reads.push_back(known->second);
  node.reads.back().isTable = isTable;
  return success();
}

void Expansion::setPlace(Value root, int64_t bytes) {
  ReadRange &range = contents[root];
  static_cast<ByteRange &>(range) = {root, 0, bytes};
  range.pieces.assign(1, {0, bytes, Piece::initial});
}

void Expansion::copy(Value to, Value from) {
  if (isa<EventType>(from.getType())) {
    auto known = events.find(from);
    if (known == events.end())
      return; // Who uses it says so.
    int64_t event = known->second;
    events[to] = event;
    return;
  }
  auto known = contents.find(from);
  if (known == contents.end())
    return; // Who uses it says so.
  ReadRange range = known->second;
  contents[to] = std::move(range);
}

LogicalResult Expansion::runView(ViewOp view) {
  auto known = contents.find(view.getSource());
  if (known == contents.end())
    return emitUnknown(view, view.getSource());
  const ReadRange &source = known->second;
  int64_t counter = 0;
  if (Value index = view.getIndex()) {
    auto found = counters.find(index);
    if (found == counters.end())
      return emitUnknown(view, index);
    counter = found->second;
  }
  int64_t begin = source.begin + view.getOffset() + static_cast<int64_t>(view.getStride()) * counter;
  if (std::optional<int64_t> ring = view.getRing()) {
    auto slot = view.getSource().getDefiningOp<SlotOp>(); // V2
    int64_t depth = slot.getRing();
    int64_t place = ((counter % depth + *ring % depth) % depth + depth) % depth;
    begin += place * slot.getStrideBytes();
  }
  ReadRange range;
  static_cast<ByteRange &>(range) = {source.root, begin, begin + getBytes(view.getType())};
  // The pieces that it meets, cut to it.
  auto *piece = llvm::partition_point(source.pieces, [&](const Piece &piece) { return piece.end <= begin; });
  for (; piece != source.pieces.end() && piece->begin < range.end; ++piece)
    range.pieces.push_back({std::max(piece->begin, begin), std::min(piece->end, range.end), piece->writer});
  contents[view.getResult()] = std::move(range);
  return success();
}

LogicalResult Expansion::runJoin(JoinOp join) {
  auto place = contents.find(join.getPlace());
  if (place == contents.end())
    return emitUnknown(join, join.getPlace());
  ReadRange range;
  static_cast<ByteRange &>(range) = place->second;
  for (Value part : join.getParts()) {
    auto known = contents.find(part);
    if (known == contents.end())
      return emitUnknown(join, part);
    llvm::append_range(range.pieces, known->second.pieces);
  }
  llvm::sort(range.pieces, [](const Piece &a, const Piece &b) { return a.begin < b.begin; });
  contents[join.getResult()] = std::move(range);
  return success();
}

LogicalResult Expansion::runUpdate(UpdateOp update) {
  for (Value operand : update->getOperands())
    if (!contents.contains(operand))
      return emitUnknown(update, operand);
  const ReadRange &source = contents.at(update.getSource()), &part = contents.at(update.getPart());
  if (part.begin < source.begin || part.end > source.end) // U2
    return update.emitOpError() << "U2: has a part at bytes " << part.begin << " ... " << part.end
                                << ", and its source lies at " << source.begin << " ... " << source.end;
  ReadRange range;
  static_cast<ByteRange &>(range) = source;
  // What lies before the part, the part, and what lies behind it. Neighbours of one writer are one piece.
  auto add = [&](Piece piece) {
    if (piece.begin >= piece.end)
      return;
    if (!range.pieces.empty() && range.pieces.back().end == piece.begin && range.pieces.back().writer == piece.writer)
      range.pieces.back().end = piece.end;
    else
      range.pieces.push_back(piece);
  };
  for (const Piece &piece : source.pieces)
    add({piece.begin, std::min(piece.end, part.begin), piece.writer});
  for (const Piece &piece : part.pieces)
    add(piece);
  for (const Piece &piece : source.pieces)
    add({std::max(piece.begin, part.end), piece.end, piece.writer});
  contents[update.getResult()] = std::move(range);
  return success();
}

LogicalResult Expansion::runLaneOp(LaneOpInterface op) {
  FailureOr<Node *> added = addNode(op);
  if (failed(added))
    return failure();
  Node &node = **added;
  int64_t index = nodes.size() - 1;
  node.lane = op.getLane();
  if (failed(addWaits(node, op.getWaits())))
    return failure();
  for (Value read : op.getReads())
    if (failed(addRead(node, read, /*isTable=*/false)))
      return failure();
  for (Value table : op.getTables())
    if (failed(addRead(node, table, /*isTable=*/true)))
      return failure();
  for (Value write : op.getWrites()) {
    auto known = contents.find(write);
    if (known == contents.end())
      return emitUnknown(op, write);
    node.writes.push_back(known->second);
  }
  events[op.getEvent()] = index;
  for (auto [value, write] : llvm::zip_equal(op.getValues(), node.writes)) {
    ReadRange range;
    static_cast<ByteRange &>(range) = write;
    range.pieces.push_back({write.begin, write.end, index});
    contents[value] = std::move(range);
  }
  return success();
}

LogicalResult Expansion::runHostOp(Operation *op, ValueRange waits, ValueRange values) {
  FailureOr<Node *> added = addNode(op);
  if (failed(added) || failed(addWaits(**added, waits)))
    return failure();
  for (Value value : values)
    if (failed(addRead(**added, value, /*isTable=*/false)))
      return failure();
  return success();
}

LogicalResult Expansion::runLoop(LoopOp loop) {
  for (auto [argument, init] : llvm::zip_equal(loop.getCarried(), loop.getInits()))
    copy(argument, init);
  int64_t count = options.prefix ? getPrefixTripCount(loop) : loop.getTripCount();
  int64_t from = loop.getFrom();
  OperandRange yielded = loop.getYield().getValues();
  for (int64_t trip = 0; trip < count; ++trip) {
    iteration.push_back(from + trip);
    counters[loop.getCounter()] = from + trip;
    if (failed(addStep(loop)) || failed(run(loop.getBody().front())))
      return failure();
    iteration.pop_back();
    // Through results of the loop, since the yield may permute the arguments.
    for (auto [result, value] : llvm::zip_equal(loop.getResults(), yielded))
      copy(result, value);
    for (auto [argument, result] : llvm::zip_equal(loop.getCarried(), loop.getResults()))
      copy(argument, result);
  }
  if (count == 0)
    for (auto [result, init] : llvm::zip_equal(loop.getResults(), loop.getInits()))
      copy(result, init);
  return success();
}

LogicalResult Expansion::run(Block &block) {
  for (Operation &op : block) {
    LogicalResult result = success();
    if (auto lane = dyn_cast<LaneOpInterface>(op))
      result = runLaneOp(lane);
    else if (auto view = dyn_cast<ViewOp>(op))
      result = runView(view);
    else if (auto join = dyn_cast<JoinOp>(op))
      result = runJoin(join);
    else if (auto update = dyn_cast<UpdateOp>(op))
      result = runUpdate(update);
    else if (auto loop = dyn_cast<LoopOp>(op))
      result = runLoop(loop);
    else if (auto slot = dyn_cast<SlotOp>(op))
      setPlace(slot, slot.getBytes());
    else if (isa<BufferOp, ConstantOp, TableOp>(op))
      setPlace(op.getResult(0), getBytes(op.getResult(0).getType()));
    else if (auto none = dyn_cast<NoEventOp>(op))
      events[none] = -1;
    else if (auto fence = dyn_cast<FenceOp>(op))
      result = runHostOp(fence, fence.getEvents(), {});
    else if (auto ret = dyn_cast<ReturnOp>(op))
      result = runHostOp(ret, {}, ret.getValues());
    if (failed(result))
      return failure();
  }
  return success();
}

FailureOr<Timeline> Timeline::get(ProgramOp program, Options options) {
  Timeline timeline;
  if (failed(Expansion(timeline, options).run(program.getBody().front())))
    return failure();
  return timeline;
}
