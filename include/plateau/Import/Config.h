//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The configuration of a model: the fields of a Hugging Face config.json, checked and typed.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_IMPORT_CONFIG_H
#define PLATEAU_IMPORT_CONFIG_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace mlir::plateau::importer {

class SourceText;

/// What a router makes of a token's logits: a softmax over all experts, over those chosen, or a sigmoid of each.
enum class Scoring { Softmax, TopKSoftmax, Sigmoid };

/// The experts of a model's sparse layers, and how a token chooses among them.
struct ExpertConfig {
  int64_t experts = 0;
  int64_t topK = 0;
  int64_t intermediateSize = 0;
  Scoring scoring = Scoring::Softmax;
  /// Experts lie in equal groups, of which a token keeps some.
  int64_t groups = 1, keptGroups = 1;
  /// Whether a token's weights are divided by their sum, and what they are multiplied by.
  bool normalize = false;
  double scale = 1;
  /// Width of the expert that all tokens share, 0 for none, and whether a sigmoid of its own scales its output.
  int64_t sharedIntermediateSize = 0;
  bool sharedGate = false;
  /// Whether a bias, which each step moves against the loads of the experts, is added to the scores that choose.
  bool correctionBias = false;
  /// Factor of the loss that evens out experts; 0 for no such loss.
  double balanceLoss = 0;
};

/// A Qwen3 decoder: Qwen3ForCausalLM, or Qwen3MoeForCausalLM, whose layers may have experts.
struct ModelConfig {
  int64_t vocabularySize = 0;
  int64_t hiddenSize = 0;
  int64_t intermediateSize = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t keyValueHeads = 0;
  int64_t headDim = 0;
  /// The longest sequence the model is made for; none when the file does not say.
  std::optional<int64_t> maxPositions;
  double rmsNormEpsilon = 0;
  double ropeTheta = 0;
  /// Standard deviation of the first values of weight matrices.
  double initializerRange = 0;
  /// Whether the output projection is the embedding table.
  bool tiedEmbedding = false;
  /// Where a tanh caps the logits of the output projection; 0 for nowhere.
  double logitSoftcap = 0;
  ExpertConfig experts;
  /// For each layer whether it has experts; none of them when empty.
  std::vector<bool> sparse;

  bool isSparse(int64_t layer) const { return !sparse.empty() && sparse[layer]; }
};

/// Reads a config.json. A field that is missing or wrong is an error that names it, its value and what is allowed; a
/// field that nobody reads is a warning on `warnings`.
llvm::Expected<ModelConfig> parseConfig(const SourceText &source, llvm::raw_ostream &warnings);

} // namespace mlir::plateau::importer

#endif // PLATEAU_IMPORT_CONFIG_H
