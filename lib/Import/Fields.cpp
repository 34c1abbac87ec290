//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::plateau::importer;
using llvm::StringRef;
using llvm::Twine;

Fields::Fields(const SourceText &source, const JsonValue &object)
    : source(source), members(*object.as<JsonValue::Object>()) {}

const JsonValue *Fields::find(StringRef name) {
  read.insert(name);
  auto member = llvm::find_if(members, [&](const JsonMember &member) { return member.key == name; });
  return member == members.end() ? nullptr : &member->value;
}

void Fields::fail(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  if (!failure)
    failure = std::move(text);
}

llvm::Error Fields::takeError() { return failure ? llvm::createStringError(Twine(*failure)) : llvm::Error::success(); }

void Fields::wrong(StringRef name, const Twine &what) {
  const JsonValue *value = find(name);
  if (!value)
    return fail(source.error("field '" + name + "' is missing: it must be " + what));
  fail(source.error(value->begin, "field '" + name + "' is " + describe(source, *value) + ": it must be " + what));
}

int64_t Fields::integer(StringRef name, int64_t low, int64_t high, std::optional<int64_t> fallback) {
  const JsonValue *value = find(name);
  if (fallback && (!value || value->isNull()))
    return *fallback;
  const int64_t *integer = value ? value->as<int64_t>() : nullptr;
  if (integer && *integer >= low && *integer <= high)
    return *integer;
  wrong(name, "an integer in " + Twine(low) + ".." + Twine(high));
  return fallback.value_or(low);
}

double Fields::number(StringRef name, llvm::function_ref<bool(double)> allowed, const Twine &what, double fallback) {
  const JsonValue *value = find(name);
  if (!value || value->isNull())
    return fallback;
  std::optional<double> number;
  if (const auto *integer = value->as<int64_t>())
    number = double(*integer);
  else if (const auto *large = value->as<uint64_t>())
    number = double(*large);
  else if (const auto *floating = value->as<double>())
    number = *floating;
  if (number && allowed(*number))
    return *number;
  wrong(name, what);
  return fallback;
}

bool Fields::boolean(StringRef name, bool fallback) {
  const JsonValue *value = find(name);
  if (!value || value->isNull())
    return fallback;
  if (const bool *boolean = value->as<bool>())
    return *boolean;
  wrong(name, "true or false");
  return fallback;
}

std::string Fields::string(StringRef name, std::optional<std::string> fallback) {
  const JsonValue *value = find(name);
  if (fallback && (!value || value->isNull()))
    return *fallback;
  if (const auto *string = value ? value->as<std::string>() : nullptr)
    return *string;
  wrong(name, "a string");
  return fallback.value_or("");
}

void Fields::array(StringRef name, const Twine &what, llvm::function_ref<bool(const JsonValue &)> accept) {
  const JsonValue *value = find(name);
  if (!value || value->isNull())
    return;
  const auto *elements = value->as<JsonValue::Array>();
  if (!elements)
    return wrong(name, what);
  for (const JsonValue &element : *elements)
    if (!accept(element))
      return fail(source.error(element.begin,
                               "field '" + name + "' has " + describe(source, element) + ": it must be " + what));
}

std::vector<const JsonMember *> Fields::unread() const {
  std::vector<const JsonMember *> result;
  for (const JsonMember &member : members)
    if (!read.contains(member.key))
      result.push_back(&member);
  return result;
}
