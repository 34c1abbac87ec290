//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The executor: buffers, donation, digests, errors and interrupts.
//===----------------------------------------------------------------------===//

#include "InterpreterTest.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::test;

namespace {
class Executor : public InterpreterTest {
protected:
  template <typename Stored>
  static ArrayRef<char> getBytes(const std::vector<Stored> &elements) {
    return {reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(Stored)};
  }
  template <typename Stored>
  static MutableArrayRef<char> getBytes(std::vector<Stored> &elements) {
    return {reinterpret_cast<char *>(elements.data()), elements.size() * sizeof(Stored)};
  }
  static std::string toText(llvm::Error error) { return llvm::toString(std::move(error)); }
};

constexpr StringLiteral counter = R"mlir(
    func.func @f(%a: tensor<2xf32> {moe.donated = 1 : i64}, %b: tensor<2xbf16>) -> (tensor<2xbf16>, tensor<2xf32>) {
      %0 = arith.extf %b : tensor<2xbf16> to tensor<2xf32>
      %1 = arith.addf %a, %0 : tensor<2xf32>
      %2 = arith.truncf %1 : tensor<2xf32> to tensor<2xbf16>
      return %2, %1 : tensor<2xbf16>, tensor<2xf32>
    })mlir";

uint16_t getBF16(float number) { return llvm::bit_cast<uint32_t>(number) >> 16; }

TEST_F(Executor, KeepsDonatedArguments) {
  auto executor = createInterpreterExecutor(parse(counter), 2, Mode::Float64);
  ASSERT_TRUE(executor) << errors;
  EXPECT_EQ(executor->getArgumentBytes(0), 8);
  EXPECT_EQ(executor->getArgumentBytes(1), 4);
  for (int rank : {0, 1}) {
    ASSERT_EQ(toText(executor->writeArgument(rank, 0, getBytes(std::vector<float>{1.0f + rank, 2}))), "");
    ASSERT_EQ(toText(executor->writeArgument(rank, 1, getBytes(std::vector<uint16_t>{getBF16(0.5f), getBF16(-1)}))),
              "");
  }
  ASSERT_EQ(toText(executor->run()), "");
  ASSERT_EQ(toText(executor->run()), "");
  std::vector<float> sum(2);
  ASSERT_EQ(toText(executor->readResult(1, 1, getBytes(sum))), "");
  EXPECT_EQ(sum, std::vector<float>({3, 0}));
  ASSERT_EQ(toText(executor->readArgument(0, 0, getBytes(sum))), "");
  EXPECT_EQ(sum, std::vector<float>({2, 0}));
  std::vector<uint16_t> narrow(2);
  ASSERT_EQ(toText(executor->readResult(0, 0, getBytes(narrow))), "");
  EXPECT_EQ(narrow, std::vector<uint16_t>({getBF16(2), getBF16(0)}));
}

TEST_F(Executor, RoundsOnlyWhatIsRead) {
  func::FuncOp function = parse(R"mlir(
    func.func @f(%a: tensor<3xf64>) -> (tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>) {
      %0 = arith.truncf %a : tensor<3xf64> to tensor<3xbf16>
      %1 = arith.truncf %a : tensor<3xf64> to tensor<3xf32>
      return %0, %1, %a : tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>
    })mlir");
  auto executor = createInterpreterExecutor(function, 1, Mode::Float64);
  ASSERT_TRUE(executor) << errors;
  // Just above the middle of 1 and 1 + 2^-7 (bf16): rounding to f32 first would give the middle, and then 1. The middle
  // itself goes to even, and so does that of 1 + 2^-7 and 1 + 2^-6.
  double above = 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40), middle = 1 + std::ldexp(1.0, -8),
         next = 1 + 3 * std::ldexp(1.0, -8);
  std::vector<double> numbers = {above, middle, next};
  ASSERT_EQ(toText(executor->writeArgument(0, 0, getBytes(numbers))), "");
  ASSERT_EQ(toText(executor->run()), "");
  std::vector<uint16_t> narrow(3);
  ASSERT_EQ(toText(executor->readResult(0, 0, getBytes(narrow))), "");
  EXPECT_EQ(narrow, std::vector<uint16_t>({0x3F81, 0x3F80, 0x3F82}));
  std::vector<float> single(3);
  ASSERT_EQ(toText(executor->readResult(0, 1, getBytes(single))), "");
  EXPECT_EQ(single, std::vector<float>({float(middle), float(middle), float(next)}));
  std::vector<double> wide(3);
  ASSERT_EQ(toText(executor->readResult(0, 2, getBytes(wide))), "");
  EXPECT_EQ(wide, numbers);
}

