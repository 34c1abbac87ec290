//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/VocabData.h"
#include "Numbers.h"
#include "plateau/Bench/VocabMethods.h"
#include "plateau/Run/ParameterInit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;

/// So many elements of the gradients of a rank are compared.
static constexpr int64_t sampled = 4096;

llvm::Error bench::writeVocabData(ArrayRef<StepExecutor *> executors, const VocabOptions &options) {
  auto write = [&](int rank, unsigned index, ArrayRef<char> bytes) -> llvm::Error {
    for (StepExecutor *executor : executors)
      if (auto error = executor->writeArgument(rank, index, bytes))
        return error;
    return llvm::Error::success();
  };
  auto draw = [&](StringRef name, int rank, int64_t elements, double deviation) {
    return drawMatrix(options.seed, name, rank, elements, deviation, options.isBF16);
  };
  for (int rank = 0; rank < options.ranks; ++rank) {
    if (auto error = write(rank, argument::X, draw("x", rank, options.tokens * options.hidden, 1)))
      return error;
    int64_t elements = options.getShardRows() * options.hidden;
    if (auto error = write(rank, argument::Table, draw("table", rank, elements, 1 / std::sqrt(double(options.hidden)))))
      return error;
    std::vector<int32_t> labels(options.tokens);
    run::NumberStream stream(options.seed, ("labels." + Twine(rank)).str());
    for (auto [i, label] : llvm::enumerate(labels))
      label = stream.getBelow(i, options.vocabulary);
    if (auto error = write(rank, argument::Labels, toBytes(labels)))
      return error;
    std::vector<float> cotangents(options.tokens, 1.0 / (double(options.tokens) * options.ranks));
    if (auto error = write(rank, argument::Cotangents, toBytes(cotangents)))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<VocabValues>> bench::readVocabValues(StepExecutor &executor) {
  std::vector<VocabValues> all;
  for (int rank = 0; rank < executor.getRanks(); ++rank) {
    VocabValues &values = all.emplace_back();
    values.losses.resize(executor.getResultBytes(result::Losses) / sizeof(float));
    std::vector<float> gradients(executor.getArgumentBytes(argument::Gradients) / sizeof(float));
    if (auto error = executor.readResult(rank, result::Losses, toMutableBytes(values.losses)))
      return error;
    if (auto error = executor.readArgument(rank, argument::Gradients, toMutableBytes(gradients)))
      return error;
    int64_t count = gradients.size(), step = std::max<int64_t>(count / sampled, 1);
    for (int64_t i = 0; i < count; i += step)
      values.gradients.push_back(gradients[i]);
  }
  return all;
}

llvm::Error bench::compareVocabValues(ArrayRef<VocabValues> first, StringRef firstName, ArrayRef<VocabValues> other,
                                      StringRef otherName, bool isBF16) {
  for (auto [rank, values] : llvm::enumerate(first)) {
    if (auto error = compareNumbers(values.losses, firstName, other[rank].losses, otherName, "loss", rank, 1e-5))
      return error;
    if (auto error = compareNumbers(values.gradients, firstName, other[rank].gradients, otherName, "gradient sample",
                                    rank, isBF16 ? 3e-2 : 1e-4))
      return error;
  }
  return llvm::Error::success();
}
