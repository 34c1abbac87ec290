//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/StepCalls.h"
#include "plateau/Run/Error.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;
using namespace mlir::plateau::sched;

llvm::StringRef run::getCallee(Operation *op) {
  return llvm::TypeSwitch<Operation *, llvm::StringRef>(op)
      .Case<LaunchOp, CollectiveOp>([](auto call) { return call.getCallee(); })
      .Case<CopyOp>([](auto) { return "plr_copy"; })
      .Default([](auto) { return ""; });
}

FailureOr<StepCalls> StepCalls::get(ProgramOp program) {
  FailureOr<Timeline> timeline = Timeline::get(program);
  if (failed(timeline))
    return failure();
  StepCalls calls;
  calls.timeline = std::move(*timeline);
  calls.occupancy.emplace(program, calls.timeline);
  for (auto [node, info] : llvm::enumerate(calls.timeline.nodes)) {
    calls.numbers.push_back(info.lane ? static_cast<int64_t>(calls.calls.size()) : -1);
    if (!info.lane)
      continue;
    calls.calls.push_back(node);
    SmallVector<int64_t, 8> writers;
    for (const ReadRange &read : info.reads)
      for (const Piece &piece : read.pieces)
        if (piece.writer >= 0 && isa<CopyOp, CollectiveOp>(calls.timeline.nodes[piece.writer].op))
          writers.push_back(piece.writer);
    llvm::sort(writers);
    writers.erase(llvm::unique(writers), writers.end());
    for (int64_t writer : writers)
      calls.flows.push_back({calls.numbers[writer], calls.numbers[node]});
  }
  return calls;
}

/// Whether the call may leave no span: it takes the rows of an iteration, which a plan may leave empty.
static bool isOfIteration(Operation *op) {
  auto args = op->getAttrOfType<ArrayAttr>("args");
  return args && llvm::any_of(args, llvm::IsaPred<RowsAttr, TableAddressAttr>);
}

/// Whether a span is one of a call. Those that may leave none are told apart by their tags.
static bool isSpanOf(const plr_span &span, const Node &node) {
  if (getCallee(node.op) != span.call || static_cast<int>(*node.lane) != span.lane)
    return false;
  TagAttr tag = cast<LaneOpInterface>(node.op).getTag();
  return !isOfIteration(node.op) ||
         (span.tag && tag.getOp() == span.tag->op && tag.getLayer().value_or(-1) == span.tag->layer &&
          static_cast<int>(tag.getPhase()) == span.tag->phase);
}

llvm::Expected<std::vector<plr_span>> StepCalls::align(Spans spans) const {
  std::vector<plr_span> aligned(calls.size(), plr_span{});
  size_t number = 0;
  for (const plr_span &span : spans) {
    size_t first = number;
    while (number < calls.size() && !isSpanOf(span, timeline.nodes[calls[number]])) {
      if (!isOfIteration(timeline.nodes[calls[number]].op))
        break;
      ++number;
    }
    if (number == calls.size() || !isSpanOf(span, timeline.nodes[calls[number]])) {
      if (first == calls.size())
        return makeError("the step left {0} spans, but its program has {1} calls", spans.size(), calls.size());
      const Node &node = timeline.nodes[calls[first]];
      return makeError("span {0} of the step is of {1} on lane {2}, but call {3} of its program is {4} on lane {5}",
                       &span - spans.data(), span.call, stringifyLane(static_cast<Lane>(span.lane)), first,
                       getCallee(node.op), stringifyLane(*node.lane));
    }
    aligned[number++] = span;
  }
  for (; number < calls.size(); ++number)
    if (!isOfIteration(timeline.nodes[calls[number]].op))
      return makeError("the step left {0} spans, but its program has {1} calls", spans.size(), calls.size());
  return aligned;
}

std::vector<StepCalls::Time> StepCalls::getTimes(const Occupant &occupant, Spans spans) const {
  std::vector<Time> times;
  for (const Occupant::Life &life : occupant.lives) {
    std::optional<Time> time;
    for (int64_t node : occupant.getAccesses(life))
      if (const plr_span *span = getSpan(node, spans)) {
        if (!time)
          time = {span->start_ns, span->end_ns};
        time->start_ns = std::min(time->start_ns, span->start_ns);
        time->end_ns = std::max(time->end_ns, span->end_ns);
      }
    if (time)
      times.push_back(*time);
  }
  llvm::sort(times, [](const Time &a, const Time &b) { return a.start_ns < b.start_ns; });
  size_t kept = 0;
  for (const Time &time : times) {
    if (kept > 0 && time.start_ns <= times[kept - 1].end_ns)
      times[kept - 1].end_ns = std::max(times[kept - 1].end_ns, time.end_ns);
    else
      times[kept++] = time;
  }
  times.resize(kept);
  return times;
}
