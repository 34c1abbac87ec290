//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Safetensors.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/Files.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include <nlohmann/json.hpp>

using namespace mlir::plateau::run;

/// The limit of the format's reference library.
static constexpr uint64_t maxHeaderBytes = 100'000'000;

int64_t mlir::plateau::run::getDtypeBytes(llvm::StringRef dtype) {
  return llvm::StringSwitch<int64_t>(dtype)
      .Cases({"F64", "I64", "U64"}, 8)
      .Cases({"F32", "I32", "U32"}, 4)
      .Cases({"F16", "BF16", "I16", "U16"}, 2)
      .Cases({"I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2"}, 1)
      .Default(0);
}

namespace {
/// Builds the entries from the events of a JSON parser, so that nesting is bounded and duplicate keys are seen.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
public:
  std::vector<SafetensorsEntry> entries;
  std::string problem;

  bool null() override { return fail("a null"); }
  bool boolean(bool) override { return fail("a boolean"); }
  bool number_integer(number_integer_t) override { return fail("a negative number"); }
  bool number_float(number_float_t, const string_t &text) override { return fail("the number " + text); }
  bool binary(binary_t &) override { return fail("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place != Place::Shape && place != Place::Offsets)
      return fail("a number");
    if (value > static_cast<uint64_t>(INT64_MAX))
      return fail("the number " + std::to_string(value));
    (place == Place::Shape ? entries.back().shape : offsets).push_back(value);
    return true;
  }

  bool string(string_t &text) override {
    if (place == Place::Metadata)
      return true;
    if (place != Place::Tensor || field != "dtype")
      return fail("a string");
    entries.back().dtype = text;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place) {
    case Place::Start:
      place = Place::Top;
      return true;
    case Place::Top:
      if (name == "__metadata__") {
        place = Place::Metadata;
        return true;
      }
      place = Place::Tensor;
      entries.push_back({name, "", {}, 0, 0});
      fields.clear();
      offsets.clear();
      return true;
    default:
      return fail("an object");
    }
  }

  bool end_object() override {
    if (place == Place::Tensor) {
      for (const char *needed : {"dtype", "shape", "data_offsets"})
        if (!fields.contains(needed))
          return refuse("tensor '" + name + "' has no " + needed);
      if (offsets.size() != 2)
        return refuse("tensor '" + name + "' has " + std::to_string(offsets.size()) + " data_offsets; there are 2");
      entries.back().begin = offsets[0];
      entries.back().end = offsets[1];
    }
    place = place == Place::Top ? Place::End : Place::Top;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place != Place::Tensor || (field != "shape" && field != "data_offsets"))
      return fail("an array");
    place = field == "shape" ? Place::Shape : Place::Offsets;
    return true;
  }

  bool end_array() override {
    place = Place::Tensor;
    return true;
  }

  bool key(string_t &text) override {
    if (place == Place::Top) {
      name = text;
      return names.try_emplace(name).second || refuse("tensor '" + name + "' is there twice");
    }
    if (place == Place::Metadata)
      return true;
    field = text;
    if (field != "dtype" && field != "shape" && field != "data_offsets")
      return refuse("tensor '" + name + "' has the unknown field '" + field + "'");
    return fields.try_emplace(field).second || refuse("tensor '" + name + "' has two fields '" + field + "'");
  }

  bool parse_error(std::size_t position, const std::string &, const nlohmann::detail::exception &) override {
    if (problem.empty())
      problem = "the header is no JSON at byte " + std::to_string(position + 8);
    return false;
  }

  bool isComplete() const { return place == Place::End; }

private:
  enum class Place { Start, Top, Metadata, Tensor, Shape, Offsets, End };

  bool refuse(std::string text) {
    problem = std::move(text);
    return false;
  }
  bool fail(const std::string &found) {
    std::string where = place == Place::Start || place == Place::End ? "the header"
                        : place == Place::Top                        ? "'" + name + "'"
                        : place == Place::Metadata                   ? "'__metadata__'"
                                                                     : "tensor '" + name + "', " + field + ",";
    return refuse(where + " holds " + found + " where none can be");
  }

  Place place = Place::Start;
  std::string name, field;
  std::vector<int64_t> offsets;
  llvm::StringMap<char> names, fields;
};
} // namespace

/// Checks one entry against its own shape and the size of the data.
static llvm::Error checkEntry(llvm::StringRef path, const SafetensorsEntry &entry, int64_t dataBytes) {
  int64_t bytes = getDtypeBytes(entry.dtype);
  if (bytes == 0)
    return makeError("{0}: tensor '{1}' has the unknown dtype '{2}'", path, entry.name, entry.dtype);
  for (int64_t size : entry.shape)
    if (llvm::MulOverflow(bytes, size, bytes))
      return makeError("{0}: tensor '{1}' has more than 2^63 bytes", path, entry.name);
  if (entry.begin > entry.end || entry.end > dataBytes)
    return makeError(
        "{0}: tensor '{1}' stands at bytes {2} to {3} of the data, which has {4} bytes: the file is truncated or its "
        "header is wrong",
        path, entry.name, entry.begin, entry.end, dataBytes);
  if (entry.end - entry.begin != bytes)
    return makeError("{0}: tensor '{1}' has {2} bytes; its dtype and shape need {3}", path, entry.name,
                     entry.end - entry.begin, bytes);
  return llvm::Error::success();
}

