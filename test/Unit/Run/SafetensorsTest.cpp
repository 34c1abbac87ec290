//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Safetensors.h"
#include "FakeExecutor.h"
#include "plateau/Run/Files.h"
#include "llvm/Support/Endian.h"

using namespace mlir::plateau::run;

namespace {
class SafetensorsTest : public RunTest {
protected:
  static std::string build(const std::string &header, const std::string &data) {
    char length[8];
    llvm::support::endian::write64le(length, header.size());
    return std::string(length, 8) + header + data;
  }
  /// What the reader says of a file, without the name before it.
  std::string read(const std::string &contents) {
    std::string text = getText(SafetensorsReader::open(writeFile("f", contents)));
    std::string prefix = getPath("f") + ": ";
    EXPECT_TRUE(text.empty() || llvm::StringRef(text).starts_with(prefix)) << text;
    return text.empty() ? "" : text.substr(prefix.size());
  }
  std::string readHeader(const std::string &header, const std::string &data = "") { return read(build(header, data)); }
};
} // namespace

TEST_F(SafetensorsTest, ReadsWhatTheFormatSays) {
  // Written by hand from the format's description.
  std::string contents = build(R"({"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]},"__metadata__":{"x":"y"},)"
                               R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                               R"("empty":{"dtype":"BF16","shape":[0,3],"data_offsets":[8,8]}}  )",
                               std::string("\0\0\x80\x3f\0\0\0\xc0\x05\0\0\0\0\0\0\0", 16));
  auto file = llvm::cantFail(SafetensorsReader::open(writeFile("f", contents)));
  ASSERT_EQ(file.getEntries().size(), 3u);
  const SafetensorsEntry *a = file.find("a"), *b = file.find("b");
  ASSERT_TRUE(a && b && file.find("empty") && !file.find("c"));
  EXPECT_EQ(a->shape, (std::vector<int64_t>{1, 2}));
  float values[2];
  std::memcpy(values, file.getData(*a).data(), 8);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], -2);
  EXPECT_EQ(llvm::support::endian::read64le(file.getData(*b).data()), 5u);
  EXPECT_TRUE(file.getData(*file.find("empty")).empty());
}

TEST_F(SafetensorsTest, WritesWhatItReads) {
  {
    auto writer =
        llvm::cantFail(SafetensorsWriter::create(getPath("f"), {{"s", "I64", {}}, {"m \"q\"", "BF16", {3, 1}}}));
    writer.append(std::vector<char>(8, 1));
    writer.append({'a', 'b', 'c', 'd', 'e', 'f'});
    EXPECT_EQ(getText(writer.finish()), "");
  }
  EXPECT_EQ(listFiles(), std::vector<std::string>{"f"});
  auto file = llvm::cantFail(SafetensorsReader::open(getPath("f")));
  const SafetensorsEntry *matrix = file.find("m \"q\"");
  ASSERT_TRUE(matrix);
  EXPECT_EQ(matrix->dtype, "BF16");
  EXPECT_EQ(matrix->shape, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(std::string(file.getData(*matrix).data(), 6), "abcdef");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.getData(*file.find("s")).data()) % 8, 0u);
}

TEST_F(SafetensorsTest, AWriterGivenUpLeavesNothing) {
  writeFile("f", "old");
  {
    auto writer = llvm::cantFail(SafetensorsWriter::create(getPath("f"), {{"s", "I64", {}}}));
    EXPECT_EQ(listFiles().size(), 2u);
  }
  {
    auto writer = llvm::cantFail(SafetensorsWriter::create(getPath("f"), {{"s", "I64", {}}}));
    EXPECT_EQ(getText(writer.finish()), getPath("f") + ": 8 bytes of the tensors were not written");
  }
  EXPECT_EQ(listFiles(), std::vector<std::string>{"f"});
  EXPECT_EQ(readFile("f"), "old");
}

TEST_F(SafetensorsTest, PlacesThatCannotBeWritten) {
  EXPECT_EQ(getText(checkWritable(getPath("x"))), "");
  EXPECT_EQ(getText(checkWritable(folder)), folder + ": cannot be written: it is a directory");
  EXPECT_NE(getText(checkWritable(getPath("none/x"))), "");
  EXPECT_NE(getText(SafetensorsWriter::create(getPath("none/x"), {})), "");
}

TEST_F(SafetensorsTest, RefusesBadLengths) {
  EXPECT_EQ(read("1234"),
            "4 bytes are too few for a safetensors file, which begins with the 8 bytes of its header's length");
  EXPECT_EQ(read(std::string("\x10\0\0\0\0\0\0\0{}", 10)), "truncated: its header has 16 bytes, but only 2 follow");
  EXPECT_EQ(read(std::string(8, '\xFF')),
            "its header would have 18446744073709551615 bytes; more than 100000000 are not read (is "
            "it a safetensors file?)");
}

