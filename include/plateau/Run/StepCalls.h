//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The calls of a planned step, beside the spans that they leave when it runs.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_STEPCALLS_H
#define PLATEAU_RUN_STEPCALLS_H

#include "plateau/Analysis/Occupancy.h"
#include "plateau/Run/Profile.h"
#include "llvm/Support/Error.h"

namespace mlir::plateau::run {

/// What a program says about the spans of its runs. One node of the timeline that is on a lane is one call, and leaves
/// one span; both are in issue order.
class StepCalls {
public:
  using Spans = llvm::ArrayRef<plr_span>;

  /// When the bytes of a slot mattered.
  struct Time {
    int64_t start_ns, end_ns;
  };
  /// A copy or a collective, and a call that reads what it wrote: numbers of spans.
  struct Flow {
    int64_t from, to;
  };

  /// Fails with a message when the program has no timeline.
  static FailureOr<StepCalls> get(sched::ProgramOp program);

  const sched::Timeline &getTimeline() const { return timeline; }
  const sched::Occupancy &getOccupancy() const { return *occupancy; }
  llvm::ArrayRef<Flow> getFlows() const { return flows; }

  /// The spans of a step, one for each call, without a name for those of empty iterations that left none. Fails when
  /// they are not those of the program's calls.
  llvm::Expected<std::vector<plr_span>> align(Spans spans) const;
  /// The span of a node, of aligned ones; null of the host's own, and of calls that left none.
  const plr_span *getSpan(int64_t node, Spans spans) const {
    return numbers[node] < 0 || !spans[numbers[node]].call ? nullptr : &spans[numbers[node]];
  }
  /// From the start of the first call of a life that touches the bytes to the end of the last; lives that overlap, as
  /// those on several lanes do, are one. In order of time.
  std::vector<Time> getTimes(const sched::Occupant &occupant, Spans spans) const;

private:
  sched::Timeline timeline;
  std::optional<sched::Occupancy> occupancy;
  std::vector<int64_t> numbers; ///< Of each node's span; -1 without one.
  std::vector<int64_t> calls;   ///< The node of each span.
  std::vector<Flow> flows;
};

/// The name of the call in spans.
llvm::StringRef getCallee(Operation *op);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_STEPCALLS_H
