//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/TrainingState.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/ParameterInit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;
using moe::MemberAttr;

static std::string getTensorName(const StateGroup &group, MemberAttr member) {
  llvm::StringRef name = member.getParameter().getName();
  switch (group.role) {
  case moe::Role::FirstMoment:
    return ("optimizer.first." + name).str();
  case moe::Role::SecondMoment:
    return ("optimizer.second." + name).str();
  case moe::Role::Master:
    return ("master." + name).str();
  default:
    return name.str();
  }
}

static llvm::StringRef getDtype(const StateGroup &group) { return group.elementType.isBF16() ? "BF16" : "F32"; }
static int64_t getElementBytes(const StateGroup &group) { return group.elementType.isBF16() ? 2 : 4; }

/// The most parts of any tensor: the ranks before that number hold everything.
static int64_t getHolders(const StepSignature &signature) {
  int64_t holders = 1;
  for (const auto &entry : signature.parts)
    holders = std::max(holders, entry.second);
  return holders;
}

static llvm::Error zeroGroup(StepExecutor &executor, const StateGroup &group) {
  std::vector<char> zeros(group.elements * getElementBytes(group));
  for (int rank = 0; rank < executor.getRanks(); ++rank)
    if (auto error = executor.writeArgument(rank, group.argument, zeros))
      return error;
  return llvm::Error::success();
}

static llvm::Error zeroBuffers(StepExecutor &executor, const StepSignature &signature) {
  for (const StateBuffer &buffer : signature.buffers) {
    std::vector<char> zeros(buffer.getBytes());
    for (int rank = 0; rank < executor.getRanks(); ++rank)
      if (auto error = executor.writeArgument(rank, buffer.argument, zeros))
        return error;
  }
  return llvm::Error::success();
}

/// Sets the parameters of a rank, and the master when there is one, from f32 values of the whole group.
static llvm::Error writeParameters(StepExecutor &executor, const StepSignature &signature, int rank,
                                   llvm::ArrayRef<float> values) {
  llvm::ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
  if (!signature.master)
    return executor.writeArgument(rank, signature.parameters.argument, bytes);
  std::vector<uint16_t> rounded(values.size());
  llvm::transform(values, rounded.begin(), roundToBF16);
  if (auto error =
          executor.writeArgument(rank, signature.parameters.argument,
                                 {reinterpret_cast<const char *>(rounded.data()), rounded.size() * sizeof(uint16_t)}))
    return error;
  return executor.writeArgument(rank, signature.master->argument, bytes);
}

llvm::Error run::drawState(StepExecutor &executor, const StepSignature &signature, uint64_t seed,
                           llvm::function_ref<bool()> cancelled) {
  std::vector<float> values(signature.parameters.elements);
  for (int rank = 0; rank < executor.getRanks(); ++rank) {
    for (MemberAttr member : signature.parameters.layout.getMembers()) {
      if (cancelled())
        return makeError("interrupted before the first step");
      int64_t parts = signature.getParts(member);
      if (rank > 0 && parts == 1)
        continue; // As rank 0 has it.
      moe::ParameterAttr parameter = member.getParameter();
      auto part = llvm::MutableArrayRef<float>(values).slice(member.getOffset(), member.getElements());
      auto [first, elements] = signature.getPart(member, rank);
      NumberStream(seed, parameter.getName())
          .fillNormal(parameter.getMean().getValueAsDouble(), parameter.getDeviation().getValueAsDouble(),
                      part.take_front(elements), first);
      llvm::fill(part.drop_front(elements), 0.0f);
    }
    if (auto error = writeParameters(executor, signature, rank, values))
      return error;
  }
  for (const StateGroup *group : {&signature.gradients, &signature.first, &signature.second})
    if (auto error = zeroGroup(executor, *group))
      return error;
  return zeroBuffers(executor, signature);
}

static std::string formatShape(llvm::ArrayRef<int64_t> shape) {
  return llvm::formatv("[{0:$[, ]}]", llvm::make_range(shape.begin(), shape.end())).str();
}

