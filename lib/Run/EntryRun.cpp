//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/EntryRun.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/ParameterInit.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

static constexpr int64_t maxPrintedElements = 64;

llvm::Expected<RankBytes> run::runOnce(StepExecutor &executor, const RankBytes &arguments) {
  for (int rank = 0; rank < executor.getRanks(); ++rank)
    for (auto [index, bytes] : llvm::enumerate(arguments[rank]))
      if (auto error = executor.writeArgument(rank, index, bytes))
        return error;
  if (auto error = executor.run())
    return error;
  RankBytes results(executor.getRanks());
  for (int rank = 0; rank < executor.getRanks(); ++rank)
    for (unsigned index = 0; index < executor.getFunction().getNumResults(); ++index) {
      Bytes bytes(executor.getResultBytes(index));
      if (auto error = readOutput(executor, rank, index, bytes))
        return error;
      results[rank].push_back(std::move(bytes));
    }
  return results;
}

/// The elements of a result as float64, which holds every value of f32, bf16 and i32.
static std::vector<double> toDoubles(Type element, llvm::ArrayRef<char> bytes) {
  std::vector<double> values;
  auto read = [&](auto number, auto convert) {
    for (size_t i = 0; i < bytes.size(); i += sizeof(number)) {
      std::memcpy(&number, bytes.data() + i, sizeof(number));
      values.push_back(convert(number));
    }
  };
  if (element.isF32())
    read(float(), [](float value) { return value; });
  else if (element.isBF16())
    read(uint16_t(), extendBF16);
  else
    read(int32_t(), [](int32_t value) { return value; });
  return values;
}

/// "name/0", or "rank 1 name/0" when there are several ranks.
static std::string getResultName(StepExecutor &executor, int rank, unsigned index) {
  std::string prefix = executor.getRanks() > 1 ? "rank " + std::to_string(rank) + " " : "";
  return prefix + executor.getFunction().getName().str() + "/" + std::to_string(index);
}

static std::string formatElement(Type element, double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (element.isInteger())
    os << static_cast<int64_t>(value);
  else
    os << llvm::format("%.9g", value);
  return text;
}

static void printResult(llvm::raw_ostream &os, RankedTensorType type, llvm::ArrayRef<char> bytes) {
  std::vector<double> values = toDoubles(type.getElementType(), bytes);
  os << type;
  if (type.getNumElements() <= maxPrintedElements) {
    os << " = [";
    llvm::interleaveComma(values, os, [&](double value) { os << formatElement(type.getElementType(), value); });
    os << "]\n";
    return;
  }
  uint64_t checksum = 0xCBF29CE484222325; // FNV-1a
  for (unsigned char byte : bytes)
    checksum = (checksum ^ byte) * 0x100000001B3;
  double largest = 0;
  for (double value : values)
    largest = std::isnan(largest) || std::isnan(value) ? NAN : std::max(largest, std::fabs(value));
  os << llvm::formatv(" checksum {0:x-16} max-abs {1}\n", checksum, formatElement(type.getElementType(), largest));
}

static std::string formatIndex(llvm::ArrayRef<int64_t> shape, int64_t element) {
  llvm::SmallVector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; element /= shape[i])
    index[i] = element % shape[i];
  return llvm::formatv("[{0:$[, ]}]", llvm::make_range(index.begin(), index.end())).str();
}

/// Fails when two runs gave other bits.
static llvm::Error checkSameBits(StepExecutor &executor, const RankBytes &first, const RankBytes &other,
                                 int runNumber) {
  for (auto [rank, results] : llvm::enumerate(first))
    for (auto [index, bytes] : llvm::enumerate(results)) {
      if (bytes == other[rank][index])
        continue;
      auto type = cast<RankedTensorType>(executor.getFunction().getResultTypes()[index]);
      size_t byte = std::mismatch(bytes.begin(), bytes.end(), other[rank][index].begin()).first - bytes.begin();
      int64_t element = byte * 8 / type.getElementTypeBitWidth();
      Type elementType = type.getElementType();
      return makeError("{0}: element {1} is {2} in run 1 and {3} in run {4}", getResultName(executor, rank, index),
                       formatIndex(type.getShape(), element),
                       formatElement(elementType, toDoubles(elementType, bytes)[element]),
                       formatElement(elementType, toDoubles(elementType, other[rank][index])[element]), runNumber);
    }
  return llvm::Error::success();
}

