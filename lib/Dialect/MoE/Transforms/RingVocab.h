//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The forms of the vocabulary loss by tiles.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_RINGVOCAB_H
#define PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_RINGVOCAB_H

#include "RingVocabTiles.h"

namespace mlir::plateau::moe {

/// What takes the place of the results of a loss.
struct VocabLosses {
  Value losses, lse;
};
/// What takes the place of the results of its gradient, in the types of these.
using VocabGrads = VocabBuilder::Sums;

/// The loss with shards of the table, or rows of tokens, going round the ranks; on one rank nothing goes anywhere.
VocabLosses buildRingLoss(VocabLossOp op, VocabMove move, const VocabProblem &problem, const VocabLimits &limits);
VocabGrads buildRingGrad(VocabLossGradOp op, VocabMove move, const VocabProblem &problem, const VocabLimits &limits);

/// The loss and, where `grad` is not null, its gradient, in front of `op`: each tile of logits serves both. The
/// cotangents must be there by then.
std::pair<VocabLosses, VocabGrads> buildGatheredLoss(VocabLossOp op, VocabLossGradOp grad, const VocabProblem &problem,
                                                     const VocabLimits &limits);

} // namespace mlir::plateau::moe

#endif // PLATEAU_LIB_DIALECT_MOE_TRANSFORMS_RINGVOCAB_H
