//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Cell.h"
#include "Hash.h"
#include "plateau/Interpreter/Interpreter.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

// --- Between buffers and tensors ---

/// Calls `function` with each element of a buffer of elements of `Stored`.
template <typename Stored, typename Function>
static void forEachStored(ArrayRef<char> bytes, Function &&function) {
  for (size_t index = 0; index < bytes.size() / sizeof(Stored); ++index) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + index * sizeof(Stored), sizeof(Stored));
    function(stored);
  }
}

/// The elements of a buffer as numbers; bf16 is the upper half of f32.
static std::vector<double> decodeNumbers(Type element, ArrayRef<char> bytes) {
  std::vector<double> numbers;
  if (element.isF64())
    forEachStored<double>(bytes, [&](double stored) { numbers.push_back(stored); });
  else if (element.isF32())
    forEachStored<float>(bytes, [&](float stored) { numbers.push_back(stored); });
  else
    forEachStored<uint16_t>(bytes,
                            [&](uint16_t stored) { numbers.push_back(llvm::bit_cast<float>(uint32_t(stored) << 16)); });
  return numbers;
}

static Tensor decode(RankedTensorType type, Mode mode, ArrayRef<char> bytes) {
  if (isa<FloatType>(type.getElementType())) {
    std::vector<double> numbers = decodeNumbers(type.getElementType(), bytes);
    if (mode == Mode::Float64)
      return Tensor::make(type.getShape(), std::move(numbers));
    auto elements = llvm::map_range(numbers, Field::fromDouble);
    return Tensor::make(type.getShape(), std::vector<Field>(elements.begin(), elements.end()));
  }
  std::vector<int64_t> integers;
  if (type.getElementType().isInteger(64))
    forEachStored<int64_t>(bytes, [&](int64_t stored) { integers.push_back(stored); });
  else
    forEachStored<int32_t>(bytes, [&](int32_t stored) { integers.push_back(stored); });
  return Tensor::make(type.getShape(), std::move(integers));
}

template <typename Stored>
static void store(MutableArrayRef<char> bytes, int64_t index, Stored stored) {
  std::memcpy(bytes.data() + index * sizeof(Stored), &stored, sizeof(Stored));
}

static void encodeNumber(Type element, double number, MutableArrayRef<char> bytes, int64_t index) {
  if (element.isF64())
    return store(bytes, index, number);
  if (element.isF32())
    return store(bytes, index, static_cast<float>(number));
  APFloat narrow(number);
  bool losesInfo;
  narrow.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &losesInfo);
  store(bytes, index, static_cast<uint16_t>(narrow.bitcastToAPInt().getZExtValue()));
}

static double toDouble(double number) { return number; }
static double toDouble(Field element) {
  return element.isUndefined() ? getUndefined<double>() : static_cast<double>(element.getSigned());
}

static void encode(Type element, const Tensor &tensor, MutableArrayRef<char> bytes) {
  tensor.visit([&](auto elements) {
    for (int64_t index = 0, size = elements.size(); index < size; ++index)
      if constexpr (!std::is_same_v<typename decltype(elements)::value_type, int64_t>)
        encodeNumber(element, toDouble(elements[index]), bytes, index);
      else if (element.isInteger(64))
        store(bytes, index, elements[index]);
      else
        store(bytes, index, static_cast<int32_t>(elements[index]));
  });
}

// --- The executor ---

static bool isBufferType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !getObstacle(type) &&
         (isa<Float32Type, BFloat16Type, Float64Type>(tensor.getElementType()) ||
          tensor.getElementType().isInteger(32) || tensor.getElementType().isInteger(64));
}

std::unique_ptr<InterpreterExecutor> mlir::plateau::createInterpreterExecutor(func::FuncOp function, int ranks,
                                                                              Interpreter::Mode mode) {
  if (function.isDeclaration()) {
    function.emitOpError("has no body to interpret");
    return nullptr;
  }
  if (ranks < 1) {
    function.emitOpError() << "is to run on " << ranks << " ranks: there must be at least one";
    return nullptr;
  }
  for (auto [name, types] : {std::pair("argument", function.getArgumentTypes()), {"result", function.getResultTypes()}})
    for (auto [index, type] : llvm::enumerate(types))
      if (!isBufferType(type)) {
        function.emitOpError() << name << " #" << index << " is " << type
                               << ": a run needs static tensors of i32, i64, f32, bf16 or f64";
        return nullptr;
      }
  return std::make_unique<InterpreterExecutor>(function, ranks, mode);
}