TEST_F(Executor, ExactMode) {
  auto executor = createInterpreterExecutor(parse(counter), 1, Mode::Exact);
  ASSERT_TRUE(executor) << errors;
  ASSERT_EQ(toText(executor->writeArgument(0, 0, getBytes(std::vector<float>{0.5f, 2}))), "");
  ASSERT_EQ(toText(executor->writeArgument(0, 1, getBytes(std::vector<uint16_t>{getBF16(0.5f), getBF16(-5)}))), "");
  ASSERT_EQ(toText(executor->run()), "");
  std::vector<float> sum(2);
  ASSERT_EQ(toText(executor->readResult(0, 1, getBytes(sum))), "");
  EXPECT_EQ(sum, std::vector<float>({1, -3}));
  EXPECT_EQ(executor->getResult(0, 1).get<Field>()[1].getValue(), Field::prime - 3);
  EXPECT_EQ(executor->getResultDigest(0, 1), executor->getArgumentDigest(0, 0));
  EXPECT_EQ(executor->getResultDigest(0, 1), executor->getResultDigest(0, 0));

  uint64_t digest = executor->getResultDigest(0, 1);
  ASSERT_EQ(toText(executor->writeArgument(0, 0, getBytes(std::vector<float>{0.5f, 2}))), "");
  ASSERT_EQ(toText(executor->run()), "");
  EXPECT_EQ(executor->getResultDigest(0, 1), digest);
  ASSERT_EQ(toText(executor->writeArgument(0, 0, getBytes(std::vector<float>{0.5f, 2.0000002f}))), "");
  ASSERT_EQ(toText(executor->run()), "");
  EXPECT_NE(executor->getResultDigest(0, 1), digest);
  ASSERT_EQ(toText(executor->writeArgument(0, 0, getBytes(std::vector<float>{-3.5f, 6}))), ""); // the sums swapped
  ASSERT_EQ(toText(executor->run()), "");
  EXPECT_NE(executor->getResultDigest(0, 1), digest);
}

TEST_F(Executor, SaysWhereItStopped) {
  auto executor = createInterpreterExecutor(parse(R"mlir(
    func.func @f(%t: tensor<3x1xf32>, %ids: tensor<1xi32>) -> tensor<1x1xf32> {
      %x = moe.embedding %t, %ids : (tensor<3x1xf32>, tensor<1xi32>) -> tensor<1x1xf32> loc("embed_tokens")
      return %x : tensor<1x1xf32>
    })mlir"),
                                            1, Mode::Float64);
  ASSERT_TRUE(executor) << errors;
  ASSERT_EQ(toText(executor->writeArgument(0, 0, getBytes(std::vector<float>(3)))), "");
  ASSERT_EQ(toText(executor->writeArgument(0, 1, getBytes(std::vector<int32_t>{7}))), "");
  EXPECT_EQ(toText(executor->run()),
            "interpreting 'f' stopped at 'moe.embedding' (embed_tokens): rank 0: row 0 has token "
            "id 7, but the table has 3 rows");
  EXPECT_EQ(errors, "'moe.embedding' op rank 0: row 0 has token id 7, but the table has 3 rows\n");
}

TEST_F(Executor, Interrupts) {
  auto executor = createInterpreterExecutor(parse(counter), 1, Mode::Float64);
  ASSERT_TRUE(executor) << errors;
  ASSERT_EQ(toText(executor->run()), "");
  executor->interrupt();
  for (int run : {1, 2})
    EXPECT_EQ(toText(executor->run()), "interpreting 'f' stopped at 'arith.extf': interrupted before this op") << run;
}

TEST_F(Executor, RefusesBadBuffers) {
  auto executor = createInterpreterExecutor(parse(counter), 1, Mode::Float64);
  ASSERT_TRUE(executor) << errors;
  std::vector<float> buffer(3);
  EXPECT_EQ(toText(executor->writeArgument(0, 0, getBytes(buffer))),
            "argument #0 on rank 0 has 8 bytes, and the buffer handed in has 12");
  EXPECT_EQ(toText(executor->readArgument(1, 0, getBytes(buffer))),
            "there is no argument #0 on rank 1: the function has 2 on each of 1 ranks");
  EXPECT_EQ(toText(executor->readResult(0, 2, getBytes(buffer))),
            "there is no result #2 on rank 0: the function has 2 on each of 1 ranks");
  buffer.resize(2);
  EXPECT_EQ(toText(executor->readResult(0, 1, getBytes(buffer))),
            "result #1 is read before a run has given it a value");
}

TEST_F(Executor, RefusesOtherTypes) {
  EXPECT_FALSE(createInterpreterExecutor(parse("func.func @f(%a: tensor<?xf32>) { return }"), 1, Mode::Float64));
  EXPECT_NE(errors.find("argument #0 is 'tensor<?xf32>': a run needs static tensors of i32, i64, f32, bf16 or f64"),
            std::string::npos)
      << errors;
  EXPECT_FALSE(createInterpreterExecutor(parse("func.func @f(%a: index) { return }"), 1, Mode::Float64));
  EXPECT_FALSE(createInterpreterExecutor(parse("func.func private @f()"), 1, Mode::Float64));
  EXPECT_FALSE(createInterpreterExecutor(parse("func.func @f() { return }"), 0, Mode::Float64));
}
} // namespace
