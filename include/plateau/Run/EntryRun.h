//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Running one function on drawn arguments, and comparing compiled code with the interpreter on them.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_ENTRYRUN_H
#define PLATEAU_RUN_ENTRYRUN_H

#include "plateau/Run/EntryArguments.h"
#include "plateau/Run/Executors.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::plateau::run {

/// Writes the arguments, runs, and gives the results.
llvm::Expected<RankBytes> runOnce(StepExecutor &executor, const RankBytes &arguments);

/// Runs `repeat` times, which must give the same bits, and prints the results, or their digests when the executor has
/// some: the values when there are at most 64, else a checksum of the bytes and the largest magnitude.
llvm::Error runEntry(Executor &executor, const RankBytes &arguments, int repeat, llvm::raw_ostream &os);

/// Runs `reference` once and `tested` `repeat` times. Fails when runs of `tested` differ in a bit, or when max|a − b|
/// is more than `tolerance` · max|b| for a float result (a from `tested`, b from `reference`); integer results must be
/// equal. Prints the ratio of each result.
llvm::Error compareEntry(Executor &tested, Executor &reference, const RankBytes &arguments, double tolerance,
                         int repeat, llvm::raw_ostream &os);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_ENTRYRUN_H
