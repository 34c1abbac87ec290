//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The numbers on which methods are compared: the same for all of them.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_VOCABDATA_H
#define PLATEAU_BENCH_VOCABDATA_H

#include "plateau/Bench/VocabOptions.h"
#include "plateau/Execution/StepExecutor.h"

namespace mlir::plateau::bench {

/// Writes the arguments of every rank into each executor. Rows of x are standard normal and those of the table have a
/// norm of about 1, so that logits are standard normal; labels are drawn from the whole vocabulary; cotangents are
/// those of the mean over the tokens of all ranks.
llvm::Error writeVocabData(llvm::ArrayRef<StepExecutor *> executors, const VocabOptions &options);

/// Losses of a rank, and elements of its gradients at even distances.
struct VocabValues {
  std::vector<float> losses, gradients;
};
llvm::Expected<std::vector<VocabValues>> readVocabValues(StepExecutor &executor);

/// Fails when a loss differs from that of `first` by more than 1e-5 of the largest loss, or a gradient by more than
/// rounding allows: 1e-4 of the largest for f32, 3e-2 for bf16.
llvm::Error compareVocabValues(llvm::ArrayRef<VocabValues> first, llvm::StringRef firstName,
                               llvm::ArrayRef<VocabValues> other, llvm::StringRef otherName, bool isBF16);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_VOCABDATA_H
