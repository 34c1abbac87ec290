//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_TRANSFORMS_PASSES_TD
#define PLATEAU_DIALECT_SCHED_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SchedSplitStages : Pass<"sched-split-stages", "::mlir::plateau::sched::ProgramOp"> {
  let summary = "Give the calls of a loop their stages";
  let description = [{
    A loop that has `in_flight`, and no stage on any of its calls, gets stages. With `by=phase` the calls of the forward phase are
    stage 0, those of the phases backward and optimizer stage 1. A forward call that stands behind one of stage 1 moves in
    front of them, with the parts of values that it names, unless it needs what they give or touches memory that they touch; then it
    is of stage 1 as well, and a remark says so.

    **Requires** no loop inside such a loop.
    **Ensures** every call of such a loop has a stage, and stages do not decrease.
    **Does not** change a loop where a call has a stage already, nor a loop with a loop inside when only `in-flight` asks for it.
  }];
  let options = [
    Option<"by", "by", "std::string", "\"phase\"", "what stages are made of: phase">,
    Option<"inFlight", "in-flight", "int64_t", "0",
           "how many iterations overlap in loops that do not say it; 0 leaves those loops alone">
  ];
}

def SchedPipelineLoops : Pass<"sched-pipeline-loops", "::mlir::plateau::sched::ProgramOp"> {
  let summary = "Overlap the iterations of loops by the stages of their calls";
  let description = [{
    A loop with `in_flight(D)` and S stages becomes one whose body has stage s of iteration t − delay(s), for all s in order:

        delay(s) = ceil(s · (D − 1) / (S − 1)),  so delay(0) = 0 and delay(S − 1) = D − 1

    (0 when there is one stage, which a remark says). What is missing at either end stands before and after the loop as straight-line code with
    constant places, offsets and rows of tables. Fewer than D iterations give straight-line code alone. With D = 1 the loop stays and its slots move out.

    A slot that one iteration has for itself, because it is defined in the body or used nowhere else, becomes a ring: iteration i uses
    place i mod ring. Values and events that cross stages are carried, one for each step of time in between.

    **Requires** a stage on every call of the loop, no loop inside it, and slots that have no offsets yet. What the loop reads or
    writes outside those slots keeps its order, or the pass refuses: the updates of an accumulator have to stand in one stage, and so has
    what reads it. A wait is kept as one on the call of the same iteration; one that would lead back in time is refused, so
    `sched-place-waits` comes after this pass.
    **Ensures** the bytes that the program leaves, collectives numbered in their new order, and that no `in_flight` and no stage is left. With N iterations a slot that is
    first touched in stage a and last in stage b has exactly

        ring = min(N, delay(b) − delay(a) + 1) places, and all such slots together Σ bytes · (delay(b) − delay(a) + 1)

    (for N ≥ D; each place but the last of a ring rounded up to 64 bytes). One place less and a value is overwritten before it is
    last read.
    **Does not** change a loop without `in_flight`, nor place waits between overlapped iterations.

    A remark of category `sched-pipeline-loops` for each loop has the bytes of those slots before and after.
  }];
  let statistics = [
    Statistic<"loopCount", "loops", "loops whose iterations overlap">,
    Statistic<"byteCount", "bytes-added", "bytes that rings add to slots">
  ];
}

def SchedAssignLanes : Pass<"sched-assign-lanes", "::mlir::plateau::sched::ProgramOp"> {
  let summary = "Put collectives and copies between spaces on lanes of their own";
  let description = [{
    Of the calls on lane `compute`, collectives go to `comm`, copies from the host space to `h2d`, copies to it to `d2h`; all
    others stay. A call on another lane stays where it is. Then declares the lanes that calls are on, and no others.

    **Ensures** values and the order of issue are what they were.
    **Does not** place waits: `sched-place-waits` does, and comes after this pass.
  }];
}

def SchedHoist : Pass<"sched-hoist", "::mlir::plateau::sched::ProgramOp"> {
  let summary = "Issue collectives and copies as early as what they need allows";
  let description = [{
    Moves each call on another lane than `compute` up to just behind the last call that it depends on: one that writes what it
    reads or writes, or that reads what it writes. So the sums of gradients run beside the backward pass instead of
    behind it. Only calls that write in place or into buffers move, since no slot lives longer by that. Parts of values and
    places that a call names move with it.

    Nothing moves over a fence or over a loop, nor into or out of one. Calls of one lane keep their order, so do all collectives; no
    call moves above one of an earlier stage.

    **Requires** no waits between what is moved and what it passes; a call does not move above one that it waits for.
    **Ensures** each value has the same bytes: accesses of the same bytes, one of them a write, keep their order.
  }];
  let statistics = [Statistic<"movedCount", "moved", "calls that are issued earlier">];
}