/// The tensor of `name`, which must have this dtype and shape.
static llvm::Expected<const SafetensorsEntry *> findTensor(const SafetensorsReader &file, llvm::StringRef name,
                                                           llvm::StringRef dtype, llvm::ArrayRef<int64_t> shape) {
  const SafetensorsEntry *entry = file.find(name);
  if (!entry)
    return makeError("{0}: has no tensor '{1}'", file.getPath(), name);
  if (llvm::ArrayRef<int64_t>(entry->shape) != shape)
    return makeError("{0}: tensor '{1}' has the shape {2}; the step wants {3}", file.getPath(), name,
                     formatShape(entry->shape), formatShape(shape));
  if (entry->dtype != dtype)
    return makeError("{0}: tensor '{1}' is {2}; the step wants {3}", file.getPath(), name, entry->dtype, dtype);
  return entry;
}

/// A group as one rank holds it, padding as zeros.
static llvm::Expected<std::vector<char>> readGroup(const SafetensorsReader &file, const StepSignature &signature,
                                                   const StateGroup &group, int rank, llvm::StringRef dtype,
                                                   int64_t elementBytes) {
  std::vector<char> bytes(group.elements * elementBytes);
  for (MemberAttr member : group.layout.getMembers()) {
    auto entry = findTensor(file, getTensorName(group, member), dtype, signature.getWholeShape(member));
    if (!entry)
      return entry.takeError();
    MemberPart part = signature.getPart(member, rank);
    llvm::copy(file.getData(**entry).slice(part.first * elementBytes, part.elements * elementBytes),
               bytes.begin() + member.getOffset() * elementBytes);
  }
  return bytes;
}

static llvm::Expected<int64_t> readCounter(const SafetensorsReader &file, llvm::StringRef name, int64_t least) {
  auto entry = findTensor(file, name, "I64", {});
  if (!entry)
    return entry.takeError();
  int64_t value = llvm::support::endian::read64le(file.getData(**entry).data());
  if (value < least || value > INT32_MAX)
    return makeError("{0}: tensor '{1}' is {2}; it must be from {3} to {4}", file.getPath(), name, value, least,
                     INT32_MAX);
  return value;
}

/// Names of all that a complete file holds.
static llvm::StringSet<> getNames(const StepSignature &signature, bool complete) {
  llvm::StringSet<> names;
  for (const StateGroup *group : signature.getGroups())
    if (group == &signature.parameters || (complete && group != &signature.gradients))
      for (MemberAttr member : group->layout.getMembers())
        names.insert(getTensorName(*group, member));
  for (const StateBuffer &buffer : signature.buffers)
    names.insert(buffer.name);
  if (complete)
    names.insert_range(llvm::ArrayRef<llvm::StringRef>{"step", "batch"});
  return names;
}

llvm::Error run::checkTensorNames(const StepSignature &signature) {
  llvm::StringSet<> names;
  names.insert_range(llvm::ArrayRef<llvm::StringRef>{"step", "batch", "__metadata__"});
  for (const StateGroup *group : signature.getGroups())
    if (group != &signature.gradients)
      for (MemberAttr member : group->layout.getMembers())
        if (std::string name = getTensorName(*group, member); !names.insert(name).second)
          return makeError("parameter '{0}': its name cannot be saved: '{1}' stands for something else in the file",
                           member.getParameter().getName(), name);
  for (const StateBuffer &buffer : signature.buffers)
    if (!names.insert(buffer.name).second)
      return makeError("state '{0}': its name cannot be saved: it stands for something else in the file", buffer.name);
  return llvm::Error::success();
}

