//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_SCHEDENUMS_TD
#define PLATEAU_DIALECT_SCHED_IR_SCHEDENUMS_TD

include "mlir/IR/EnumAttr.td"

class Sched_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::plateau::sched";
}

// The numbers are the runtime's.
def Sched_Lane : Sched_Enum<"Lane", "an in-order queue of a rank", [
  I32EnumAttrCase<"Compute", 0, "compute">, I32EnumAttrCase<"Comm", 1, "comm">, I32EnumAttrCase<"H2D", 2, "h2d">,
  I32EnumAttrCase<"D2H", 3, "d2h">, I32EnumAttrCase<"Host", 4, "host">]>;

def Sched_Space : Sched_Enum<"Space", "a memory space of a rank", [
  I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"Host", 1, "host">]>;

#endif // PLATEAU_DIALECT_SCHED_IR_SCHEDENUMS_TD
