//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/EntryRun.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/MemoryLimits.h"
#include "plateau/Run/ParameterInit.h"
#include "plateau/Run/StepSignature.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

static constexpr int64_t maxPrintedElements = 64;

static llvm::Error checkType(Type type, llvm::StringRef what, unsigned index) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && tensor.hasStaticShape() &&
      (tensor.getElementType().isF32() || tensor.getElementType().isBF16() || tensor.getElementType().isInteger(32)) &&
      moe::countElements(tensor.getShape()))
    return llvm::Error::success();
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return makeError("{0} {1} is {2}; only static tensors of f32, bf16 and i32, of at most 2^60 elements, can be passed",
                   what, index, text);
}

template <typename Number>
static Bytes toBytes(llvm::ArrayRef<Number> numbers) {
  const char *data = reinterpret_cast<const char *>(numbers.data());
  return Bytes(data, data + numbers.size() * sizeof(Number));
}

static llvm::Expected<Bytes> getGivenValues(func::FuncOp function, unsigned index, Attribute attr) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  auto values = dyn_cast<DenseElementsAttr>(attr);
  if (!values || values.getType() != type)
    return makeError("argument {0}: plateau.values must be dense elements of the argument's own type", index);
  llvm::ArrayRef<char> raw = values.getRawData();
  if (!values.isSplat())
    return Bytes(raw.begin(), raw.end());
  Bytes bytes;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  return bytes;
}

static std::optional<moe::Role> getRole(func::FuncOp function, unsigned index) {
  if (auto role = function.getArgAttrOfType<moe::RoleAttr>(index, "moe.role"))
    return role.getValue();
  return std::nullopt;
}

static llvm::Expected<Bytes> drawIntegers(func::FuncOp function, unsigned index, const NumberStream &stream,
                                          int64_t elements) {
  std::vector<int32_t> values(elements);
  std::optional<moe::Role> role = getRole(function, index);
  if (role == moe::Role::Starts)
    return toBytes<int32_t>(values);
  if (role == moe::Role::Step)
    return toBytes<int32_t>(std::vector<int32_t>(elements, 1));
  if (role == moe::Role::Positions) {
    for (auto [i, value] : llvm::enumerate(values))
      value = i;
    return toBytes<int32_t>(values);
  }
  auto below = function.getArgAttrOfType<IntegerAttr>(index, "plateau.below");
  int64_t bound = below ? below.getInt() : 2;
  if (bound < 1 || bound > int64_t(INT32_MAX) + 1)
    return makeError("argument {0}: plateau.below is {1}; it must be from 1 to 2^31", index, bound);
  for (auto [i, value] : llvm::enumerate(values))
    value = stream.getBelow(i, bound);
  return toBytes<int32_t>(values);
}

/// Arguments and results can be held by this machine.
static llvm::Error checkSignature(func::FuncOp function) {
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (auto error = checkType(type, "argument", index))
      return error;
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (auto error = checkType(type, "result", index))
      return error;
  auto memory = readSystemMemory();
  if (!memory) {
    llvm::consumeError(memory.takeError());
    return llvm::Error::success();
  }
  int64_t room = memory->getUsableBytes();
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    room -= tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
    if (room < 0)
      return makeError("arguments and results take more than the {0} bytes that this machine can give",
                       memory->getUsableBytes());
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<Bytes>> run::drawArguments(func::FuncOp function, uint64_t seed) {
  if (auto error = checkSignature(function))
    return error;
  std::vector<Bytes> arguments;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
    NumberStream stream(seed, "argument" + std::to_string(index));
    if (Attribute values = function.getArgAttr(index, "plateau.values")) {
      auto given = getGivenValues(function, index, values);
      if (!given)
        return given.takeError();
      arguments.push_back(std::move(*given));
      continue;
    }
    if (type.getElementType().isInteger(32)) {
      auto drawn = drawIntegers(function, index, stream, type.getNumElements());
      if (!drawn)
        return drawn.takeError();
      arguments.push_back(std::move(*drawn));
      continue;
    }
    std::vector<float> values(type.getNumElements());
    stream.fillNormal(0, 1, values);
    if (getRole(function, index) == moe::Role::SecondMoment || getRole(function, index) == moe::Role::LearningRate)
      for (float &value : values)
        value = std::fabs(value);
    if (type.getElementType().isF32()) {
      arguments.push_back(toBytes<float>(values));
    } else {
      std::vector<uint16_t> rounded(values.size());
      llvm::transform(values, rounded.begin(), roundToBF16);
      arguments.push_back(toBytes<uint16_t>(rounded));
    }
  }
  return arguments;
}

llvm::Expected<std::vector<std::vector<Bytes>>> run::runOnce(StepExecutor &executor, llvm::ArrayRef<Bytes> arguments) {
  for (int rank = 0; rank < executor.getRanks(); ++rank)
    for (auto [index, bytes] : llvm::enumerate(arguments))
      if (auto error = executor.writeArgument(rank, index, bytes))
        return error;
  if (auto error = executor.run())
    return error;
  std::vector<std::vector<Bytes>> results(executor.getRanks());
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
static llvm::Error checkSameBits(StepExecutor &executor, const std::vector<std::vector<Bytes>> &first,
                                 const std::vector<std::vector<Bytes>> &other, int runNumber) {
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

static llvm::Expected<std::vector<std::vector<Bytes>>> runRepeatedly(StepExecutor &executor,
                                                                     llvm::ArrayRef<Bytes> arguments, int repeat) {
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

llvm::Error run::runEntry(Executor &executor, llvm::ArrayRef<Bytes> arguments, int repeat, llvm::raw_ostream &os) {
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

llvm::Error run::compareEntry(Executor &tested, Executor &reference, llvm::ArrayRef<Bytes> arguments, double tolerance,
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