static std::string toText(float value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

/// Training cannot go on from numbers that are not finite, or from a negative second moment, whose root is taken.
static llvm::Error checkValues(llvm::StringRef path, const StepSignature &signature, const StateGroup &group, int rank,
                               bool isF32, llvm::ArrayRef<char> bytes) {
  auto read = [&](int64_t index) -> float {
    if (isF32)
      return llvm::bit_cast<float>(llvm::support::endian::read32le(bytes.data() + index * 4));
    return extendBF16(llvm::support::endian::read16le(bytes.data() + index * 2));
  };
  for (MemberAttr member : group.layout.getMembers())
    for (int64_t element = 0; element < member.getElements(); ++element) {
      float value = read(member.getOffset() + element);
      if (!std::isfinite(value) || (group.role == moe::Role::SecondMoment && value < 0))
        return makeError(
            "{0}: tensor '{1}' has {2} as element {3}; a run starts from finite numbers, and second moments "
            "that are not negative",
            path, getTensorName(group, member), toText(value), signature.getPart(member, rank).first + element);
    }
  return llvm::Error::success();
}

static llvm::Error loadBuffers(StepExecutor &executor, const StepSignature &signature, const SafetensorsReader &file) {
  for (const StateBuffer &buffer : signature.buffers) {
    auto entry = findTensor(file, buffer.name, "F32", buffer.shape);
    if (!entry)
      return entry.takeError();
    llvm::ArrayRef<char> bytes = file.getData(**entry);
    for (size_t offset = 0; offset < bytes.size(); offset += sizeof(float))
      if (float value = llvm::bit_cast<float>(llvm::support::endian::read32le(bytes.data() + offset));
          !std::isfinite(value))
        return makeError("{0}: tensor '{1}' has {2} as element {3}; a run starts from finite numbers", file.getPath(),
                         buffer.name, toText(value), offset / sizeof(float));
    for (int rank = 0; rank < executor.getRanks(); ++rank)
      if (auto error = executor.writeArgument(rank, buffer.argument, bytes))
        return error;
  }
  return llvm::Error::success();
}

llvm::Expected<TrainingCounters> run::loadState(StepExecutor &executor, const StepSignature &signature,
                                                llvm::StringRef path, llvm::function_ref<void(llvm::StringRef)> note) {
  auto file = SafetensorsReader::open(path);
  if (!file)
    return file.takeError();
  // A file is complete when it holds anything but parameters that only a complete one can.
  llvm::StringSet<> parameterNames = getNames(signature, false), allNames = getNames(signature, true);
  bool complete = false;
  for (const SafetensorsEntry &entry : file->getEntries()) {
    if (!allNames.contains(entry.name))
      return makeError(
          "{0}: tensor '{1}' is none of the step's; what --save wrote fits a step of the same model and dtype", path,
          entry.name);
    complete |= !parameterNames.contains(entry.name);
  }

  const StateGroup &parameters = signature.parameters;
  if (auto error = zeroGroup(executor, signature.gradients))
    return error;
  if (auto error = loadBuffers(executor, signature, *file))
    return error;
  if (!complete) {
    // Parameters that a bf16 step is to round may come as f32: the master then has all their bits.
    const SafetensorsEntry *entry = parameters.layout.getMembers().empty()
                                        ? nullptr
                                        : file->find(parameters.layout.getMembers().front().getParameter().getName());
    bool isF32 = !signature.master || (entry && entry->dtype == "F32");
    for (int rank = 0; rank < executor.getRanks(); ++rank) {
      auto bytes = readGroup(*file, signature, parameters, rank, isF32 ? "F32" : "BF16", isF32 ? 4 : 2);
      if (!bytes)
        return bytes.takeError();
      if (auto error = checkValues(path, signature, parameters, rank, isF32, *bytes))
        return error;
      std::vector<float> values(parameters.elements);
      if (isF32) {
        std::memcpy(values.data(), bytes->data(), bytes->size());
      } else {
        const auto *halves = reinterpret_cast<const uint16_t *>(bytes->data());
        std::transform(halves, halves + values.size(), values.begin(), extendBF16);
      }
      if (auto error = writeParameters(executor, signature, rank, values))
        return error;
    }
    for (const StateGroup *group : {&signature.first, &signature.second})
      if (auto error = zeroGroup(executor, *group))
        return error;
    note(llvm::formatv("{0}: holds parameters alone; the optimizer starts from zero, at step 1", path).str());
    return TrainingCounters();
  }

  TrainingCounters counters;
  auto update = readCounter(*file, "step", 1), batch = readCounter(*file, "batch", 0);
  if (!update || !batch)
    return llvm::joinErrors(update.takeError(), batch.takeError());
  counters = {*update, *batch};
  for (const StateGroup *group : signature.getGroups()) {
    if (group == &signature.gradients)
      continue;
    for (int rank = 0; rank < executor.getRanks(); ++rank) {
      auto bytes = readGroup(*file, signature, *group, rank, getDtype(*group), getElementBytes(*group));
      if (!bytes)
        return bytes.takeError();
      if (auto error = checkValues(path, signature, *group, rank, !group->elementType.isBF16(), *bytes))
        return error;
      if (auto error = executor.writeArgument(rank, group->argument, *bytes))
        return error;
    }
  }
  return counters;
}

static void addEntries(std::vector<SafetensorsEntry> &entries, const StepSignature &signature,
                       const StateGroup &group) {
  for (MemberAttr member : group.layout.getMembers()) {
    llvm::SmallVector<int64_t> shape = signature.getWholeShape(member);
    entries.push_back({getTensorName(group, member), getDtype(group).str(), {shape.begin(), shape.end()}});
  }
}

/// Writes the whole tensors of a group, put together from the ranks' parts; `read` gives a rank's group, in which an
/// element is `width` numbers.
template <typename Number, typename Read>
static llvm::Error appendParts(SafetensorsWriter &writer, const StepSignature &signature, const StateGroup &group,
                               int64_t width, const Read &read) {
  std::vector<std::vector<Number>> ranks(getHolders(signature));
  for (auto [rank, numbers] : llvm::enumerate(ranks))
    if (llvm::Error error = read(static_cast<int>(rank), numbers))
      return error;
  for (MemberAttr member : group.layout.getMembers())
    for (int64_t part = 0; part < signature.getParts(member); ++part) {
      auto numbers = llvm::ArrayRef<Number>(ranks[part])
                         .slice(member.getOffset() * width, signature.getPart(member, part).elements * width);
      writer.append({reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(Number)});
    }
  return llvm::Error::success();
}

static llvm::Error appendGroup(SafetensorsWriter &writer, StepExecutor &executor, const StepSignature &signature,
                               const StateGroup &group) {
  int64_t elementBytes = getElementBytes(group);
  return appendParts<char>(writer, signature, group, elementBytes, [&](int rank, std::vector<char> &bytes) {
    bytes.resize(group.elements * elementBytes);
    return executor.readArgument(rank, group.argument, bytes);
  });
}

static void appendCounter(SafetensorsWriter &writer, int64_t value) {
  char bytes[8];
  llvm::support::endian::write64le(bytes, value);
  writer.append(bytes);
}

llvm::Error run::saveState(StepExecutor &executor, const StepSignature &signature, const TrainingCounters &counters,
                           llvm::StringRef path) {
  // Wider dtypes first, so that each tensor stands at a multiple of its element's size.
  llvm::SmallVector<const StateGroup *> groups = {&signature.first, &signature.second};
  if (signature.master)
    groups.push_back(&*signature.master);
  groups.insert(signature.parameters.elementType.isBF16() ? groups.end() : groups.begin(), &signature.parameters);
  std::vector<SafetensorsEntry> entries = {{"step", "I64", {}}, {"batch", "I64", {}}};
  for (const StateBuffer &buffer : signature.buffers)
    entries.push_back({buffer.name, "F32", {buffer.shape.begin(), buffer.shape.end()}});
  for (const StateGroup *group : groups)
    addEntries(entries, signature, *group);
  auto writer = SafetensorsWriter::create(path, std::move(entries));
  if (!writer)
    return writer.takeError();
  appendCounter(*writer, counters.update);
  appendCounter(*writer, counters.batch);
  for (const StateBuffer &buffer : signature.buffers) {
    std::vector<char> bytes(buffer.getBytes());
    if (auto error = executor.readArgument(0, buffer.argument, bytes))
      return error;
    writer->append(bytes);
  }
  for (const StateGroup *group : groups)
    if (auto error = appendGroup(*writer, executor, signature, *group))
      return error;
  return writer->finish();
}

llvm::Error run::saveGradients(StepExecutor &executor, const StepSignature &signature,
                               std::function<std::vector<double>(int)> getValues, llvm::StringRef path) {
  const StateGroup &group = signature.gradients;
  std::vector<SafetensorsEntry> entries;
  addEntries(entries, signature, group);
  if (getValues)
    for (SafetensorsEntry &entry : entries)
      entry.dtype = "F64";
  auto writer = SafetensorsWriter::create(path, std::move(entries));
  if (!writer)
    return writer.takeError();
  llvm::Error error = getValues ? appendParts<double>(*writer, signature, group, 1,
                                                      [&](int rank, std::vector<double> &values) {
                                                        values = getValues(rank);
                                                        return llvm::Error::success();
                                                      })
                                : appendGroup(*writer, executor, signature, group);
  return error ? std::move(error) : writer->finish();
}
