//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A JSON file as a small typed tree in which every value knows where it stands, so that what is wrong can be pointed
// at.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_IMPORT_JSON_H
#define PLATEAU_IMPORT_JSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace mlir::plateau::importer {

/// Limits on what a configuration may look like. Real ones are far below; a hostile one is refused before it costs
/// memory.
inline constexpr size_t maxJsonBytes = size_t(16) << 20;
inline constexpr size_t maxJsonDepth = 64;
inline constexpr size_t maxJsonValues = size_t(1) << 20;

/// The text of a file under the name that messages about it carry.
class SourceText {
public:
  SourceText(llvm::StringRef name, std::string text) : name(name), text(std::move(text)) {}

  /// Reads a file of at most `maxJsonBytes`.
  static llvm::Expected<SourceText> read(llvm::StringRef path);

  llvm::StringRef getName() const { return name; }
  llvm::StringRef getText() const { return text; }

  /// "name:line:column", both from 1, columns in bytes.
  std::string locate(size_t offset) const;

  /// The bytes [begin, end) fit for a message: cut when they are many, and valid UTF-8 whatever the file holds.
  std::string excerpt(size_t begin, size_t end) const;

  /// "name:line:column: error: message", and the same without a place in the file.
  llvm::Error error(size_t offset, const llvm::Twine &message) const;
  llvm::Error error(const llvm::Twine &message) const;

private:
  std::string name, text;
};

struct JsonMember;

/// One value. An integer is an int64_t where it fits and a uint64_t otherwise.
struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object> data;
  /// The bytes [begin, end) of the text.
  size_t begin = 0, end = 0;

  template <typename T>
  const T *as() const {
    return std::get_if<T>(&data);
  }
  bool isNull() const { return as<std::nullptr_t>(); }
};

/// A member of an object. Its key, with the quotes, is the bytes [begin, end).
struct JsonMember {
  std::string key;
  size_t begin = 0, end = 0;
  JsonValue value;
};

/// Parses a text whose top level is an object. Refuses duplicate keys, integers beyond 64 bits, numbers that overflow,
/// NUL bytes, invalid UTF-8, and whatever passes the limits above.
llvm::Expected<JsonValue> parseJsonObject(const SourceText &source);

/// How a message shows a value: scalars as they are written (shortened when long), containers by kind.
std::string describe(const SourceText &source, const JsonValue &value);

} // namespace mlir::plateau::importer

#endif // PLATEAU_IMPORT_JSON_H
