//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What an op needs besides its operands and results: workspace, and the lane that runs it.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_FOOTPRINTOPINTERFACE_TD
#define PLATEAU_INTERFACES_FOOTPRINTOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def FootprintOpInterface : OpInterface<"FootprintOpInterface"> {
  let description = [{
    The memory an op uses while it runs, besides its operands and results, and the lane it runs on. The bound depends on
    types and attributes alone, never on data, so it can be laid out before launch.
  }];
  let cppNamespace = "::mlir::plateau";
  let methods = [
    InterfaceMethod<"Bytes of scratch memory that the op needs on its lane while it runs.",
      "int64_t", "getWorkspaceBytes", (ins), "", "return 0;">,
    InterfaceMethod<"The component that the op's results and workspace count under when its location names none.",
      "::mlir::plateau::Component", "getDefaultComponent", (ins)>
  ];
}

#endif // PLATEAU_INTERFACES_FOOTPRINTOPINTERFACE_TD
