//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Numbers.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/ParameterInit.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir::plateau;
using namespace mlir::plateau::bench;
using llvm::ArrayRef;
using llvm::StringRef;

/// So many normal numbers are drawn, and then come again: billions of them would take longer than what is measured. It
/// is a prime, so that rows of a matrix differ.
static constexpr int64_t period = 1048573;

std::vector<char> bench::drawMatrix(uint64_t seed, StringRef name, int rank, int64_t elements, double deviation,
                                    bool isBF16) {
  std::vector<float> drawn(std::min(period, elements));
  run::NumberStream(seed, (name + "." + llvm::Twine(rank)).str()).fillNormal(0, deviation, drawn);
  std::vector<char> bytes;
  if (isBF16) {
    std::vector<uint16_t> rounded(drawn.size());
    llvm::transform(drawn, rounded.begin(), run::roundToBF16);
    bytes.assign(toBytes(rounded).begin(), toBytes(rounded).end());
  } else {
    bytes.assign(toBytes(drawn).begin(), toBytes(drawn).end());
  }
  size_t all = elements * (isBF16 ? 2 : 4), one = bytes.size();
  bytes.resize(all);
  for (size_t done = one; done < all; done += std::min(one, all - done))
    std::copy_n(bytes.begin(), std::min(one, all - done), bytes.begin() + done);
  return bytes;
}

static std::string formatNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", value);
  return text;
}

llvm::Error bench::compareNumbers(ArrayRef<float> first, StringRef firstName, ArrayRef<float> other,
                                  StringRef otherName, StringRef what, int rank, double tolerance) {
  double largest = 0;
  for (float value : first)
    largest = std::max<double>(largest, std::fabs(value));
  for (auto [i, a, b] : llvm::enumerate(first, other))
    if (!(std::fabs(double(a) - b) <= tolerance * largest))
      return run::makeError("rank {0}: {1} {2} is {3} by {4} and {5} by {6}: more than {7} of the largest, {8}, apart",
                            rank, what, i, formatNumber(a), firstName, formatNumber(b), otherName,
                            formatNumber(tolerance), formatNumber(largest));
  return llvm::Error::success();
}

double bench::getMedian(std::vector<double> values) {
  llvm::sort(values);
  size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}
