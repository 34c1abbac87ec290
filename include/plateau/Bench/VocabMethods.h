//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The loss and its gradients as a function on tensors, in the form of each method, with its memory planned.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_VOCABMETHODS_H
#define PLATEAU_BENCH_VOCABMETHODS_H

#include "plateau/Bench/ProgramCost.h"
#include "plateau/Bench/VocabOptions.h"
#include "llvm/Support/SourceMgr.h"
#include <memory>

namespace mlir::plateau::bench {

/// Arguments of the function.
namespace argument {
enum : unsigned { X, Table, Labels, Cotangents, Gradients };
} // namespace argument
/// And its results; the gradients lie in the argument of that name.
namespace result {
enum : unsigned { Losses, Gradients };
} // namespace result

/// A method on the sizes of the options.
struct VocabPlan {
  VocabMethod method;
  std::string move; ///< What goes round: weights, activations or none; empty of a standard method.
  OwningOpRef<ModuleOp> module;
  func::FuncOp function; ///< In the method's form, on tensors.
  ProgramCost cost;
  /// Of a rank, all spaces: arena, arguments and results.
  int64_t plannedBytes = 0, lowerBoundBytes = 0;
};

/// The text of a module with one function, @vocab: `moe.vocab_loss` and `moe.vocab_loss_grad`, with the gradients by x
/// and table computed in their places in one group.
std::string getVocabText(const VocabOptions &options);

/// Gives a copy of `module` the form of `method`, counts, schedules and plans. What is wrong is said in diagnostics.
FailureOr<VocabPlan> planVocab(ModuleOp module, VocabMethod method, const VocabOptions &options);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_VOCABMETHODS_H
