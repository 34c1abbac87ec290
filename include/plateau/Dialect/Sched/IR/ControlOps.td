//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Programs, lanes, loops, and what the host waits for.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_CONTROLOPS_TD
#define PLATEAU_DIALECT_SCHED_IR_CONTROLOPS_TD

include "plateau/Dialect/Sched/IR/MemoryOps.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Sched_ProgramOp : Sched_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "What one rank enqueues in one step";
  let description = [{
    Every rank runs the same program. It ends with `sched.return`, and the step with all lanes idle.

    **Constraints** P1: each lane that an op is on is declared, once. P2: each arena is declared once. P3: numbers of buffers are used once. P4: no
    op of another dialect stands in it.

    Example:
    ```mlir
    sched.program @copy ranks(1) {
      sched.lane compute
      %in = sched.buffer 0 in device tag #sched.tag<"argument 0", external, forward> : memref<4xf32>
      %out = sched.buffer 1 writable in device tag #sched.tag<"result 0", external, forward> : memref<4xf32>
      %e, %v = sched.copy on compute reads(%in : memref<4xf32>) writes(%out : memref<4xf32>) tag #sched.tag<"copy", external, forward>
      sched.return %v : memref<4xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ConfinedAttr<I64Attr, [IntPositive]>:$ranks);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `ranks` `(` $ranks `)` attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Sched_LaneOp : Sched_Op<"lane", [HasParent<"ProgramOp">]> {
  let summary = "An in-order queue: a stream, or a thread of the host";
  let description = [{ Example: `sched.lane comm` }];
  let arguments = (ins Sched_Lane:$lane);
  let assemblyFormat = "$lane attr-dict";
}

def Sched_ReturnOp : Sched_Op<"return", [Terminator, ReturnLike, HasParent<"ProgramOp">]> {
  let summary = "The end of the program, which names what its results hold";
  let description = [{
    Reads, when all lanes are idle, each value: that of each result, and of each donated argument.

    Example: `sched.return %loss, %parameters : memref<f32>, memref<64xf32>`
  }];
  let arguments = (ins Variadic<Sched_Memory>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Sched_NoEventOp : Sched_Op<"no_event", [Pure]> {
  let summary = "An event that is complete: what a loop carries before its first iteration";
  let results = (outs Sched_EventType:$event);
  let assemblyFormat = "attr-dict";
}

def Sched_FenceOp : Sched_Op<"fence"> {
  let summary = "The host waits for events, and may then read the tables that the calls before them wrote";
  let description = [{
    Counted and printed: each stops the host from running ahead.

    **Constraints** F1: stands in no loop. F2: waits for at least one event.

    Example: `sched.fence %e`
  }];
  let arguments = (ins Variadic<Sched_EventType>:$events);
  let assemblyFormat = "$events attr-dict";
  let hasVerifier = 1;
}

def Sched_LoopOp : Sched_Op<"loop", [
    AttrSizedOperandSegments, SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects]> {
  let summary = "Iterations `from` ... `to` - 1 of a body, issued one after the other";
  let description = [{
    The first region argument is the counter. Values and events of the iteration before are carried: region argument k + 1 is `inits` k at first,
    then what the body yielded. A carried value lies where the body's value lies: at one place, updated in place, or at the place of a ring that
    turns with the counter.

    `until` names a plan and a number of iterations: the calls of an iteration that the plan leaves empty do nothing, so the host may leave the
    loop so many iterations behind the last one that is not. One is needed at least: its events complete after all calls that do
    something, as those of the last iteration would.

    `in_flight` asks `sched-pipeline-loops` to overlap that many iterations by the stages of its ops.

    **Constraints** L1: `from` is at most `to`, and neither is negative. L2: inits, region arguments, yielded values and results agree in number and type. L3: a carried
    value lies where it did one iteration before, or one place further round its ring. L4: stages start at 0 and do not decrease. L5: every call of a loop with
    `until` is one by that plan, there is a number of at least 1 with it, and no event but those of the last iteration is used behind the loop.

    Example:
    ```mlir
    %sum = sched.loop %i = 0 to 4 iter(%acc = %zero) : memref<8xf32> { ... sched.yield %next : memref<8xf32> }
    ```
  }];
  let arguments = (ins I64Attr:$from, I64Attr:$to, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$inFlight,
                       Optional<Sched_Memory>:$until, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$untilBehind,
                       Variadic<AnyType>:$inits);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getCounter() { return getBody().getArgument(0); }
    ::mlir::Block::BlockArgListType getCarried() { return getBody().getArguments().drop_front(); }
    YieldOp getYield();
    int64_t getTripCount() { return getTo() - getFrom(); }
  }];
}

def Sched_YieldOp : Sched_Op<"yield", [Pure, Terminator, HasParent<"LoopOp">]> {
  let summary = "What the next iteration carries";
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), [{ /* Nothing is carried. */ }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // PLATEAU_DIALECT_SCHED_IR_CONTROLOPS_TD
