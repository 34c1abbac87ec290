//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/BuildLoss.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir::plateau::importer;
using llvm::Twine;

llvm::Error mlir::plateau::importer::checkLossOptions(const ModelConfig &config, const LossOptions &options) {
  if (config.maxPositions && options.sequence > *config.maxPositions)
    return llvm::createStringError("sequences of " + Twine(options.sequence) +
                                   " tokens are longer than field 'max_position_embeddings' allows, which is " +
                                   Twine(*config.maxPositions));
  if (!config.sparse.empty() && config.experts.experts % options.expertRanks)
    return llvm::createStringError("the " + Twine(config.experts.experts) +
                                   " experts of field 'num_experts' do not divide over " + Twine(options.expertRanks) +
                                   " ranks (--expert-ranks)");
  if (config.sparse.empty() && options.expertRanks > 1)
    return llvm::createStringError("no layer has experts to divide over " + Twine(options.expertRanks) +
                                   " ranks (--expert-ranks)");
  if (config.sparse.empty() && (options.balanceLoss.value_or(0) > 0 || options.zLoss > 0))
    return llvm::createStringError(
        "no layer has experts: there is no router to have a loss (--balance-loss, --z-loss)");
  bool hasRouterLoss =
      !config.sparse.empty() && (options.balanceLoss.value_or(config.experts.balanceLoss) > 0 || options.zLoss > 0);
  if (options.padded && hasRouterLoss)
    return llvm::createStringError("losses of routers are not supported with --padded, since they would count padding; "
                                   "--balance-loss 0 and --z-loss 0 leave them out");
  // Routes are counted in 32 bits; an expert has at most one of each token.
  std::optional<int64_t> tokens = llvm::checkedMul(options.ranks, options.microBatches);
  tokens = tokens ? llvm::checkedMul(*tokens, options.tokens) : std::nullopt;
  if (!config.sparse.empty() && (!tokens || *tokens > std::numeric_limits<int32_t>::max()))
    return llvm::createStringError("a step of more than 2^31 - 1 tokens on all ranks has more routes to an expert than "
                                   "32 bits can count");
  // Every value of the program is no larger than this many f32 a token.
  int64_t width = std::max({config.vocabularySize, config.hiddenSize, config.intermediateSize});
  std::optional<int64_t> heads = llvm::checkedMul(config.heads, config.headDim);
  std::optional<int64_t> elements = heads ? llvm::checkedMul(options.tokens, std::max(width, *heads)) : std::nullopt;
  if (!elements || !llvm::checkedMul<int64_t>(*elements, sizeof(float)))
    return llvm::createStringError(Twine(options.tokens) + " tokens make values of more than 2^63 bytes");
  return llvm::Error::success();
}
