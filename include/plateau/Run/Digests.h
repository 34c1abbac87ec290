//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// One hash for each result of a step, of what the ranks hold together.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_DIGESTS_H
#define PLATEAU_RUN_DIGESTS_H

#include "plateau/Run/Executors.h"
#include "plateau/Run/StepSignature.h"

namespace mlir::plateau::run {

struct ResultDigest {
  std::string name; ///< The role, or "result 3" where there is none.
  uint64_t hash = 0;
};

/// A hash of each result of the last run of an executor that has getPartsDigest.
///
/// A group is taken as the whole tensors of its layout, in their order, put together from the ranks' parts: the hash
/// depends neither on the number of ranks nor on what they divide. What every rank holds must be the same on each, or
/// the error names the tensor and the ranks. A result of another role counts once where all ranks have the same, else
/// that of each rank counts.
llvm::Expected<std::vector<ResultDigest>> getDigests(const Executor &executor, const StepSignature &signature);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_DIGESTS_H
