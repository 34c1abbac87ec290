//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds @loss, the forward pass of a training step, from a configuration.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_IMPORT_BUILDLOSS_H
#define PLATEAU_IMPORT_BUILDLOSS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "plateau/Import/Model.h"

namespace mlir::plateau::importer {

enum class WorkingType { F32, BF16 };
/// What of the forward pass is computed again in the backward pass.
enum class Checkpoint { None, Layer };
/// Over which tokens the loads of experts are to be even: those of all ranks, or those of each sequence.
enum class BalanceKind { Global, Sequence };

struct LossOptions {
  int64_t ranks = 1;
  /// Ranks over which the experts, and the rows of the embedding table and the output projection, are divided; the
  /// others hold copies.
  int64_t expertRanks = 1, vocabularyRanks = 1;
  /// Tokens of a rank and step, and of a sequence.
  int64_t tokens = 0;
  int64_t sequence = 0;
  /// Whether the loss is told how many labels count in all, because it sees a part of them.
  bool takesLabelCount = false;
  /// Whether a rank may have less tokens than rows, and the loss is told how many: the rows after them are padding.
  bool padded = false;
  /// Such parts of a step, each of `tokens`.
  int64_t microBatches = 1;
  /// Factor of the loss that evens out experts, when not the configuration's; and of the one that keeps a router's
  /// logits small.
  std::optional<double> balanceLoss;
  BalanceKind balanceKind = BalanceKind::Global;
  double zLoss = 0;
  /// Of the loss of the vocabulary: the part of a label that goes to all tokens alike, and the factor of the square of
  /// the logarithm of the sum of exponentials.
  double labelSmoothing = 0, vocabularyZLoss = 0;
  /// Where a tanh caps logits, when not where the configuration says; 0 for nowhere.
  std::optional<double> logitSoftcap;
  WorkingType workingType = WorkingType::F32;
  Checkpoint checkpoint = Checkpoint::None;
};

/// What stands between `config` and a program for `options`: a sequence longer than the model's positions, or values
/// whose bytes would pass 63 bits. Success when nothing does.
llvm::Error checkLossOptions(const ModelConfig &config, const LossOptions &options);

/// The dialects that the program uses.
void registerLossDialects(DialectRegistry &registry);

/// A module whose one function @loss gives a rank's share of the mean loss over the labels of a step, and of the losses
/// of the routers. Its parameters are `parameters`, in their order; those that are not trained carry moe.buffer, and
/// for each @loss gives the counts by which it moves. Null after an error.
OwningOpRef<ModuleOp> buildLoss(MLIRContext *context, const ModelConfig &config, llvm::ArrayRef<Parameter> parameters,
                                const LossOptions &options);

} // namespace mlir::plateau::importer

#endif // PLATEAU_IMPORT_BUILDLOSS_H
