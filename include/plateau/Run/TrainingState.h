//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The state of a training run: drawn from a seed, read from a file, written to one.
//
// A file holds the parameters under their names, and so state that moves by a rule of its own (F32). A complete one
// also holds, for each parameter, "optimizer.first.<name>" and "optimizer.second.<name>" (F32), "master.<name>" (F32)
// when the parameters are BF16, and two I64 scalars: "step", the number the next update has (1 for the first), and
// "batch", the number of batches read so far. Going on from a complete file gives the bits of a run that never stopped.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_TRAININGSTATE_H
#define PLATEAU_RUN_TRAININGSTATE_H

#include "plateau/Execution/StepExecutor.h"
#include "plateau/Run/Safetensors.h"
#include "plateau/Run/StepSignature.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>

namespace mlir::plateau::run {

struct TrainingCounters {
  int64_t update = 1; ///< Number of the next update: updates that were skipped do not count.
  int64_t batch = 0;  ///< Batches read so far.
};

/// Fails when two tensors of a saved state would have one name, or one that the format keeps for itself.
llvm::Error checkTensorNames(const StepSignature &signature);

/// Sets parameters from the seed and everything else to zero, on all ranks. `cancelled` is asked between tensors.
llvm::Error drawState(StepExecutor &executor, const StepSignature &signature, uint64_t seed,
                      llvm::function_ref<bool()> cancelled);

/// Sets the state from a file on all ranks; `note` tells of what the file did not hold.
llvm::Expected<TrainingCounters> loadState(StepExecutor &executor, const StepSignature &signature, llvm::StringRef path,
                                           llvm::function_ref<void(llvm::StringRef)> note);

llvm::Error saveState(StepExecutor &executor, const StepSignature &signature, const TrainingCounters &counters,
                      llvm::StringRef path);

/// Writes the gradients of the last step under the names of the parameters. `getValues`, where there is one, gives the
/// elements of a rank's group in float64, and the file then holds those (F64).
llvm::Error saveGradients(StepExecutor &executor, const StepSignature &signature,
                          std::function<std::vector<double>(int)> getValues, llvm::StringRef path);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_TRAININGSTATE_H
