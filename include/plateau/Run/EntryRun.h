//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Running one function on drawn arguments, and comparing compiled code with the interpreter on them.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_ENTRYRUN_H
#define PLATEAU_RUN_ENTRYRUN_H

#include "plateau/Run/Executors.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::plateau::run {

/// The bytes of each argument of `function`, static tensors of f32, bf16 or i32.
///
/// With an attribute plateau.values (dense elements of the argument's type) these are the contents. Otherwise numbers
/// come from the stream of (seed, "argument<index>"): floats are standard normal, integers are below plateau.below (2
/// when it is not given). By moe.role, positions count from 0, starts are 0, the step is 1, and the learning rate and
/// second moments are magnitudes of normal numbers.
llvm::Expected<std::vector<std::vector<char>>> drawArguments(func::FuncOp function, uint64_t seed);

using Bytes = std::vector<char>;

/// Writes the arguments on all ranks, runs, and gives the bytes of the results: [rank][index].
llvm::Expected<std::vector<std::vector<Bytes>>> runOnce(StepExecutor &executor, llvm::ArrayRef<Bytes> arguments);

/// Runs `repeat` times, which must give the same bits, and prints the results, or their digests when the executor has
/// some: the values when there are at most 64, else a checksum of the bytes and the largest magnitude.
llvm::Error runEntry(Executor &executor, llvm::ArrayRef<Bytes> arguments, int repeat, llvm::raw_ostream &os);

/// Runs `reference` once and `tested` `repeat` times. Fails when runs of `tested` differ in a bit, or when max|a − b|
/// is more than `tolerance` · max|b| for a float result (a from `tested`, b from `reference`); integer results must be
/// equal. Prints the ratio of each result.
llvm::Error compareEntry(Executor &tested, Executor &reference, llvm::ArrayRef<Bytes> arguments, double tolerance,
                         int repeat, llvm::raw_ostream &os);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_ENTRYRUN_H