InterpreterExecutor::InterpreterExecutor(func::FuncOp function, int ranks, Interpreter::Mode mode)
    : StepExecutor(function, ranks), mode(mode) {
  SmallVector<Tensor> initial =
      llvm::map_to_vector(function.getArgumentTypes(), [&](Type type) { return makeUndefined(type, mode); });
  arguments.assign(ranks, initial);
  results.assign(ranks, SmallVector<Tensor>(function.getNumResults()));
}

/// Fails unless rank and index exist and the buffer has the bytes of the type.
static llvm::Error checkBuffer(StringRef what, int rank, int ranks, unsigned index, TypeRange types, size_t bytes) {
  if (rank < 0 || rank >= ranks || index >= types.size())
    return llvm::createStringError("there is no %s #%u on rank %d: the function has %zu on each of %d ranks",
                                   what.str().c_str(), index, rank, types.size(), ranks);
  auto type = cast<RankedTensorType>(types[index]);
  auto expected = static_cast<size_t>(type.getNumElements() * type.getElementTypeBitWidth() / 8);
  if (bytes != expected)
    return llvm::createStringError("%s #%u on rank %d has %zu bytes, and the buffer handed in has %zu",
                                   what.str().c_str(), index, rank, expected, bytes);
  return llvm::Error::success();
}

llvm::Error InterpreterExecutor::writeArgument(int rank, unsigned index, ArrayRef<char> bytes) {
  TypeRange types = function.getArgumentTypes();
  if (llvm::Error error = checkBuffer("argument", rank, ranks, index, types, bytes.size()))
    return error;
  arguments[rank][index] = decode(cast<RankedTensorType>(types[index]), mode, bytes);
  return llvm::Error::success();
}

llvm::Error InterpreterExecutor::readArgument(int rank, unsigned index, MutableArrayRef<char> bytes) {
  TypeRange types = function.getArgumentTypes();
  if (llvm::Error error = checkBuffer("argument", rank, ranks, index, types, bytes.size()))
    return error;
  encode(getElementTypeOrSelf(types[index]), arguments[rank][index], bytes);
  return llvm::Error::success();
}

llvm::Error InterpreterExecutor::readResult(int rank, unsigned index, MutableArrayRef<char> bytes) {
  TypeRange types = function.getResultTypes();
  if (llvm::Error error = checkBuffer("result", rank, ranks, index, types, bytes.size()))
    return error;
  if (!hasRun)
    return llvm::createStringError("result #%u is read before a run has given it a value", index);
  encode(getElementTypeOrSelf(types[index]), results[rank][index], bytes);
  return llvm::Error::success();
}

llvm::Error InterpreterExecutor::run() {
  Evaluator evaluator(ranks, mode, &interrupted);
  auto evaluated = evaluateOnRanks(evaluator, function, arguments);
  if (failed(evaluated))
    return llvm::createStringError("interpreting '%s' stopped at %s", function.getName().str().c_str(),
                                   evaluator.getError().str().c_str());
  results = std::move(*evaluated);
  hasRun = true;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (auto donated = function.getArgAttrOfType<IntegerAttr>(index, "moe.donated"))
      for (int rank = 0; rank < ranks; ++rank)
        arguments[rank][index] = results[rank][donated.getInt()];
  return llvm::Error::success();
}

static uint64_t getDigest(const Tensor &tensor) {
  Hash hash("digest");
  hash.add(tensor.getShape());
  tensor.visit([&](auto elements) { hash.add(elements); });
  return hash.getDigest();
}

uint64_t InterpreterExecutor::getArgumentDigest(int rank, unsigned index) const {
  return getDigest(getArgument(rank, index));
}

uint64_t InterpreterExecutor::getResultDigest(int rank, unsigned index) const {
  return getDigest(getResult(rank, index));
}

uint64_t InterpreterExecutor::getResultDigest(ArrayRef<ResultPart> parts) const {
  Hash hash("digest of parts");
  for (const ResultPart &part : parts)
    getResult(part.rank, part.index).visit([&](auto elements) { hash.add(elements.slice(part.first, part.count)); });
  return hash.getDigest();
}