/// The tensors must follow each other without overlap or gap, from the first byte of the data to the last.
static llvm::Error checkCover(llvm::StringRef path, llvm::ArrayRef<SafetensorsEntry> entries, int64_t dataBytes) {
  std::vector<const SafetensorsEntry *> order;
  for (const SafetensorsEntry &entry : entries)
    order.push_back(&entry);
  llvm::sort(order, [](auto *a, auto *b) {
    return std::tie(a->begin, a->end, a->name) < std::tie(b->begin, b->end, b->name);
  });
  int64_t end = 0;
  const SafetensorsEntry *previous = nullptr;
  for (const SafetensorsEntry *entry : order) {
    if (entry->begin < end)
      return makeError("{0}: tensors '{1}' and '{2}' overlap at byte {3} of the data", path, previous->name,
                       entry->name, entry->begin);
    if (entry->begin > end)
      return makeError("{0}: bytes {1} to {2} of the data, before tensor '{3}', belong to no tensor", path, end,
                       entry->begin, entry->name);
    end = entry->end;
    previous = entry;
  }
  if (end != dataBytes)
    return makeError("{0}: bytes {1} to {2} of the data, after the last tensor, belong to no tensor", path, end,
                     dataBytes);
  return llvm::Error::success();
}

llvm::Expected<SafetensorsReader> SafetensorsReader::open(llvm::StringRef path) {
  auto file = readFile(path);
  if (!file)
    return makeError("{0}: cannot be read: {1}", path, llvm::toString(file.takeError()));
  llvm::StringRef bytes = (*file)->getBuffer();
  if (bytes.size() < 8)
    return makeError(
        "{0}: {1} bytes are too few for a safetensors file, which begins with the 8 bytes of its header's length", path,
        bytes.size());
  uint64_t headerBytes = llvm::support::endian::read64le(bytes.data());
  if (headerBytes > maxHeaderBytes)
    return makeError("{0}: its header would have {1} bytes; more than {2} are not read (is it a safetensors file?)",
                     path, headerBytes, maxHeaderBytes);
  if (headerBytes > bytes.size() - 8)
    return makeError("{0}: truncated: its header has {1} bytes, but only {2} follow", path, headerBytes,
                     bytes.size() - 8);

  HeaderHandler handler;
  llvm::StringRef header = bytes.substr(8, headerBytes);
  bool parsed = nlohmann::json::sax_parse(header.begin(), header.end(), &handler);
  if (!parsed || !handler.isComplete())
    return makeError("{0}: {1}", path, handler.problem.empty() ? "the header is no JSON object" : handler.problem);

  SafetensorsReader reader;
  reader.path = path.str();
  reader.dataOffset = 8 + headerBytes;
  reader.entries = std::move(handler.entries);
  int64_t dataBytes = bytes.size() - reader.dataOffset;
  reader.file = std::move(*file);
  for (auto [index, entry] : llvm::enumerate(reader.entries)) {
    if (auto error = checkEntry(path, entry, dataBytes))
      return error;
    reader.byName[entry.name] = index;
  }
  if (auto error = checkCover(path, reader.entries, dataBytes))
    return error;
  return reader;
}

const SafetensorsEntry *SafetensorsReader::find(llvm::StringRef name) const {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : &entries[it->second];
}

llvm::ArrayRef<char> SafetensorsReader::getData(const SafetensorsEntry &entry) const {
  return {file->getBufferStart() + dataOffset + entry.begin, static_cast<size_t>(entry.end - entry.begin)};
}

llvm::Expected<SafetensorsWriter> SafetensorsWriter::create(llvm::StringRef path,
                                                            std::vector<SafetensorsEntry> entries) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  int64_t offset = 0;
  for (SafetensorsEntry &entry : entries) {
    entry.begin = offset;
    int64_t bytes = getDtypeBytes(entry.dtype);
    for (int64_t size : entry.shape)
      bytes *= size;
    entry.end = offset += bytes;
    header[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize(llvm::alignTo(text.size(), 8), ' '); // So that the data are aligned.

  auto target = getWritePath(path);
  if (!target)
    return target.takeError();
  SafetensorsWriter writer;
  writer.path = *target;
  writer.missingBytes = offset;
  int descriptor;
  llvm::SmallString<128> temporary;
  if (auto code = llvm::sys::fs::createUniqueFile(*target + ".%%%%%%.partial", descriptor, temporary))
    return makeError("{0}: cannot be written: {1}", path, code.message());
  writer.temporary = temporary.str().str();
  writer.stream = std::make_unique<llvm::raw_fd_ostream>(descriptor, /*shouldClose=*/true);
  char length[8];
  llvm::support::endian::write64le(length, text.size());
  writer.stream->write(length, sizeof(length));
  *writer.stream << text;
  return writer;
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!stream)
    return;
  stream->clear_error();
  stream.reset();
  llvm::sys::fs::remove(temporary);
}

void SafetensorsWriter::append(llvm::ArrayRef<char> bytes) {
  stream->write(bytes.data(), bytes.size());
  missingBytes -= bytes.size();
}

llvm::Error SafetensorsWriter::finish() {
  stream->flush();
  if (missingBytes != 0)
    return makeError("{0}: {1} bytes of the tensors were not written", path, missingBytes);
  if (stream->has_error())
    return makeError("{0}: cannot be written: {1}", path, stream->error().message());
  stream->close();
  std::error_code code = stream->has_error() ? stream->error() : llvm::sys::fs::rename(temporary, path);
  if (code)
    return makeError("{0}: cannot be written: {1}", path, code.message());
  stream.reset();
  return llvm::Error::success();
}