def SchedPlaceWaits : Pass<"sched-place-waits", "::mlir::plateau::sched::ProgramOp"> {
  let summary = "Make calls wait for the calls on other lanes that they depend on";
  let description = [{
    A call waits for who wrote what it reads, and for who read or wrote what it writes, byte for byte, where these are on other
    lanes: of each lane for the last one. In loops it waits for a call of an earlier iteration through a carried event, which is
    complete (`sched.no_event`) at first; d iterations back through a chain of d of them. Places of a ring give the distance: what
    iteration i writes was read D iterations before. The host waits in a `sched.fence` for what writes a table that it
    reads behind it.

    Without offsets slots do not share bytes: `sched-plan-arenas` shares them along the order there is. Slots that have offsets
    already do.

    **Requires** lanes, and a fence between the writer of a table and the calls that the host reads it for.
    **Ensures** of two accesses of the same bytes of a slot or buffer, one of them a write, one happens before the other, in each
    iteration. Waits that are there stay.
    **Does not** leave out waits that others imply: `sched-elide-waits` does.
  }];
  let statistics = [Statistic<"waitCount", "waits", "waits added">];
}

def SchedElideWaits : Pass<"sched-elide-waits", "::mlir::plateau::sched::ProgramOp"> {
  let summary = "Remove waits that the rest implies";
  let description = [{
    A wait is implied when in each iteration, the first included, the call is known to be done without it: by the order of the
    lane, by a fence, or by the other waits. All that are implied go; the order stays exactly what it was. Of those left, one goes
    that orders nothing: accesses of the same bytes of a slot or buffer, one of them a write, and tables that the host reads, keep
    their order without it.

    Slots without offsets have memory of their own. Once they have offsets, they share bytes of their arena: behind
    `sched-plan-arenas` this pass keeps the waits that sharing needs, and removes those of `sched-release-slots` that it does not.

    **Requires** `sched-place-waits`.
    **Ensures** no wait of a call can be left out without two accesses of the same bytes losing their order.
  }];
  let statistics = [Statistic<"elidedCount", "elided", "waits removed">];
}

def SchedReleaseSlots : Pass<"sched-release-slots", "::mlir::plateau::sched::ProgramOp"> {
  let summary = "Bound how many slots wait for a lane to be done with them";
  let description = [{
    A slot that one lane writes and another one is done with last (what is copied to the host, what a collective sends) can be
    used again only by who knows that the other lane is done. Values order nothing here: the lane that writes would never wait,
    and each such slot would stay apart from all that follow. So of the slots that lane A writes and lane B is done with, in the
    order in which B is, the call of A that writes the k-th waits until B is done with number

        k - in-flight - 1

    (or with the last one before that call, when B is issued later). Then at most `in-flight` + 1 of them hold memory at once.

    **Requires** `sched-place-waits`. **Ensures** no wait that others imply is added.
    **Does not** look into loops, whose rings have their waits, nor know which of its waits sharing will need:
    `sched-elide-waits` behind `sched-plan-arenas` removes the others.
  }];
  let options = [Option<"inFlight", "in-flight", "int64_t", "1",
                        "slots that one lane is not yet done with while another writes the next, at least 1">];
  let statistics = [Statistic<"waitCount", "waits", "waits added">];
}

def SchedPlanArenas : Pass<"sched-plan-arenas", "::mlir::plateau::sched::ProgramOp"> {
  let summary = "Give each slot its offset in the arena of its space";
  let description = [{
    A slot lives from the write of a value to its last read; a slot of a loop that each iteration writes anew has a life in each.
    Slots share bytes when each two of their lives have an order in every run: all calls of one happen before all calls of
    the other. A ring has one life.

    Several greedy solvers place the slots, in orders and fits of their own; the smallest arena is kept, and repaired by placing
    earlier what ends above the lower bound, until it meets the bound or the work given is used up. The lower bound is the most
    that is live in a state which the lanes may be in (`lower_bound` of `sched.arena`); what is live at a call in issue order
    is printed beside it, and can be less.

    **Requires** waits. **Ensures**

        bytes = max over slots of offset + size ≥ lower_bound ≥ live bytes at any call

    with sizes in the bound rounded up to 64 bytes, but for one of them. The same program gives the same offsets.
    **Does not** change the order, nor prove anything: the checkers do.

    A remark of category `sched-plan-arenas` for each arena has the bytes of its slots and of itself, both bounds, whether the
    bound is the largest of its kind, and the solver.
  }];
  let options = [
    Option<"workPerSlot", "work-per-slot", "int64_t", "10000",
           "conflicts that repairs may look at, for each slot; 0 for the greedy solvers alone">,
    Option<"workLimit", "bound-work", "int64_t", "1000000000", "lives that the search for the lower bound may look at">
  ];
  let statistics = [
    Statistic<"slotBytes", "slot-bytes", "bytes of all slots">,
    Statistic<"arenaBytes", "arena-bytes", "bytes of all arenas">,
    Statistic<"liveBytes", "live-bytes", "most bytes live at a call, in issue order">,
    Statistic<"boundBytes", "bound-bytes", "lower bound of the bytes of all arenas">,
    Statistic<"passCount", "packings", "packings tried">
  ];
}

#endif // PLATEAU_DIALECT_SCHED_TRANSFORMS_PASSES_TD
