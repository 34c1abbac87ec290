//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/VocabData.h"
#include "plateau/Bench/VocabMethods.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/ParameterInit.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;
using run::makeError;

/// So many normal numbers are drawn, and then come again: billions of them would take longer than what is measured. It
/// is a prime, so that rows of a matrix differ.
static constexpr int64_t period = 1048573;
/// So many elements of the gradients of a rank are compared.
static constexpr int64_t sampled = 4096;

static run::NumberStream getStream(const VocabOptions &options, StringRef name, int rank) {
  return run::NumberStream(options.seed, (name + "." + Twine(rank)).str());
}

template <typename Number>
static ArrayRef<char> toBytes(const std::vector<Number> &numbers) {
  return {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(Number)};
}

/// The elements of x or table, in their type.
static std::vector<char> drawMatrix(const VocabOptions &options, StringRef name, int rank, int64_t elements,
                                    double deviation) {
  std::vector<float> drawn(std::min(period, elements));
  getStream(options, name, rank).fillNormal(0, deviation, drawn);
  std::vector<char> bytes;
  if (options.isBF16) {
    std::vector<uint16_t> rounded(drawn.size());
    llvm::transform(drawn, rounded.begin(), run::roundToBF16);
    bytes.assign(toBytes(rounded).begin(), toBytes(rounded).end());
  } else {
    bytes.assign(toBytes(drawn).begin(), toBytes(drawn).end());
  }
  size_t all = elements * options.getElementBytes(), one = bytes.size();
  bytes.resize(all);
  for (size_t done = one; done < all; done += std::min(one, all - done))
    std::copy_n(bytes.begin(), std::min(one, all - done), bytes.begin() + done);
  return bytes;
}

llvm::Error bench::writeVocabData(ArrayRef<StepExecutor *> executors, const VocabOptions &options) {
  auto write = [&](int rank, unsigned index, ArrayRef<char> bytes) -> llvm::Error {
    for (StepExecutor *executor : executors)
      if (auto error = executor->writeArgument(rank, index, bytes))
        return error;
    return llvm::Error::success();
  };
  for (int rank = 0; rank < options.ranks; ++rank) {
    if (auto error = write(rank, argument::X, drawMatrix(options, "x", rank, options.tokens * options.hidden, 1)))
      return error;
    int64_t elements = options.getShardRows() * options.hidden;
    if (auto error = write(rank, argument::Table,
                           drawMatrix(options, "table", rank, elements, 1 / std::sqrt(double(options.hidden)))))
      return error;
    std::vector<int32_t> labels(options.tokens);
    run::NumberStream stream = getStream(options, "labels", rank);
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
    auto bytes = [](std::vector<float> &numbers) {
      return MutableArrayRef<char>(reinterpret_cast<char *>(numbers.data()), numbers.size() * sizeof(float));
    };
    if (auto error = executor.readResult(rank, result::Losses, bytes(values.losses)))
      return error;
    if (auto error = executor.readArgument(rank, argument::Gradients, bytes(gradients)))
      return error;
    int64_t count = gradients.size(), step = std::max<int64_t>(count / sampled, 1);
    for (int64_t i = 0; i < count; i += step)
      values.gradients.push_back(gradients[i]);
  }
  return all;
}

static std::string formatNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", value);
  return text;
}

/// Fails at the first element that differs by more than `tolerance` of the largest one.
static llvm::Error compare(ArrayRef<float> first, StringRef firstName, ArrayRef<float> other, StringRef otherName,
                           StringRef what, int rank, double tolerance) {
  double largest = 0;
  for (float value : first)
    largest = std::max<double>(largest, std::fabs(value));
  for (auto [i, a, b] : llvm::enumerate(first, other))
    if (!(std::fabs(double(a) - b) <= tolerance * largest))
      return makeError("rank {0}: {1} {2} is {3} by {4} and {5} by {6}: more than {7} of the largest, {8}, apart", rank,
                       what, i, formatNumber(a), firstName, formatNumber(b), otherName, formatNumber(tolerance),
                       formatNumber(largest));
  return llvm::Error::success();
}

llvm::Error bench::compareVocabValues(ArrayRef<VocabValues> first, StringRef firstName, ArrayRef<VocabValues> other,
                                      StringRef otherName, bool isBF16) {
  for (auto [rank, values] : llvm::enumerate(first)) {
    if (auto error = compare(values.losses, firstName, other[rank].losses, otherName, "loss", rank, 1e-5))
      return error;
    if (auto error = compare(values.gradients, firstName, other[rank].gradients, otherName, "gradient sample", rank,
                             isBF16 ? 3e-2 : 1e-4))
      return error;
  }
  return llvm::Error::success();
}
