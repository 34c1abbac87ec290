//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// An op in which several ranks take part.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_COLLECTIVEOPINTERFACE_TD
#define PLATEAU_INTERFACES_COLLECTIVEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let description = [{
    An op that every rank of a group calls, in the same order, whatever its data. The group of a rank are the ranks whose
    coordinates on the grid differ from its own along the group's axes alone. A grid (`shard.grid`) is a view of the one linear
    rank order, row-major; grids overlap freely.

    The interface stands outside the dialects: upstream's `shard.all_reduce`, `shard.all_gather` and `shard.reduce_scatter` join
    by external models.
  }];
  let cppNamespace = "::mlir::plateau";
  let methods = [
    InterfaceMethod<"The grid's symbol.", "::mlir::FlatSymbolRefAttr", "getCollectiveGrid", (ins)>,
    InterfaceMethod<"The axes of the group, on a grid of `dimensions` sizes, ascending.",
      "::llvm::SmallVector<int64_t>", "getCollectiveAxes", (ins "int64_t":$dimensions)>,
    InterfaceMethod<"The most bytes that one rank sends to the others, in a group of `ranks`.",
      "int64_t", "getSentBytes", (ins "int64_t":$ranks)>
  ];
}

#endif // PLATEAU_INTERFACES_COLLECTIVEOPINTERFACE_TD
