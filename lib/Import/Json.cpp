//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/Json.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include <nlohmann/json.hpp>
#include <optional>

using namespace mlir::plateau::importer;
using llvm::StringRef;
using llvm::Twine;

/// `text` fit for a message: short, and valid UTF-8 whatever bytes the file holds.
static std::string shorten(StringRef text, size_t limit) {
  std::string shown = llvm::json::fixUTF8(text.take_front(limit));
  return text.size() > limit ? shown + "..." : shown;
}

//===----------------------------------------------------------------------===//
// SourceText
//===----------------------------------------------------------------------===//

llvm::Expected<SourceText> SourceText::read(StringRef path) {
  auto refuse = [&](const Twine &what) { return SourceText(path, "").error(what); };
  if (llvm::sys::fs::is_directory(path))
    return refuse("the file is a directory");
  auto file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file)
    return refuse("the file cannot be read: " + llvm::toString(file.takeError()));
  std::string text;
  std::optional<std::string> failure;
  // One byte more than may be there tells a file that is too large, also when its size is not known beforehand.
  while (!failure && text.size() <= maxJsonBytes) {
    size_t filled = text.size();
    text.resize(std::min(filled + (size_t(64) << 10), maxJsonBytes + 1));
    auto count = llvm::sys::fs::readNativeFile(*file, {text.data() + filled, text.size() - filled});
    text.resize(filled + (count ? *count : 0));
    if (!count)
      failure = "the file cannot be read: " + llvm::toString(count.takeError());
    else if (*count == 0)
      break;
  }
  llvm::sys::fs::closeFile(*file);
  if (failure)
    return refuse(*failure);
  if (text.size() > maxJsonBytes)
    return refuse("the file is larger than " + Twine(maxJsonBytes >> 20) + " MiB, the most a configuration may be");
  return SourceText(path, std::move(text));
}

std::string SourceText::locate(size_t offset) const {
  StringRef before = getText().take_front(offset);
  size_t lineStart = before.rfind('\n');
  size_t column = lineStart == StringRef::npos ? before.size() : before.size() - lineStart - 1;
  return name + ":" + std::to_string(before.count('\n') + 1) + ":" + std::to_string(column + 1);
}

std::string SourceText::excerpt(size_t begin, size_t end) const { return shorten(getText().slice(begin, end), 60); }

llvm::Error SourceText::error(size_t offset, const Twine &message) const {
  return llvm::createStringError(Twine(locate(offset)) + ": error: " + message);
}

llvm::Error SourceText::error(const Twine &message) const {
  return llvm::createStringError(Twine(name) + ": error: " + message);
}

//===----------------------------------------------------------------------===//
// The parser
//===----------------------------------------------------------------------===//

namespace {
/// An input iterator that lets the handler know how far the lexer has read: SAX events carry no position.
struct TrackedIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  const char *current;
  const char **position;

  reference operator*() const { return *current; }
  TrackedIterator &operator++() {
    *position = ++current;
    return *this;
  }
  bool operator==(const TrackedIterator &other) const { return current == other.current; }
  bool operator!=(const TrackedIterator &other) const { return current != other.current; }
};

