//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_SCHEDDIALECT_TD
#define PLATEAU_DIALECT_SCHED_IR_SCHEDDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "plateau/Dialect/Sched/IR/SchedEnums.td"

def Sched_Dialect : Dialect {
  let name = "sched";
  let cppNamespace = "::mlir::plateau::sched";
  let summary = "WHEN and WHERE a step runs: lanes, events, and buffers at fixed places";
  let description = [{
    A program is what one rank enqueues in a step. The host issues its ops one after the other. Each launch, copy or collective is
    one call of the runtime on a *lane*, an in-order queue; it runs when the op before it on its lane is done and when the events
    it waits for are complete. Nothing is allocated: memory is *buffers*, which outlive the step, and *slots*, at
    constant offsets of an *arena* for each memory space.

    **Places and values.** Both are memrefs. A `sched.slot`, `sched.buffer`, `sched.constant` or `sched.table` is a *place*. What
    a launch writes to a place is a *value*: the launch has one result for each place it writes. Whoever reads names the value,
    so its writer, and finds it at the writer's place; a buffer, constant or table that is read directly stands for what it held
    before the program. A read is right when each of its bytes was written last by the writer that it names
    (`sched-verify-values`). `sched.view` is a part of a place or of a value, `sched.join` a value with many writers.

    **Loops.** Values and events of earlier iterations are carried. A slot with a ring of D has D places that iterations use in turn.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def Sched_EventType : TypeDef<Sched_Dialect, "Event"> {
  let mnemonic = "event";
  let summary = "the completion of one call on a lane";
}

#endif // PLATEAU_DIALECT_SCHED_IR_SCHEDDIALECT_TD
