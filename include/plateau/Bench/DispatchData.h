//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The numbers on which methods are compared: the same for all of them.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_DISPATCHDATA_H
#define PLATEAU_BENCH_DISPATCHDATA_H

#include "plateau/Bench/DispatchOptions.h"
#include "plateau/Execution/StepExecutor.h"
#include <vector>

namespace mlir::plateau::bench {

/// What each slot of each token chooses, on every rank alike: the first percent · tokens / 100 tokens the experts j mod
/// h of a profile r/h, any other token i the experts h + (i + j) mod (experts − h), in its slots j.
std::vector<int32_t> getProfileIds(const DispatchOptions &options);

/// Writes the arguments of every rank into each executor. Rows are standard normal, weights of experts keep rows so,
/// and a route has the weight 1 / k.
llvm::Error writeDispatchData(llvm::ArrayRef<StepExecutor *> executors, const DispatchOptions &options);

/// A rank's results by name, or elements of them at even distances.
struct DispatchValues {
  std::vector<std::pair<llvm::StringRef, std::vector<float>>> results;
};
llvm::Expected<std::vector<DispatchValues>> readDispatchValues(StepExecutor &executor, const DispatchOptions &options);

/// Fails when an element differs from that of `first` by more than rounding allows: 1e-4 of the largest for f32, 3e-2
/// for bf16.
llvm::Error compareDispatchValues(llvm::ArrayRef<DispatchValues> first, llvm::StringRef firstName,
                                  llvm::ArrayRef<DispatchValues> other, llvm::StringRef otherName, bool isBF16);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_DISPATCHDATA_H
