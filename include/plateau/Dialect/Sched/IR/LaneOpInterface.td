//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What launch, copy and collective have in common.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_LANEOPINTERFACE_TD
#define PLATEAU_DIALECT_SCHED_IR_LANEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def LaneOpInterface : OpInterface<"LaneOpInterface"> {
  let description = [{
    One call of the runtime on a lane. It waits for events, reads values, reads tables (the host too, when it issues the call) and
    writes places; its results are its event and one value for each place.
  }];
  let cppNamespace = "::mlir::plateau::sched";
  let methods = [
    InterfaceMethod<"The lane.", "::mlir::plateau::sched::Lane", "getLane">,
    InterfaceMethod<"Moves the op to another lane.", "void", "setLane", (ins "::mlir::plateau::sched::Lane":$lane)>,
    InterfaceMethod<"Events the call waits for.", "::mlir::OperandRange", "getWaits">,
    InterfaceMethod<"The same, to be changed.", "::mlir::MutableOperandRange", "getWaitsMutable">,
    InterfaceMethod<"Values the call reads.", "::mlir::OperandRange", "getReads">,
    InterfaceMethod<"Tables that host and call read.", "::mlir::OperandRange", "getTables">,
    InterfaceMethod<"Places the call writes.", "::mlir::OperandRange", "getWrites">,
    InterfaceMethod<"Its completion.", "::mlir::Value", "getEvent">,
    InterfaceMethod<"One for each place it writes.", "::mlir::ResultRange", "getValues">,
    InterfaceMethod<"Who asks.", "::mlir::plateau::sched::TagAttr", "getTag">,
    InterfaceMethod<"The stage of the loop it belongs to; none when it has none.", "::std::optional<int64_t>", "getStageNumber">
  ];
}

#endif // PLATEAU_DIALECT_SCHED_IR_LANEOPINTERFACE_TD
