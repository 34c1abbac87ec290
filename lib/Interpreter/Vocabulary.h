//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What the vocabulary loss and its forms by tiles share.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_VOCABULARY_H
#define PLATEAU_LIB_INTERPRETER_VOCABULARY_H

#include "Evaluator.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include <cmath>

namespace mlir::plateau::interpreter {

/// The options of a vocabulary as doubles.
struct VocabularyOptions {
  explicit VocabularyOptions(moe::VocabularyAttr attribute)
      : size(attribute.getSize()), ignored(attribute.getIgnoreIndex()),
        smoothing(attribute.getLabelSmoothing().convertToFloat()), zLoss(attribute.getZLoss().convertToFloat()),
        softcap(attribute.getSoftcap().convertToFloat()) {}

  /// y of a raw logit and its bias.
  double cap(double logit) const { return softcap == 0 ? logit : softcap * std::tanh(logit / softcap); }
  /// The derivative of `cap`, from what it gave.
  double getCapSlope(double y) const { return softcap == 0 ? 1 : 1 - (y / softcap) * (y / softcap); }

  int64_t size, ignored;
  double smoothing, zLoss, softcap;
};

/// Every label is in the vocabulary, or the one that is ignored.
LogicalResult checkLabels(RankCall &call, ArrayRef<int64_t> labels, const VocabularyOptions &options);

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_VOCABULARY_H
