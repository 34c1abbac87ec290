//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Import/Json.h"
#include <gtest/gtest.h>

using namespace mlir::plateau::importer;

namespace {
/// The message that refuses `text`, or "accepted".
std::string parse(std::string text) {
  llvm::Expected<JsonValue> value = parseJsonObject(SourceText("f", std::move(text)));
  return value ? "accepted" : llvm::toString(value.takeError());
}

std::string repeat(const std::string &text, size_t times) {
  std::string result;
  for (size_t index = 0; index < times; ++index)
    result += text;
  return result;
}

const JsonValue &at(const JsonValue &object, size_t index) {
  return std::get<JsonValue::Object>(object.data).at(index).value;
}
} // namespace

TEST(Json, KeepsValuesAndPlaces) {
  SourceText source("f", "{\"a\": [1, -2, 3.5, true],\n \"b\\\"\": \"x\\\\\", \"c\": null, \"d\": {}, \"e\":7}");
  JsonValue root = llvm::cantFail(parseJsonObject(source));
  const auto &members = std::get<JsonValue::Object>(root.data);
  ASSERT_EQ(members.size(), 5u);
  const auto &array = std::get<JsonValue::Array>(at(root, 0).data);
  ASSERT_EQ(array.size(), 4u);
  EXPECT_EQ(*array[0].as<int64_t>(), 1);
  EXPECT_EQ(*array[1].as<int64_t>(), -2);
  EXPECT_EQ(*array[2].as<double>(), 3.5);
  EXPECT_EQ(*array[3].as<bool>(), true);
  EXPECT_EQ(members[1].key, "b\"");
  EXPECT_EQ(*at(root, 1).as<std::string>(), "x\\");
  EXPECT_TRUE(at(root, 2).isNull());
  EXPECT_TRUE(at(root, 3).as<JsonValue::Object>());

  EXPECT_EQ(source.locate(members[0].begin), "f:1:2");
  EXPECT_EQ(source.locate(array[1].begin), "f:1:11");
  EXPECT_EQ(describe(source, array[1]), "-2");
  EXPECT_EQ(describe(source, array[3]), "true");
  EXPECT_EQ(source.locate(members[1].begin), "f:2:2");
  EXPECT_EQ(describe(source, at(root, 1)), "\"x\\\\\"");
  EXPECT_EQ(describe(source, at(root, 2)), "null");
  EXPECT_EQ(describe(source, at(root, 3)), "an object");
  EXPECT_EQ(describe(source, at(root, 4)), "7");
}

TEST(Json, RefusesWhatIsNotAnObject) {
  EXPECT_EQ(parse(""), "f: error: the file is empty");
  EXPECT_EQ(parse("[1]"), "f:1:1: error: the top level must be an object");
  EXPECT_EQ(parse(" 12"), "f:1:2: error: the top level must be an object");
  EXPECT_EQ(parse("\"x\""), "f:1:1: error: the top level must be an object");
  EXPECT_EQ(parse("null"), "f:1:1: error: the top level must be an object");
  EXPECT_NE(parse(" \n").find("f:2:1: error:"), std::string::npos);
}

TEST(Json, RefusesMalformedText) {
  EXPECT_NE(parse("{\"a\": [1,").find("f:1:10: error: syntax error while parsing value - unexpected end of input"),
            std::string::npos);
  for (const char *text :
       {"{\"a\"", "{\"a\":1", "{\"a\":1,}", "{a:1}", "{\"a\":01}", "{\"a\":NaN}", "{\"a\":+1}", "{\"a\":1.}", "{} x",
        "{}{}", "{\"a\":tru}", "{/**/}", "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}", "{\"a\":\"", "\x80{}"})
    EXPECT_NE(parse(text).find("error: syntax error"), std::string::npos) << text;
}

TEST(Json, RefusesDuplicateKeys) {
  EXPECT_EQ(parse("{\"a\":1,\n  \"a\":1}"), "f:2:3: error: duplicate key \"a\"");
  EXPECT_EQ(parse("{\"x\":{\"a\":1,\"b\":2,\"a\":3}}"), "f:1:19: error: duplicate key \"a\"");
  // The same key, written in another way.
  EXPECT_EQ(parse("{\"a\":1,\"\\u0061\":1}"), "f:1:8: error: duplicate key \"\\u0061\"");
  EXPECT_EQ(parse("{\"a\":{\"a\":[{\"a\":1},{\"a\":2}]}}"), "accepted");
}

TEST(Json, KeepsIntegersExactOrRefusesThem) {
  SourceText source("f", "{\"a\":9223372036854775807,\"b\":-9223372036854775808,\"c\":18446744073709551615}");
  JsonValue root = llvm::cantFail(parseJsonObject(source));
  EXPECT_EQ(*at(root, 0).as<int64_t>(), INT64_MAX);
  EXPECT_EQ(*at(root, 1).as<int64_t>(), INT64_MIN);
  EXPECT_EQ(*at(root, 2).as<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(parse("{\"a\":18446744073709551616}"), "f:1:6: error: integer 18446744073709551616 does not fit 64 bits");
  EXPECT_EQ(parse("{\"a\":-9223372036854775809}"), "f:1:6: error: integer -9223372036854775809 does not fit 64 bits");
  EXPECT_NE(parse("{\"a\":1" + repeat("0", 5000) + "}").find("number overflow"), std::string::npos);
}

TEST(Json, RefusesFloatsThatOverflow) {
  EXPECT_NE(parse("{\"a\":1e999}").find("number overflow parsing '1e999'"), std::string::npos);
  EXPECT_NE(parse("{\"a\":-1e309}").find("number overflow"), std::string::npos);
  EXPECT_EQ(parse("{\"a\":1e-999}"), "accepted");
}

TEST(Json, RefusesBytesThatAreNotText) {
  EXPECT_EQ(parse(std::string("{}\0", 3)), "f:1:3: error: a NUL byte: this is not a text file");
  EXPECT_EQ(parse(std::string("{\"a\0\":1}", 8)), "f:1:4: error: a NUL byte: this is not a text file");
  EXPECT_NE(parse("{\"a\":\"\xff\"}").find("ill-formed UTF-8"), std::string::npos);
  EXPECT_NE(parse("{\"a\":\"\xc0\xaf\"}").find("ill-formed UTF-8"), std::string::npos);
  EXPECT_NE(parse("{\"a\":\"\\ud800\"}").find("surrogate"), std::string::npos);
}

TEST(Json, LimitsNesting) {
  EXPECT_EQ(parse("{\"a\":" + repeat("[", maxJsonDepth - 1) + repeat("]", maxJsonDepth - 1) + "}"), "accepted");
  EXPECT_EQ(parse("{\"a\":" + repeat("[", maxJsonDepth) + repeat("]", maxJsonDepth) + "}"),
            "f:1:69: error: nested more than 64 deep");
  EXPECT_EQ(parse(repeat("{\"a\":", 10'000'000)), "f:1:321: error: nested more than 64 deep");
}

TEST(Json, LimitsValues) {
  EXPECT_EQ(parse("{\"a\":[" + repeat("1,", maxJsonValues - 3) + "1]}"), "accepted");
  EXPECT_NE(parse("{\"a\":[" + repeat("1,", maxJsonValues - 2) + "1]}").find("more than 1048576 values"),
            std::string::npos);
}

TEST(Json, KeepsMessagesShort) {
  EXPECT_LT(parse("{\"a\":\"" + repeat("x", 100'000)).size(), 300u);
  EXPECT_LT(parse("{\"" + repeat("k", 100'000) + "\":1,\"" + repeat("k", 100'000) + "\":1}").size(), 300u);
}
