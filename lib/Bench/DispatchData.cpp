//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/DispatchData.h"
#include "Numbers.h"
#include "plateau/Bench/DispatchText.h"
#include "plateau/Run/ParameterInit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;

/// About so many elements of each result of a rank are compared.
static constexpr int64_t sampled = 1 << 16;

std::string RoutingProfile::getName() const {
  return isBalanced() ? "balanced" : std::to_string(percent) + "/" + std::to_string(hotExperts);
}

std::vector<int32_t> bench::getProfileIds(const DispatchOptions &options) {
  int64_t hot = options.profile.hotExperts, hotTokens = options.tokens * options.profile.percent / 100;
  std::vector<int32_t> ids;
  ids.reserve(options.tokens * options.topK);
  for (int64_t i = 0; i < options.tokens; ++i)
    for (int64_t j = 0; j < options.topK; ++j)
      ids.push_back(i < hotTokens && hot > 0 ? j % hot : hot + (i + j) % (options.experts - hot));
  return ids;
}

llvm::Error bench::writeDispatchData(ArrayRef<StepExecutor *> executors, const DispatchOptions &options) {
  using namespace dispatch_argument;
  auto write = [&](int rank, unsigned index, ArrayRef<char> bytes) -> llvm::Error {
    for (StepExecutor *executor : executors)
      if (auto error = executor->writeArgument(rank, index, bytes))
        return error;
    return llvm::Error::success();
  };
  std::vector<int32_t> ids = getProfileIds(options);
  std::vector<float> weights(ids.size(), 1.0 / options.topK);
  int64_t rows = options.tokens * options.hidden,
          matrix = options.getLocalExperts() * options.expertHidden * options.hidden;
  for (int rank = 0; rank < options.ranks; ++rank) {
    auto draw = [&](unsigned index, StringRef name, int64_t elements, double deviation) {
      return write(rank, index, drawMatrix(options.seed, name, rank, elements, deviation, options.isBF16));
    };
    if (auto error = draw(X, "x", rows, 1))
      return error;
    if (auto error = write(rank, RouteWeights, toBytes(weights)))
      return error;
    if (auto error = write(rank, Ids, toBytes(ids)))
      return error;
    if (auto error = draw(W13, "w13", 2 * matrix, 1 / std::sqrt(double(options.hidden))))
      return error;
    if (auto error = draw(W2, "w2", matrix, 1 / std::sqrt(double(options.expertHidden))))
      return error;
    if (options.forwardOnly)
      continue;
    if (auto error = draw(OutputGrad, "dy", rows, 1))
      return error;
  }
  return llvm::Error::success();
}

/// Elements `begin` … `end` − 1 of numbers, or some of them. Their distance is odd, so that they are of many columns.
static std::vector<float> sample(ArrayRef<float> numbers, int64_t begin, int64_t end) {
  int64_t step = std::max<int64_t>((end - begin) / sampled, 1) | 1;
  std::vector<float> some;
  for (int64_t i = begin; i < end; i += step)
    some.push_back(numbers[i]);
  return some;
}

llvm::Expected<std::vector<DispatchValues>> bench::readDispatchValues(StepExecutor &executor,
                                                                      const DispatchOptions &options) {
  using namespace dispatch_argument;
  int64_t rows = options.tokens * options.hidden, slots = options.tokens * options.topK,
          matrix = options.getLocalExperts() * options.expertHidden * options.hidden;
  std::vector<DispatchValues> all;
  for (int rank = 0; rank < executor.getRanks(); ++rank) {
    auto &results = all.emplace_back().results;
    std::vector<char> bytes(executor.getArgumentBytes(Rows));
    if (auto error = executor.readArgument(rank, Rows, bytes))
      return error;
    std::vector<float> numbers(bytes.size() / options.getElementBytes());
    for (auto [i, number] : llvm::enumerate(numbers)) {
      if (!options.isBF16) {
        std::memcpy(&number, &bytes[4 * i], 4);
        continue;
      }
      uint16_t bits;
      std::memcpy(&bits, &bytes[2 * i], 2);
      number = run::extendBF16(bits);
    }
    results.emplace_back("y", sample(numbers, 0, rows));
    if (options.forwardOnly)
      continue;
    results.emplace_back("dx", sample(numbers, rows, 2 * rows));
    numbers.resize(executor.getArgumentBytes(Grads) / sizeof(float));
    if (auto error = executor.readArgument(rank, Grads, toMutableBytes(numbers)))
      return error;
    results.emplace_back("dp", sample(numbers, 0, slots));
    results.emplace_back("dW13", sample(numbers, slots, slots + 2 * matrix));
    results.emplace_back("dW2", sample(numbers, slots + 2 * matrix, slots + 3 * matrix));
  }
  return all;
}

llvm::Error bench::compareDispatchValues(ArrayRef<DispatchValues> first, StringRef firstName,
                                         ArrayRef<DispatchValues> other, StringRef otherName, bool isBF16) {
  for (auto [rank, values] : llvm::enumerate(first))
    for (auto [own, others] : llvm::zip_equal(values.results, other[rank].results))
      if (auto error = compareNumbers(own.second, firstName, others.second, otherName, (own.first + " sample").str(),
                                      rank, isBF16 ? 3e-2 : 1e-4))
        return error;
  return llvm::Error::success();
}
