//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The checkers of the sched level. They share nothing with the planners.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_VERIFY_PASSES_TD
#define PLATEAU_DIALECT_SCHED_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

class Sched_VerifyPass<string argument> : Pass<argument, "::mlir::plateau::sched::ProgramOp">;

def Sched_UnrollLoopsOption : Option<"unrollLoops", "unroll-loops", "bool", "false",
  "take loops iteration by iteration, not by the prefix that has their verdict (docs/proof.md)">;
def Sched_HbmBytesOption : Option<"hbmBytes", "hbm-bytes", "int64_t", "-1", "budget of device memory; -1 is none">;
def Sched_HostBytesOption : Option<"hostBytes", "host-bytes", "int64_t", "-1", "budget of host memory; -1 is none">;

def Sched_ReportFencesOption : Option<"reportFences", "report-fences", "bool", "false",
  "say, as a remark, how many fences there are: each stops the host from running ahead">;

def SchedVerifyArenas : Sched_VerifyPass<"sched-verify-arenas"> {
  let summary = "Check that slots lie in their arenas, and arenas and buffers in the budget";
  let description = [{
    An arena is allocated at once, so what it must hold is arithmetic.

    **Refuses** AR1: a slot without an offset. AR2: a slot whose space has no arena, or an arena without bytes. AR3: a slot that ends behind its
    arena. AR4: an arena whose bytes are not the highest end of its slots. AR5: a space whose arena and buffers, each buffer rounded up to 64 bytes,
    exceed the budget. AR5 names the largest slots that are live together at the peak, the lower bound of this schedule (the most bytes of
    values that are live at one call, in issue order), and arena - lower bound, the fragmentation: so that "impossible" is told from "badly packed".
  }];
  let options = [Sched_HbmBytesOption, Sched_HostBytesOption];
}

def SchedVerifyHazards : Sched_VerifyPass<"sched-verify-hazards"> {
  let summary = "Check that accesses to the same bytes are ordered when one of them writes";
  let description = [{
    Replays the program in issue order, with the last writer of each byte and who read it since, on vector clocks. Slots with offsets share bytes where their ranges
    in the arena overlap; without offsets each is memory of its own, so the pass runs before planning too.

    **Refuses** HZ1: two accesses of overlapping bytes, one a write, that happens-before does not order. HZ2: a table that the host reads when it
    issues a call, before a writer of its bytes is known to be done. HZ3: one call that writes bytes which it also reads or writes through another
    operand, unless both are one place (an update in place).
  }];
  let options = [Sched_UnrollLoopsOption];
}

def SchedVerifyValues : Sched_VerifyPass<"sched-verify-values"> {
  let summary = "Check that every read finds the value that it names";
  let description = [{
    Replays the program in issue order with a map from bytes to their last writer. Each byte that a read names must have been written last by the writer it
    names; in loops that is a node of a certain iteration. What `sched.return` names is read at the end.

    **Refuses** VA1: a read whose bytes hold another writer's value. VA2: a read of bytes of a slot that nobody has written. VA3: a buffer that is
    written, of which `sched.return` names nothing. VA4: an operand that lies elsewhere than `Place::get`, which the lowering uses, says.
  }];
  let options = [Sched_UnrollLoopsOption];
}

def SchedVerifyCollectives : Sched_VerifyPass<"sched-verify-collectives"> {
  let summary = "Check that ranks meet in their collectives in one order";
  let description = [{
    Ranks run one program, and nothing in it depends on data: a rank issues its collectives in the order of the text. What remains
    is that the text is in the agreed order, and that lanes cannot overtake one another. The agreed order is that of the numbers
    which the conversion gives; a pass that copies or reorders collectives on purpose numbers all of them again
    (`numberCollectives`). No rank can see another's program: ranks that are threads of one process run the same one, others have to
    compare a digest of all collectives in order (`getCollectiveDigest`) before they start.

    **Refuses** CO1: two collectives whose numbers do not rise in the order of the text. CO2: two collectives on two lanes, of groups
    of more than one rank, without an order between them: every group of a rank holds that rank, so two ranks could enter them
    in different orders.
  }];
  let options = [Sched_UnrollLoopsOption];
}

def SchedVerifyFences : Sched_VerifyPass<"sched-verify-fences"> {
  let summary = "Check that the host reads tables only behind fences";
  let description = [{
    **Refuses** FE1: a call that takes a table whose writer is not known to be done when the host issues the call: no fence before it covers the
    writer. FE2: a fence in a loop.
  }];
  let options = [Sched_UnrollLoopsOption, Sched_ReportFencesOption];
}

def SchedVerify : Sched_VerifyPass<"sched-verify"> {
  let summary = "Run all checkers of the sched level on one timeline";
  let description = [{
    What `sched-verify-arenas`, `-hazards`, `-values`, `-collectives` and `-fences` refuse.
  }];
  let options = [Sched_HbmBytesOption, Sched_HostBytesOption, Sched_UnrollLoopsOption, Sched_ReportFencesOption];
}

#endif // PLATEAU_DIALECT_SCHED_VERIFY_PASSES_TD
