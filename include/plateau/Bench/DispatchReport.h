//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What is told of the methods.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_DISPATCHREPORT_H
#define PLATEAU_BENCH_DISPATCHREPORT_H

#include "plateau/Bench/DispatchRun.h"

namespace mlir::plateau::bench {

/// A line for each method, for people or as JSON. With planOnly of the figures only those of the routing are there, and
/// the peak is the planned one.
void printDispatch(llvm::raw_ostream &os, std::vector<DispatchPlan> &plans, llvm::ArrayRef<DispatchFigures> figures,
                   const DispatchOptions &options);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_DISPATCHREPORT_H
