//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading checked fields from a JSON object. The first thing wrong is kept; reads after it give fallbacks.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_IMPORT_FIELDS_H
#define PLATEAU_LIB_IMPORT_FIELDS_H

#include "plateau/Import/Json.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSet.h"
#include <optional>

namespace mlir::plateau::importer {

class Fields {
public:
  Fields(const SourceText &source, const JsonValue &object);

  // A field without a fallback must be there; with one, an absent field and null give the fallback.
  int64_t integer(llvm::StringRef name, int64_t low, int64_t high, std::optional<int64_t> fallback = std::nullopt);
  double number(llvm::StringRef name, llvm::function_ref<bool(double)> allowed, const llvm::Twine &what,
                double fallback);
  bool boolean(llvm::StringRef name, bool fallback);
  std::string string(llvm::StringRef name, std::optional<std::string> fallback = std::nullopt);
  /// An array whose elements `accept` takes; `accept` says what is wrong with one through `wrong`.
  void array(llvm::StringRef name, const llvm::Twine &what, llvm::function_ref<bool(const JsonValue &)> accept);

  /// The value of a field, which counts as read; null when it is absent.
  const JsonValue *find(llvm::StringRef name);
  /// Keeps "field 'name' is <value>: it must be <what>" as the error, unless there is one.
  void wrong(llvm::StringRef name, const llvm::Twine &what);
  /// Keeps `error` as the error, unless there is one.
  void fail(llvm::Error error);

  /// Whether all that was read so far is right.
  bool valid() const { return !failure; }
  /// The error kept, or success.
  llvm::Error takeError();

  /// The members that nothing has read.
  std::vector<const JsonMember *> unread() const;

private:
  const SourceText &source;
  const JsonValue::Object &members;
  llvm::StringSet<> read;
  std::optional<std::string> failure;
};

} // namespace mlir::plateau::importer

#endif // PLATEAU_LIB_IMPORT_FIELDS_H
