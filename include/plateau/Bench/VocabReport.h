//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What is told of the methods.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_VOCABREPORT_H
#define PLATEAU_BENCH_VOCABREPORT_H

#include "plateau/Bench/VocabRun.h"

namespace mlir::plateau::bench {

/// A line for each method, for people or as JSON. Without figures nothing ran, and the peak is the planned one.
void printVocab(llvm::raw_ostream &os, llvm::ArrayRef<VocabPlan> plans, llvm::ArrayRef<VocabFigures> figures,
                const VocabOptions &options);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_VOCABREPORT_H