/// Builds the tree from SAX events and stops at the first thing refused.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  TreeBuilder(const SourceText &source, const char *const &position) : source(source), position(position) {}

  bool null() override { return add(nullptr, literalBegin(), offset()); }
  bool boolean(bool value) override { return add(value, literalBegin(), offset()); }
  bool string(string_t &value) override { return add(std::move(value), stringBegin(), offset()); }
  bool number_integer(number_integer_t value) override { return addNumber(int64_t(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= uint64_t(std::numeric_limits<int64_t>::max()))
      return addNumber(int64_t(value));
    return addNumber(uint64_t(value));
  }
  bool number_float(number_float_t value, const string_t &lexeme) override {
    // The lexer falls back to a float for an integer that fits no 64-bit type.
    if (lexeme.find_first_of(".eE") == std::string::npos)
      return refuse(numberBegin(), "integer " + shorten(lexeme, 40) + " does not fit 64 bits");
    return addNumber(double(value));
  }
  bool binary(binary_t &) override { return refuse(offset(), "binary values are not JSON"); }

  bool start_object(std::size_t) override {
    if (!open(JsonValue::Object()))
      return false;
    keys.emplace_back();
    return true;
  }
  bool key(string_t &name) override {
    size_t begin = stringBegin();
    if (!keys.back().insert(name).second)
      return refuse(begin, "duplicate key " + source.excerpt(begin, offset()));
    std::get<JsonValue::Object>(containers.back()->data).push_back({std::move(name), begin, offset(), {}});
    return true;
  }
  bool end_object() override {
    keys.pop_back();
    return close();
  }
  bool start_array(std::size_t) override { return open(JsonValue::Array()); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t read, const std::string &, const nlohmann::detail::exception &exception) override {
    // "[json.exception.…] parse error at line L, column C: what is wrong": the place is said in our own form.
    StringRef message = exception.what();
    message = message.substr(message.find(']') + 1).ltrim();
    if (message.consume_front("parse error at"))
      message = message.substr(message.find(": ") + 2);
    return refuse(read ? read - 1 : 0, shorten(message, 200));
  }

  llvm::Error takeError() const { return source.error(failureOffset, *failure); }
  JsonValue takeRoot() { return std::move(root); }

private:
  size_t offset() const { return position - source.getText().data(); }

  // Where the scalar just read begins. Literals and strings end at the lexer's place; numbers one byte earlier, unless
  // the text ends with them, since the lexer reads on until a byte that cannot belong to a number.
  size_t literalBegin() const {
    return source.getText().take_front(offset()).find_last_not_of("abcdefghijklmnopqrstuvwxyz") + 1;
  }
  size_t numberEnd() const {
    StringRef read = source.getText().take_front(offset());
    return read.empty() || llvm::StringRef("+-.0123456789eE").contains(read.back()) ? read.size() : read.size() - 1;
  }
  size_t numberBegin() const {
    return source.getText().take_front(numberEnd()).find_last_not_of("+-.0123456789eE") + 1;
  }
  // The opening quote is the nearest one to the left of the closing quote with no backslash before it.
  size_t stringBegin() const {
    StringRef text = source.getText();
    size_t quote = text.take_front(offset() - 1).rfind('"');
    while (quote > 0 && text[quote - 1] == '\\')
      quote = text.take_front(quote).rfind('"');
    return quote;
  }

  template <typename T>
  bool add(T &&data, size_t begin, size_t end) {
    if (containers.empty())
      return refuse(begin, "the top level must be an object");
    return place(std::forward<T>(data), begin, end) != nullptr;
  }
  template <typename T>
  bool addNumber(T data) {
    return add(data, numberBegin(), numberEnd());
  }

  bool open(decltype(JsonValue::data) empty) {
    size_t begin = offset() - 1;
    if (containers.empty() && !std::holds_alternative<JsonValue::Object>(empty))
      return refuse(begin, "the top level must be an object");
    if (containers.size() == maxJsonDepth)
      return refuse(begin, "nested more than " + Twine(maxJsonDepth) + " deep");
    JsonValue *value = place(std::move(empty), begin, begin);
    if (!value)
      return false;
    containers.push_back(value);
    return true;
  }
  bool close() {
    containers.back()->end = offset();
    containers.pop_back();
    return true;
  }

  /// Puts a value where it belongs; null when there are too many. Containers are filled through the pointer while open:
  /// their parent does not grow meanwhile.
  JsonValue *place(decltype(JsonValue::data) data, size_t begin, size_t end) {
    if (++count > maxJsonValues) {
      refuse(begin, "more than " + Twine(maxJsonValues) + " values");
      return nullptr;
    }
    JsonValue *value = &root;
    if (!containers.empty()) {
      if (auto *array = std::get_if<JsonValue::Array>(&containers.back()->data))
        value = &array->emplace_back();
      else
        value = &std::get<JsonValue::Object>(containers.back()->data).back().value;
    }
    *value = JsonValue{std::move(data), begin, end};
    return value;
  }

  bool refuse(size_t offset, const Twine &message) {
    failureOffset = offset;
    failure = message.str();
    return false;
  }

  const SourceText &source;
  const char *const &position;
  JsonValue root;
  std::vector<JsonValue *> containers;
  std::vector<llvm::StringSet<>> keys;
  size_t count = 0;
  size_t failureOffset = 0;
  std::optional<std::string> failure;
};
} // namespace

llvm::Expected<JsonValue> mlir::plateau::importer::parseJsonObject(const SourceText &source) {
  StringRef text = source.getText();
  if (text.empty())
    return source.error("the file is empty");
  // The lexer takes a NUL byte for the end of the text.
  if (size_t nul = text.find('\0'); nul != StringRef::npos)
    return source.error(nul, "a NUL byte: this is not a text file");
  const char *position = text.data();
  TreeBuilder builder(source, position);
  TrackedIterator first{text.begin(), &position}, last{text.end(), nullptr};
  if (!nlohmann::json::sax_parse(first, last, &builder))
    return builder.takeError();
  return builder.takeRoot();
}

std::string mlir::plateau::importer::describe(const SourceText &source, const JsonValue &value) {
  if (value.as<JsonValue::Array>())
    return "an array";
  if (value.as<JsonValue::Object>())
    return "an object";
  return source.excerpt(value.begin, value.end);
}
