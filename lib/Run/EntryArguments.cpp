//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/EntryArguments.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/MemoryLimits.h"
#include "plateau/Run/ParameterInit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

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

static llvm::Expected<Bytes> getGivenValues(func::FuncOp function, unsigned index, Attribute attr, int rank,
                                            int ranks) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  llvm::SmallVector<int64_t> all = {ranks};
  llvm::append_range(all, type.getShape());
  auto values = dyn_cast<DenseElementsAttr>(attr);
  if (!values || (values.getType() != type && values.getType() != type.clone(all)))
    return makeError("argument {0}: plateau.values must be dense elements of the argument's own type, or of that type "
                     "with a dimension for {1} ranks in front",
                     index, ranks);
  llvm::ArrayRef<char> raw = values.getRawData();
  if (!values.isSplat()) {
    size_t size = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    raw = raw.slice(values.getType() == type ? 0 : rank * size, size);
    return Bytes(raw.begin(), raw.end());
  }
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

/// What a driver gives all ranks alike, or the function says is so.
static bool isSameOnAllRanks(func::FuncOp function, unsigned index) {
  std::optional<moe::Role> role = getRole(function, index);
  return role == moe::Role::LearningRate || role == moe::Role::Step || function.getArgAttr(index, "plateau.same");
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

/// Arguments and results of all ranks can be held by this machine.
static llvm::Error checkSignature(func::FuncOp function, int ranks) {
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
    int64_t bytes = tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
    if (bytes > room / ranks)
      return makeError("arguments and results take more than the {0} bytes that this machine can give",
                       memory->getUsableBytes());
    room -= ranks * bytes;
  }
  return llvm::Error::success();
}

/// The stream of number `copy` of an argument: of a rank, or of a part of what ranks divide.
static NumberStream getStream(uint64_t seed, unsigned index, int64_t copy) {
  return NumberStream(seed, "argument" + std::to_string(index) + (copy > 0 ? "." + std::to_string(copy) : ""));
}

/// Which part of a parameter a rank has, 0 when every rank has all of it; and how many of its rows are no padding.
static llvm::Expected<std::pair<int64_t, int64_t>> getPart(func::FuncOp function, unsigned index,
                                                           moe::ParameterAttr parameter, llvm::ArrayRef<int64_t> shape,
                                                           int rank, int ranks) {
  int64_t rows = shape.empty() ? 1 : shape.front();
  if (!parameter.getShard())
    return std::pair(0, rows);
  FailureOr<Grid> grid = Grid::lookup(function, parameter.getShard());
  if (failed(grid) || grid->getRanks() != ranks)
    return makeError("argument {0}: parameter '{1}' is divided by grid {2}, and there is none of {3} ranks", index,
                     parameter.getName(), parameter.getShard().getValue(), ranks);
  int64_t part = rank % grid->getShards(), whole = parameter.getWholeRows(grid->getShards(), rows);
  return std::pair(part, std::clamp<int64_t>(whole - part * rows, 0, rows));
}

/// Zeros for what is behind the first `rows` rows.
static void clearPadding(llvm::MutableArrayRef<float> values, llvm::ArrayRef<int64_t> shape, int64_t rows) {
  if (!shape.empty() && rows < shape.front())
    llvm::fill(values.drop_front(rows * (values.size() / shape.front())), 0.0f);
}

static llvm::Expected<std::vector<float>> drawFloats(func::FuncOp function, unsigned index, uint64_t seed, int rank,
                                                     int ranks) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  std::vector<float> values(type.getNumElements());
  auto layout = function.getArgAttrOfType<moe::LayoutAttr>(index, "moe.layout");
  auto parameter = function.getArgAttrOfType<moe::ParameterAttr>(index, "moe.parameter");
  int64_t copy = layout || isSameOnAllRanks(function, index) ? 0 : rank;
  int64_t rows = type.getRank() > 0 ? type.getDimSize(0) : 1;
  if (parameter) {
    auto part = getPart(function, index, parameter, type.getShape(), rank, ranks);
    if (!part)
      return part.takeError();
    std::tie(copy, rows) = *part;
  }
  getStream(seed, index, copy).fillNormal(0, 1, values);
  clearPadding(values, type.getShape(), rows);
  for (moe::MemberAttr member : layout ? layout.getMembers() : llvm::ArrayRef<moe::MemberAttr>()) {
    auto part = getPart(function, index, member.getParameter(), member.getShape(), rank, ranks);
    if (!part)
      return part.takeError();
    auto numbers = llvm::MutableArrayRef(values).slice(member.getOffset(), member.getElements());
    if (part->first > 0)
      getStream(seed, index, part->first).fillNormal(0, 1, numbers, member.getOffset());
    clearPadding(numbers, member.getShape(), part->second);
  }
  if (getRole(function, index) == moe::Role::SecondMoment || getRole(function, index) == moe::Role::LearningRate)
    for (float &value : values)
      value = std::fabs(value);
  return values;
}

static llvm::Expected<Bytes> drawArgument(func::FuncOp function, unsigned index, uint64_t seed, int rank, int ranks) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  if (Attribute values = function.getArgAttr(index, "plateau.values"))
    return getGivenValues(function, index, values, rank, ranks);
  if (type.getElementType().isInteger(32))
    return drawIntegers(function, index, getStream(seed, index, isSameOnAllRanks(function, index) ? 0 : rank),
                        type.getNumElements());
  auto values = drawFloats(function, index, seed, rank, ranks);
  if (!values)
    return values.takeError();
  if (type.getElementType().isF32())
    return toBytes<float>(*values);
  std::vector<uint16_t> rounded(values->size());
  llvm::transform(*values, rounded.begin(), roundToBF16);
  return toBytes<uint16_t>(rounded);
}

llvm::Expected<RankBytes> run::drawArguments(func::FuncOp function, uint64_t seed, int ranks) {
  if (auto error = checkSignature(function, ranks))
    return error;
  RankBytes arguments(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      auto drawn = drawArgument(function, index, seed, rank, ranks);
      if (!drawn)
        return drawn.takeError();
      arguments[rank].push_back(std::move(*drawn));
    }
  return arguments;
}