static llvm::Expected<RankBytes> runRepeatedly(StepExecutor &executor, const RankBytes &arguments, int repeat) {
  auto first = runOnce(executor, arguments);
  if (!first)
    return first.takeError();
  for (int i = 2; i <= repeat; ++i) {
    auto next = runOnce(executor, arguments);
    if (!next)
      return next.takeError();
    if (auto error = checkSameBits(executor, *first, *next, i))
      return error;
  }
  return first;
}

llvm::Error run::runEntry(Executor &executor, const RankBytes &arguments, int repeat, llvm::raw_ostream &os) {
  StepExecutor &step = *executor.step;
  auto results = runRepeatedly(step, arguments, repeat);
  if (!results)
    return results.takeError();
  for (auto [rank, list] : llvm::enumerate(*results))
    for (auto [index, bytes] : llvm::enumerate(list)) {
      auto type = cast<RankedTensorType>(step.getFunction().getResultTypes()[index]);
      os << getResultName(step, rank, index) << ": ";
      if (executor.getDigest)
        os << type << llvm::formatv(" digest {0:x-16}\n", executor.getDigest(rank, index));
      else
        printResult(os, type, bytes);
    }
  return llvm::Error::success();
}

namespace {
/// The element where two tensors are furthest apart.
struct Worst {
  double difference = 0, largest = 0;
  int64_t element = 0;
  int64_t notFinite = 0; ///< In the reference.

  double getRatio() const { return difference == 0 ? 0 : difference / largest; }
};
} // namespace

static Worst findWorst(llvm::ArrayRef<double> tested, llvm::ArrayRef<double> reference) {
  Worst worst;
  for (auto [i, a, b] : llvm::enumerate(tested, reference)) {
    if (std::isfinite(b))
      worst.largest = std::max(worst.largest, std::fabs(b));
    else
      ++worst.notFinite;
    bool same = a == b || (std::isnan(a) && std::isnan(b));
    double difference = same ? 0 : std::isfinite(a) && std::isfinite(b) ? std::fabs(a - b) : INFINITY;
    if (difference > worst.difference) {
      worst.difference = difference;
      worst.element = i;
    }
  }
  return worst;
}

llvm::Error run::compareEntry(Executor &tested, Executor &reference, const RankBytes &arguments, double tolerance,
                              int repeat, llvm::raw_ostream &os) {
  auto expected = runOnce(*reference.step, arguments);
  if (!expected)
    return llvm::joinErrors(makeError("the interpreter failed"), expected.takeError());
  auto results = runRepeatedly(*tested.step, arguments, repeat);
  if (!results)
    return results.takeError();
  for (auto [rank, list] : llvm::enumerate(*results))
    for (auto [index, bytes] : llvm::enumerate(list)) {
      auto type = cast<RankedTensorType>(tested.step->getFunction().getResultTypes()[index]);
      Type element = type.getElementType();
      std::vector<double> a = toDoubles(element, bytes);
      std::vector<double> b =
          reference.getValues ? reference.getValues(rank, index) : toDoubles(element, (*expected)[rank][index]);
      std::string name = getResultName(*tested.step, rank, index);
      if (a.size() != b.size())
        return makeError("{0}: the interpreter gave {1} elements and the compiled code {2}", name, b.size(), a.size());
      Worst worst = findWorst(a, b);
      double allowed = element.isInteger() ? 0 : tolerance;
      std::string ratio = formatElement(Float64Type::get(type.getContext()), worst.getRatio());
      if (!(worst.difference <= allowed * worst.largest))
        return makeError("{0}: element {1} is {2} compiled and {3} interpreted: max|a-b|/max|b| is {4}, more than {5}",
                         name, formatIndex(type.getShape(), worst.element), formatElement(element, a[worst.element]),
                         formatElement(Float64Type::get(type.getContext()), b[worst.element]), ratio,
                         formatElement(Float64Type::get(type.getContext()), allowed));
      os << name << ": " << type << " max|a-b|/max|b| " << ratio;
      if (worst.notFinite > 0)
        os << ", " << worst.notFinite << " of " << b.size() << " elements not finite";
      os << "\n";
    }
  return llvm::Error::success();
}
