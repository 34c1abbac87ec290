//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensors of a model that steps change, under the names and in the shapes and order of its Hugging Face checkpoint.
// Programs are built from this list and counts are sums over it.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_IMPORT_MODEL_H
#define PLATEAU_IMPORT_MODEL_H

#include "plateau/Import/Config.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace mlir::plateau::importer {

/// What a tensor is counted under.
enum class ParameterGroup { Embedding, LmHead, Attention, Router, Experts, SharedExperts, DenseFfn, Norms };

inline constexpr ParameterGroup allParameterGroups[] = {
    ParameterGroup::Embedding, ParameterGroup::LmHead,        ParameterGroup::Attention, ParameterGroup::Router,
    ParameterGroup::Experts,   ParameterGroup::SharedExperts, ParameterGroup::DenseFfn,  ParameterGroup::Norms};

/// The word for a group in counts: "dense_ffn".
llvm::StringRef getName(ParameterGroup group);

/// Along what a parameter is divided over ranks: its experts, or its rows of the vocabulary.
enum class Shard { None, Experts, Vocabulary };

struct Parameter {
  /// As in checkpoints: "model.layers.3.self_attn.q_proj.weight".
  std::string name;
  llvm::SmallVector<int64_t, 3> shape;
  ParameterGroup group;
  /// The layer it belongs to, if any.
  std::optional<int64_t> layer;
  Shard shard = Shard::None;
  /// What is not trained is f32 state that a step moves by a rule of its own.
  bool isTrained = true;

  int64_t getElements() const;
  /// Norm weights start as ones and do not decay; everything else starts at random around zero and decays.
  bool isNorm() const { return group == ParameterGroup::Norms; }
};

/// The tensors in checkpoint order. Fails when the bytes of an f32 copy of all of them would pass 63 bits.
llvm::Expected<std::vector<Parameter>> listParameters(const ModelConfig &config);

/// Numbers of weight elements.
struct ParameterCounts {
  int64_t total = 0;
  int64_t byGroup[std::size(allParameterGroups)] = {};
  /// Elements that one token makes use of.
  int64_t activePerToken = 0;
  /// Layers with a router.
  int64_t moeLayers = 0;
};

ParameterCounts countParameters(const ModelConfig &config, llvm::ArrayRef<Parameter> parameters);

/// As one JSON object on one line.
void printCountsAsJson(llvm::raw_ostream &os, const ParameterCounts &counts);
/// As a table.
void printCounts(llvm::raw_ostream &os, const ParameterCounts &counts);

} // namespace mlir::plateau::importer

#endif // PLATEAU_IMPORT_MODEL_H