TEST_F(SafetensorsTest, RefusesHeadersThatAreNoJSON) {
  EXPECT_EQ(readHeader(""), "the header is no JSON at byte 9");
  EXPECT_EQ(readHeader("{\"a\":"), "the header is no JSON at byte 14");
  EXPECT_EQ(readHeader("{} x"), "the header is no JSON at byte 12");
  EXPECT_EQ(readHeader("[]"), "the header holds an array where none can be");
  EXPECT_EQ(readHeader("3"), "the header holds a number where none can be");
}

TEST_F(SafetensorsTest, RefusesDeepNesting) {
  EXPECT_EQ(readHeader("{\"a\":" + std::string(10'000'000, '[')), "'a' holds an array where none can be");
  std::string deep = "{\"a\":{\"shape\":";
  EXPECT_EQ(readHeader(deep + std::string(10'000'000, '[')), "tensor 'a', shape, holds an array where none can be");
}

TEST_F(SafetensorsTest, RefusesWrongFields) {
  EXPECT_EQ(readHeader(R"({"a":1})"), "'a' holds a number where none can be");
  EXPECT_EQ(readHeader(R"({"a":{"dtype":"F32","shape":[1]}})"), "tensor 'a' has no data_offsets");
  EXPECT_EQ(readHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})"),
            "tensor 'a' has 1 data_offsets; there are 2");
  EXPECT_EQ(readHeader(R"({"a":{"type":"F32"}})"), "tensor 'a' has the unknown field 'type'");
  EXPECT_EQ(readHeader(R"({"a":{"dtype":"F32","dtype":"F32"}})"), "tensor 'a' has two fields 'dtype'");
  EXPECT_EQ(readHeader(R"({"a":{"dtype":"F33","shape":[],"data_offsets":[0,4]}})", "1234"),
            "tensor 'a' has the unknown dtype 'F33'");
  EXPECT_EQ(readHeader(R"({"a":{"shape":[-1]}})"), "tensor 'a', shape, holds a negative number where none can be");
  EXPECT_EQ(readHeader(R"({"a":{"shape":[1.5]}})"), "tensor 'a', shape, holds the number 1.5 where none can be");
  EXPECT_EQ(readHeader(R"({"a":{"shape":[18446744073709551616]}})"),
            "tensor 'a', shape, holds the number 18446744073709551616 where none can be");
  EXPECT_EQ(readHeader(R"({"__metadata__":{"a":1}})"), "'__metadata__' holds a number where none can be");
}

TEST_F(SafetensorsTest, RefusesDuplicateTensors) {
  EXPECT_EQ(
      readHeader(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          "12"),
      "tensor 'a' is there twice");
}

TEST_F(SafetensorsTest, RefusesWrongOffsets) {
  auto tensor = [](const std::string &name, int elements, int begin, int end) {
    return llvm::formatv("\"{0}\":{{\"dtype\":\"U8\",\"shape\":[{1}],\"data_offsets\":[{2},{3}]}", name, elements,
                         begin, end)
        .str();
  };
  EXPECT_EQ(
      readHeader("{" + tensor("a", 4, 0, 4) + "}", "123"),
      "tensor 'a' stands at bytes 0 to 4 of the data, which has 3 bytes: the file is truncated or its header is wrong");
  EXPECT_EQ(
      readHeader("{" + tensor("a", 1, 2, 1) + "}", "123"),
      "tensor 'a' stands at bytes 2 to 1 of the data, which has 3 bytes: the file is truncated or its header is wrong");
  EXPECT_EQ(readHeader("{" + tensor("a", 3, 0, 2) + "}", "12"), "tensor 'a' has 2 bytes; its dtype and shape need 3");
  EXPECT_EQ(readHeader("{" + tensor("b", 2, 1, 3) + "," + tensor("a", 2, 0, 2) + "}", "123"),
            "tensors 'a' and 'b' overlap at byte 1 of the data");
  EXPECT_EQ(readHeader("{" + tensor("a", 1, 0, 1) + "," + tensor("b", 1, 2, 3) + "}", "123"),
            "bytes 1 to 2 of the data, before tensor 'b', belong to no tensor");
  EXPECT_EQ(readHeader("{" + tensor("a", 1, 0, 1) + "}", "123"),
            "bytes 1 to 3 of the data, after the last tensor, belong to no tensor");
  EXPECT_EQ(readHeader(R"({"a":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,0]}})"),
            "tensor 'a' has more than 2^63 bytes");
}
